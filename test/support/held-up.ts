/** A wait of this length is no delay yet, in milliseconds. */
const tickMs = 10
/** Shorter ones are the everyday life of a machine with other work. */
const leastMs = 100

/** What kept a thread from running. */
export interface HeldUp {
  /** Its longest time without a turn of the event loop, in milliseconds, whatever the reason. */
  readonly worstMs: number
  /** Over all of these times of more than 100 ms, how long it had no CPU: the machine's part, not the program's. */
  readonly byMachineMs: number
}

/** Watches the event loop of the thread that calls it until the result is called. */
export function watchHeldUp(): () => HeldUp {
  let [lastMs, lastCpuMs] = [performance.now(), threadCpuMs()]
  let [worstMs, byMachineMs] = [0, 0]
  const look = () => {
    const [nowMs, cpuMs] = [performance.now(), threadCpuMs()]
    const lateMs = nowMs - lastMs - tickMs
    const idleMs = lateMs - (cpuMs - lastCpuMs)
    worstMs = Math.max(worstMs, lateMs)
    if (lateMs >= leastMs) byMachineMs += Math.max(0, idleMs)
    ;[lastMs, lastCpuMs] = [nowMs, cpuMs]
  }
  const timer = setInterval(look, tickMs).unref()
  return () => {
    clearInterval(timer)
    look()
    return { worstMs, byMachineMs }
  }
}

function threadCpuMs(): number {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1000
}
