/** Lets every promise that can go on do so, and the loop turn once. */
export function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}

/**
 * Waits until `isTrue` holds; throws with `what` when it doesn't within `timeoutMs`, which has to leave room for a machine that does
 * nothing for several seconds.
 */
export async function until(isTrue: () => boolean | Promise<boolean>, what: string, timeoutMs = 60_000): Promise<void> {
  const deadlineMs = performance.now() + timeoutMs
  while (!(await isTrue())) {
    if (performance.now() > deadlineMs) throw new Error(`Waited ${timeoutMs} ms in vain: ${what}`)
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}
