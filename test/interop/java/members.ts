import { join } from 'node:path'
import type { Peer } from '../../support/peers.ts'
import { type RunningProgram, startProgram } from '../../support/programs.ts'

const program = join(import.meta.dirname, 'Members.java')

/** Something that happened to a member, in the order in which it happened. */
export type MemberEvent =
  | { readonly member: string; readonly kind: 'assigned'; readonly generation: number; readonly partitions: number[] }
  | { readonly member: string; readonly kind: 'revoked' | 'lost'; readonly partitions: number[] }
  | { readonly member: string; readonly kind: 'record'; readonly partition: number; readonly offset: number }
  | { readonly member: string; readonly kind: 'stopped' }
  | { readonly member: string; readonly kind: 'failed'; readonly exception: string }

/** Java consumers, all in one process. */
export class Members implements AsyncDisposable {
  readonly #program: RunningProgram
  #readLines = 0
  readonly #events: MemberEvent[] = []

  constructor(peer: Peer) {
    this.#program = startProgram(peer.command, [...peer.args, program])
  }

  start(name: string, topic: string, settings: Readonly<Record<string, string | number>>): void {
    const words = Object.entries(settings).map(([key, value]) => `${key}=${value}`)
    this.#program.write(`${['start', name, topic, ...words].join(' ')}\n`)
  }

  /** Closes a member and waits until it is. */
  async stop(name: string): Promise<void> {
    this.#program.write(`stop ${name}\n`)
    await this.until(() => this.has(name, 'stopped'), `${name} has stopped`)
  }

  rejoin(name: string, reason: string): void {
    this.#program.write(`rejoin ${name} ${reason}\n`)
  }

  /** All that has happened so far; the same list each time, which grows. */
  get events(): readonly MemberEvent[] {
    const lines = this.#program.lines()
    for (; this.#readLines < lines.length; this.#readLines++) this.#events.push(parse(lines[this.#readLines]!))
    return this.#events
  }

  has(member: string, kind: MemberEvent['kind']): boolean {
    return this.events.some((event) => event.member === member && event.kind === kind)
  }

  /** The partitions that a member has by what it was told last. */
  owned(member: string): number[] {
    const owned = new Set<number>()
    for (const event of this.events) {
      if (event.member !== member || !('partitions' in event)) continue
      for (const partition of event.partitions) {
        if (event.kind === 'assigned') owned.add(partition)
        else owned.delete(partition)
      }
    }
    return [...owned].toSorted()
  }

  /** Offsets of a partition in the order in which members, or one of them, got them. */
  received(partition: number, member?: string): number[] {
    return this.events.flatMap((event) =>
      event.kind === 'record' && event.partition === partition && (member ?? event.member) === event.member
        ? [event.offset]
        : [],
    )
  }

  until(isTrue: () => boolean, what: string): Promise<void> {
    return this.#program.until(isTrue, what)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#program.endInput()
    await this.#program.ended()
  }
}

function parse(line: string): MemberEvent {
  const [member = '', kind = '', ...rest] = line.split(' ')
  const numbers = rest.map(Number)
  switch (kind) {
    case 'assigned':
      return { member, kind, generation: numbers[0]!, partitions: numbers.slice(1) }
    case 'revoked':
    case 'lost':
      return { member, kind, partitions: numbers }
    case 'record':
      return { member, kind, partition: numbers[0]!, offset: numbers[1]! }
    case 'stopped':
      return { member, kind }
    case 'failed':
      return { member, kind, exception: rest.join(' ') }
    default:
      throw new Error(`Not an event of a member: ${line}`)
  }
}
