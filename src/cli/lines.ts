/** The longest line that is taken; longer than any record that brokers accept by default. */
export const maxLineBytes = 64 * 1024 * 1024

/**
 * The lines that `chunk`s bring, without their line feeds (or the carriage return before); a last line needs none. Bytes that
 * are no whole line yet are kept.
 */
export class LineSplitter {
  #rest: Buffer[] = []
  #restBytes = 0

  /** Whole lines, in order: slices of the chunks where one holds them. Throws a RangeError past `maxLineBytes`. */
  push(chunk: Buffer): readonly Buffer[] {
    const lines: Buffer[] = []
    let from = 0
    for (let at = chunk.indexOf(10); at >= 0; at = chunk.indexOf(10, from)) {
      lines.push(this.#take(chunk.subarray(from, at)))
      from = at + 1
    }
    if (from < chunk.length) {
      this.#rest.push(chunk.subarray(from))
      this.#restBytes += chunk.length - from
      if (this.#restBytes > maxLineBytes) throw new RangeError(`A line has more than ${maxLineBytes} bytes`)
    }
    return lines
  }

  /** What stands after the last line feed; undefined when nothing does. */
  end(): Buffer | undefined {
    return this.#restBytes === 0 ? undefined : this.#take(Buffer.alloc(0))
  }

  #take(tail: Buffer): Buffer {
    const line = this.#rest.length === 0 ? tail : Buffer.concat([...this.#rest, tail])
    this.#rest = []
    this.#restBytes = 0
    return line.at(-1) === 13 ? line.subarray(0, -1) : line
  }
}
