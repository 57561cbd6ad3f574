import { spawn } from 'node:child_process'
import { join } from 'node:path'
import type { Peer } from '../../support/peers.ts'
import type { Outcome } from '../../support/programs.ts'

const program = join(import.meta.dirname, 'ToolHost.java')

interface Call {
  readonly title: string
  readonly resolve: (outcome: Outcome) => void
  readonly reject: (fault: Error) => void
}

/**
 * Kafka's command line tools in one Java process: calls run one after the other, in the order in which they were made. For
 * tools that end by themselves; one that runs on needs a process of its own.
 */
export class ToolHost implements AsyncDisposable {
  readonly #child: ReturnType<typeof spawn>
  readonly #closed: Promise<unknown>
  readonly #calls: Call[] = []
  #unread: Buffer = Buffer.alloc(0)
  #complaints = ''
  #hasEnded = false

  constructor(peer: Peer) {
    this.#child = spawn(peer.command, [...peer.args, program], { stdio: 'pipe' })
    this.#child.stdout?.on('data', (chunk: Buffer) => this.#onOutput(chunk))
    this.#child.stderr?.setEncoding('utf8').on('data', (text: string) => (this.#complaints += text))
    this.#child.stdin?.on('error', () => undefined) // told to those who wait when it has ended
    this.#closed = new Promise((resolve) => this.#child.once('close', resolve))
    void this.#closed.then(() => {
      this.#hasEnded = true
      this.#failAll()
    })
  }

  /** Runs the main method of `mainClass`. What its loggers say is in the output. */
  run(mainClass: string, args: readonly string[], input = ''): Promise<Outcome> {
    return new Promise((resolve, reject) => {
      this.#calls.push({ title: [mainClass, ...args].join(' '), resolve, reject })
      const count = Buffer.alloc(4)
      count.writeInt32BE(args.length)
      this.#child.stdin?.write(Buffer.concat([text(mainClass), count, ...args.map(text), text(input)]))
      if (this.#hasEnded) this.#failAll()
    })
  }

  #failAll(): void {
    for (const { title, reject } of this.#calls.splice(0)) {
      reject(new Error(`Kafka's tools ended before ${title}: ${this.#complaints}`))
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#child.stdin?.end()
    await this.#closed
  }

  #onOutput(chunk: Buffer): void {
    this.#unread = Buffer.concat([this.#unread, chunk])
    for (;;) {
      const outSize = sizeAt(this.#unread, 4)
      const errSize = outSize === undefined ? undefined : sizeAt(this.#unread, 8 + outSize)
      if (outSize === undefined || errSize === undefined) return
      const end = 12 + outSize + errSize
      if (this.#unread.length < end) return
      const exitCode = this.#unread.readInt32BE(0)
      const stdout = this.#unread.toString('utf8', 8, 8 + outSize)
      const stderr = this.#unread.toString('utf8', 12 + outSize, end)
      this.#unread = this.#unread.subarray(end)
      const call = this.#calls.shift()
      call?.resolve({ exitCode, stdout, stderr, output: `${call.title}\n${stdout}\n${stderr}` })
    }
  }
}

function text(value: string): Buffer {
  const bytes = Buffer.from(value)
  const length = Buffer.alloc(4)
  length.writeInt32BE(bytes.length)
  return Buffer.concat([length, bytes])
}

function sizeAt(bytes: Buffer, position: number): number | undefined {
  return bytes.length >= position + 4 ? bytes.readInt32BE(position) : undefined
}
