import { join } from 'node:path'
import { type RunningProgram, type StartOptions, startProgram } from './programs.ts'

const main = join(import.meta.dirname, '../../src/cli/main.ts')
/** Longer than any test: what bounds a command is its test. */
const maxRunMs = 300_000

/** What a program left behind. */
export interface Finished {
  /** Null: a signal ended it. */
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

export interface RunOptions extends StartOptions {
  readonly input?: string | Buffer
}

/** The `rookery` program in a process of its own. */
export class RookeryProcess {
  readonly #program: RunningProgram

  constructor(args: readonly string[], { input = '', ...options }: RunOptions = {}) {
    this.#program = startProgram(process.execPath, [main, ...args], options)
    this.#program.write(input)
    this.#program.endInput()
  }

  get stdout(): string {
    return this.#program.stdout
  }

  get stderr(): string {
    return this.#program.stderr
  }

  get finished(): Promise<Finished> {
    return this.#program.ended(maxRunMs).then(({ exitCode, stdout, stderr }) => ({ code: exitCode, stdout, stderr }))
  }

  async signal(signal: NodeJS.Signals): Promise<Finished> {
    this.#program.kill(signal)
    return await this.finished
  }

  /** Waits for `text` on the standard output or error. */
  async untilSays(text: string): Promise<void> {
    await this.#program.until(({ stdout, stderr }) => stdout.includes(text) || stderr.includes(text), text)
  }
}

/** Runs a command to its end. */
export async function rookery(args: readonly string[], options: RunOptions = {}): Promise<Finished> {
  return await new RookeryProcess(args, options).finished
}
