import { connect, type Socket } from 'node:net'

const readBytes = 1024 * 1024

/**
 * One connection that sends whole requests and is handed whole answers, doing as little as can be done for each: what the load
 * generator spends, the broker beside it lacks. Bytes are read into one buffer that is used again; an answer that lies
 * in it whole is handed out as a slice, valid until the handler returns.
 */
export class RawConnection {
  readonly #socket: Socket
  #onAnswer: (answer: Buffer) => void = () => undefined
  #onEnd: (error: Error) => void
  /** An answer that began and isn't whole, with its length; grown, never shrunk. */
  #partial = Buffer.allocUnsafe(64 * 1024)
  #partialBytes = 0

  static connect(port: number, onEnd: (error: Error) => void): Promise<RawConnection> {
    return new Promise((resolve, reject) => {
      const buffer = Buffer.allocUnsafe(readBytes)
      let connection: RawConnection | undefined
      const socket = connect({
        host: '127.0.0.1',
        port,
        noDelay: true,
        onread: {
          buffer,
          callback: (bytes) => {
            connection?.receive(buffer.subarray(0, bytes))
            return true
          },
        },
      })
      socket.once('error', reject)
      socket.once('connect', () => {
        socket.off('error', reject)
        connection = new RawConnection(socket, onEnd)
        resolve(connection)
      })
    })
  }

  private constructor(socket: Socket, onEnd: (error: Error) => void) {
    this.#socket = socket
    this.#onEnd = onEnd
    socket.on('error', (error) => this.#onEnd(error))
    socket.on('close', () => this.#onEnd(new Error('The broker closed the connection')))
  }

  /** Called with each answer, without its length, in order. */
  onAnswer(handler: (answer: Buffer) => void): void {
    this.#onAnswer = handler
  }

  /** `frame` must not change any more. */
  send(frame: Buffer): void {
    this.#socket.write(frame)
  }

  close(): void {
    this.#onEnd = () => undefined
    this.#socket.destroy()
  }

  /** @internal Takes what arrived. What is sent meanwhile leaves as one write. */
  receive(chunk: Buffer): void {
    this.#socket.cork()
    let at = 0
    while (at < chunk.length) {
      if (this.#partialBytes === 0 && chunk.length - at >= 4) {
        const end = at + 4 + chunk.readInt32BE(at)
        if (end <= chunk.length) {
          this.#onAnswer(chunk.subarray(at + 4, end))
          at = end
          continue
        }
      }
      at = this.#collect(chunk, at)
    }
    this.#socket.uncork()
  }

  /** Copies what belongs to the answer that isn't whole; returns where the next one begins. */
  #collect(chunk: Buffer, at: number): number {
    if (this.#partialBytes < 4) {
      const taken = Math.min(4 - this.#partialBytes, chunk.length - at)
      chunk.copy(this.#partial, this.#partialBytes, at, at + taken)
      this.#partialBytes += taken
      at += taken
      if (this.#partialBytes < 4) return at
    }
    const wholeBytes = 4 + this.#partial.readInt32BE(0)
    if (this.#partial.length < wholeBytes) {
      const grown = Buffer.allocUnsafe(wholeBytes * 2)
      this.#partial.copy(grown, 0, 0, this.#partialBytes)
      this.#partial = grown
    }
    const taken = Math.min(wholeBytes - this.#partialBytes, chunk.length - at)
    chunk.copy(this.#partial, this.#partialBytes, at, at + taken)
    this.#partialBytes += taken
    if (this.#partialBytes === wholeBytes) {
      this.#partialBytes = 0
      this.#onAnswer(this.#partial.subarray(4, wholeBytes))
    }
    return at + taken
  }
}
