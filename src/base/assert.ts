/** A bug in Rookery itself: an invariant the code states does not hold. Never caught to go on as if nothing happened. */
export class AssertionError extends Error {
  override readonly name = 'AssertionError'
}

/** On in production: a broken invariant stops the part it guards before it can corrupt what it guards. */
export function assert(condition: unknown, message: string): asserts condition {
  if (!condition) throw new AssertionError(message)
}

/** The end of a switch that handles every case; does not compile when a case is missing. */
export function unreachable(value: never): never {
  throw new AssertionError(`Unexpected value ${String(value)}`)
}
