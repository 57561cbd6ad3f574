import { join } from 'node:path'
import { type Outcome, type RunningProgram, startProgram } from './programs.ts'

const program = join(import.meta.dirname, '../../src/cli/main.ts')

export interface BrokerProcessOptions {
  /** Where its data is. */
  readonly folder: string
  /** `PLAINTEXT://127.0.0.1:0` by default: a port that is free. */
  readonly listeners?: string
  readonly config?: Readonly<Record<string, string | number>>
  /** Of the process, on top of the test's own. */
  readonly env?: Readonly<Record<string, string>>
  /** `ulimit -n`, as a shell sets it; the test's own when left out. */
  readonly maxOpenFiles?: number
  /** A command that runs the one given to it: `['nsenter', '-t', '7']`. */
  readonly within?: readonly string[]
  /** Options of Node itself. */
  readonly nodeOptions?: readonly string[]
}

/** `rookery start` in a process of its own, as a user runs it. */
export class BrokerProcess implements AsyncDisposable {
  readonly program: RunningProgram

  /** Starts it; `whenServing` tells when it answers. */
  constructor(options: BrokerProcessOptions) {
    const { folder, listeners = 'PLAINTEXT://127.0.0.1:0', config = {}, maxOpenFiles } = options
    const { within = [], nodeOptions = [], env = {} } = options
    const settings = { 'log.dirs': folder, listeners, ...config }
    const overrides = Object.entries(settings).flatMap(([key, value]) => ['--override', `${key}=${value}`])
    const limit = maxOpenFiles === undefined ? [] : ['sh', '-c', `ulimit -n ${maxOpenFiles} && exec "$0" "$@"`]
    const node = [process.execPath, ...nodeOptions, program, 'start', '--log-format', 'json', ...overrides]
    const [command = '', ...args] = [...within, ...limit, ...node]
    this.program = startProgram(command, args, { env })
  }

  static async start(options: BrokerProcessOptions): Promise<BrokerProcess> {
    const broker = new BrokerProcess(options)
    try {
      await broker.whenServing()
      return broker
    } catch (error) {
      await broker.kill()
      throw error
    }
  }

  async whenServing(): Promise<void> {
    await this.program.until(() => this.#started() !== undefined, 'it serves')
  }

  /** Known once it serves. */
  get port(): number {
    const [endpoint] = (this.#started()?.endpoints ?? []) as { readonly port: number }[]
    return endpoint?.port ?? 0
  }

  get bootstrapServers(): string {
    return `127.0.0.1:${this.port}`
  }

  /** What it logged so far. */
  logLines(): Record<string, unknown>[] {
    return this.program
      .lines()
      .filter((line) => line.startsWith('{'))
      .map((line) => JSON.parse(line) as Record<string, unknown>)
  }

  /** Nothing of it runs on when this resolves. */
  async kill(): Promise<void> {
    this.program.kill('SIGKILL')
    await this.program.ended()
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.kill()
  }

  async stop(): Promise<Outcome> {
    this.program.kill('SIGTERM')
    return await this.program.ended()
  }

  #started(): Record<string, unknown> | undefined {
    if (!/node started|controller started/.test(this.program.stdout)) return undefined
    return this.logLines().find(({ msg }) => msg === 'node started' || msg === 'controller started')
  }
}
