import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import type { Readable } from 'node:stream'
import { until } from './condition.ts'
import type { Peer } from './peers.ts'

/** What a program left when it ended. */
export interface Outcome {
  /** Null when a signal ended it. */
  readonly exitCode: number | null
  readonly stdout: string
  readonly stderr: string
  /** Both, as the text of an assertion that failed. */
  readonly output: string
}

export interface StartOptions {
  readonly env?: Readonly<Record<string, string>> | undefined
  readonly cwd?: string | undefined
}

export interface RunOptions extends StartOptions {
  readonly input?: string | Buffer | undefined
  /** The program is killed then, and the run fails. */
  readonly timeoutMs?: number
}

/** Runs a program to its end. */
export async function runProgram(
  command: string,
  args: readonly string[],
  { input = '', timeoutMs = 100_000, ...options }: RunOptions = {},
): Promise<Outcome> {
  const program = startProgram(command, args, options)
  program.write(input)
  program.endInput()
  return await program.ended(timeoutMs)
}

/** `runProgram` for a peer; its arguments come after those that start it. */
export function runPeer(peer: Peer, args: readonly string[], options?: RunOptions): Promise<Outcome> {
  return runProgram(peer.command, [...peer.args, ...args], options)
}

/** A program that runs beside the test. */
export interface RunningProgram {
  readonly pid: number
  readonly stdout: string
  readonly stderr: string
  /** Lines of the standard output so far, without the one that isn't complete. */
  lines(): string[]
  write(input: string | Buffer): void
  endInput(): void
  kill(signal: NodeJS.Signals): void
  /** Waits until it has ended by itself or by a signal sent before. */
  ended(timeoutMs?: number): Promise<Outcome>
  /** Waits until its output says what `isTrue` looks for; fails at once when it ends before. */
  until(isTrue: (program: RunningProgram) => boolean, what: string, timeoutMs?: number): Promise<void>
}

/** Starts a program; the test ends it. It does not see the `ROOKERY_` variables that are meant for the tests. */
export function startProgram(
  command: string,
  args: readonly string[],
  { env = {}, cwd }: StartOptions = {},
): RunningProgram {
  const inherited = Object.entries(process.env).filter(([name]) => !name.startsWith('ROOKERY_'))
  const child = spawn(command, args, { env: { ...Object.fromEntries(inherited), ...env }, cwd, stdio: 'pipe' })
  const collected = { stdout: '', stderr: '' }
  collect(child.stdout, (text) => (collected.stdout += text))
  collect(child.stderr, (text) => (collected.stderr += text))
  child.stdin.on('error', () => undefined) // it may end before it has read everything
  let exitCode: number | null | undefined
  const closed = once(child, 'close').then(([code]) => {
    exitCode = code as number | null
  })
  closed.catch(() => undefined) // told by `ended`
  const title = [command, ...args].join(' ').slice(-200)
  const output = () => `${title}\n${collected.stdout}\n${collected.stderr}`
  const program: RunningProgram = {
    pid: child.pid ?? 0,
    get stdout() {
      return collected.stdout
    },
    get stderr() {
      return collected.stderr
    },
    lines: () => collected.stdout.split('\n').slice(0, -1),
    write: (input) => void child.stdin.write(input),
    endInput: () => child.stdin.end(),
    kill: (signal) => void child.kill(signal),
    ended: async (timeoutMs = 100_000) => {
      const timer = setTimeout(() => child.kill('SIGKILL'), timeoutMs)
      const startMs = performance.now()
      await closed
      clearTimeout(timer)
      if (performance.now() - startMs >= timeoutMs) throw new Error(`Did not end within ${timeoutMs} ms: ${output()}`)
      return { exitCode: exitCode as number | null, ...collected, output: output() }
    },
    until: async (isTrue, what, timeoutMs = 60_000) => {
      const hasEnded = () => exitCode !== undefined
      await until(() => isTrue(program) || hasEnded(), `${what}: ${title}`, timeoutMs).catch((error: unknown) => {
        throw new Error(`${(error as Error).message}\n${output()}`)
      })
      if (!isTrue(program)) throw new Error(`Ended with ${exitCode} before ${what}: ${output()}`)
    },
  }
  return program
}

function collect(stream: Readable, add: (text: string) => void): void {
  stream.setEncoding('utf8')
  stream.on('data', add)
}

/** The most that a process ever held in memory. Linux only. */
export async function peakResidentBytes(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8')
  return Number(/^VmHWM:\s+(\d+) kB$/m.exec(status)?.[1]) * 1024
}

/** Processor time that a process used, user and system. Linux only. */
export async function cpuSeconds(pid: number): Promise<number> {
  const stat = await readFile(`/proc/${pid}/stat`, 'latin1')
  // User and system time are fields 14 and 15, in ticks of 10 ms; the second field, the name, may hold blanks.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[11]) + Number(fields[12])) / 100
}
