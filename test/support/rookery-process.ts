import { type ChildProcess, spawn } from 'node:child_process'
import { join } from 'node:path'
import { until } from './condition.ts'

const main = join(import.meta.dirname, '../../src/cli/main.ts')

/** What a program left behind. */
export interface Finished {
  /** Null: a signal ended it. */
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

export interface RunOptions {
  readonly input?: string | Buffer
  readonly env?: Readonly<Record<string, string>>
  readonly cwd?: string
}

/** The `rookery` program in a process of its own. */
export class RookeryProcess {
  readonly #child: ChildProcess
  readonly #finished: Promise<Finished>
  stdout = ''
  stderr = ''

  constructor(args: readonly string[], options: RunOptions = {}) {
    const { input, env = {}, cwd } = options
    const child = spawn(process.execPath, [main, ...args], { env: { ...cleanEnvironment(), ...env }, cwd })
    this.#child = child
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      this.stdout += text
    })
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      this.stderr += text
    })
    child.stdin.on('error', () => undefined) // it may end before it has read all
    child.stdin.end(input)
    this.#finished = new Promise((resolve) => {
      child.once('close', (code) => resolve({ code, stdout: this.stdout, stderr: this.stderr }))
    })
  }

  get finished(): Promise<Finished> {
    return this.#finished
  }

  async signal(signal: NodeJS.Signals): Promise<Finished> {
    this.#child.kill(signal)
    return await this.#finished
  }

  /** Waits for `text` on the standard output or error. */
  async untilSays(text: string): Promise<void> {
    const isOver = () => this.#child.exitCode !== null
    await until(() => this.stdout.includes(text) || this.stderr.includes(text) || isOver(), `output of ${text}`)
    if (!this.stdout.includes(text) && !this.stderr.includes(text)) {
      throw new Error(`It ended without saying ${text}:\n${this.stdout}${this.stderr}`)
    }
  }
}

/** Runs a command to its end. */
export async function rookery(args: readonly string[], options: RunOptions = {}): Promise<Finished> {
  return await new RookeryProcess(args, options).finished
}

/** Switches of the tests are no settings of a node. */
function cleanEnvironment(): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('ROOKERY_')))
}
