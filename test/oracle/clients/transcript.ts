/** What a script of a client saw, line by line, without what each broker chooses for itself. */
export class Transcript {
  readonly lines: string[] = []
  readonly #startedMs: number
  readonly #port: number

  constructor(port: number, startedMs = Date.now()) {
    this.#port = port
    this.#startedMs = startedMs
  }

  /** An object's fields as JSON; a text's lines. */
  say(what: string, value: unknown): void {
    const text = typeof value === 'string' ? value : JSON.stringify(value, (_, each) => plain(each))
    for (const line of text.split('\n')) if (line !== '') this.lines.push(this.#normalised(`${what}: ${line}`))
  }

  /** Says what comes back, or the error's name and code, and those of the errors in it. */
  async attempt(what: string, call: () => unknown): Promise<void> {
    try {
      this.say(what, (await call()) ?? 'done')
    } catch (error) {
      this.say(what, ['failed', ...codesOf(error)])
    }
  }

  #normalised(line: string): string {
    return (
      line
        .replaceAll(/(127\.0\.0\.1|localhost):\d+/g, '<broker>')
        .replaceAll(new RegExp(`\\b${this.#port}\\b`, 'g'), '<port>')
        .replaceAll(/^(.*?)%(\d)\|\d+\.\d+\|/g, '$1%$2|<time>|')
        .replaceAll(/rdkafka#(\w+)-\d+/g, 'rdkafka#$1')
        .replaceAll(/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g, '<id>')
        .replaceAll(/after \d+ms/g, 'after <ms>')
        // Which of its connections kcat asks on is a matter of time.
        .replaceAll(/broker -?1: <broker>\/(1|bootstrap)/g, 'broker <any>')
        .replaceAll(/\{"id":-?1,"name":"<broker>\/(1|bootstrap)"\}/g, '<any>')
        // A default that differs on purpose: accepted-differences.ts tells of it.
        .replaceAll(/DEFAULT_CONFIG:log\.flush\.interval\.messages=\d+/g, '<default>')
        .replaceAll(/\b1[789]\d{11}\b/g, (digits) => (Number(digits) >= this.#startedMs - 1000 ? '<now>' : digits))
    )
  }
}

function codesOf(error: unknown): unknown[] {
  if (typeof error !== 'object' || error === null) return []
  const { name, type, code, cause, errors = [] } = error as ClientError
  return [name ?? null, type ?? null, code ?? null, ...[cause, ...errors].flatMap(codesOf)]
}

interface ClientError {
  readonly name?: string
  readonly type?: string
  readonly code?: unknown
  readonly cause?: unknown
  readonly errors?: readonly unknown[]
}

function plain(value: unknown): unknown {
  if (typeof value === 'bigint') return String(value)
  const buffer = value as { type?: string; data?: number[] } | null
  return buffer?.type === 'Buffer' && buffer.data !== undefined ? Buffer.from(buffer.data).toString('latin1') : value
}
