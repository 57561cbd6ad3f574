import { setTimeout as sleep } from 'node:timers/promises'
import { deferred } from '../../base/index.ts'
import type { Cluster } from './cluster.ts'
import { Fetcher, type FetcherHandlers } from './fetcher.ts'
import { GroupMember } from './group-member.ts'
import { fetchCommitted } from './groups.ts'
import { type Place, placeName } from './offsets.ts'
import { type From, startingOffsets } from './starting-offsets.ts'

export interface GroupReaderOptions {
  readonly groupId: string
  readonly topics: readonly string[]
  /** Where a partition begins in which the group has committed nothing. */
  readonly from: From
  /** Ends when every partition that this member has was read to the end that it had when it was assigned. */
  readonly untilEnd: boolean
  /** False: the group's offsets stay where they are. */
  readonly commits: boolean
  readonly handlers: FetcherHandlers
}

/** Time between heartbeats, and between commits. */
const tickMs = 1000

/** Reads as a member of a group: joins, reads what it is assigned, commits what was taken, joins again when the group changes. */
export class GroupReader {
  readonly #cluster: Cluster
  readonly #options: GroupReaderOptions
  readonly #member: GroupMember
  #fetcher: Fetcher | undefined
  #isStopped = false
  readonly #stopped = deferred<void>()

  constructor(cluster: Cluster, options: GroupReaderOptions) {
    this.#cluster = cluster
    this.#options = options
    this.#member = new GroupMember(cluster, options.groupId, options.topics)
  }

  /** Resolves after `stop`, or at the end, when everything that was taken is committed and the group is left. */
  async run(): Promise<void> {
    try {
      while (!this.#isStopped) {
        const places = await this.#member.join()
        if (this.#isStopped || (await this.#read(places)) === 'end') return
      }
    } finally {
      await this.#member.leave()
    }
  }

  stop(): void {
    this.#isStopped = true
    this.#stopped.resolve()
    this.#fetcher?.stop()
  }

  /** Leaves the group at once, for a process that is about to end: what was taken since the last commit comes again. */
  async abandon(): Promise<void> {
    this.stop()
    await this.#member.leave()
  }

  /** One generation of the group. */
  async #read(places: readonly Place[]): Promise<'end' | 'rejoin'> {
    const { untilEnd, handlers } = this.#options
    const ranges = await this.#ranges(places)
    const starts = ranges.map((range) => (untilEnd ? range : { ...range, endOffset: Number.POSITIVE_INFINITY }))
    const fetcher = new Fetcher(this.#cluster, starts, handlers)
    this.#fetcher = fetcher
    const committed = new Map(ranges.map((range) => [placeName(range), range.committedOffset]))
    let state: 'reading' | 'end' | 'rejoin' = 'reading'
    const reading = fetcher.run().then(
      () => {
        if (state === 'reading' && (places.length > 0 || untilEnd)) state = 'end'
      },
      (error: unknown) => {
        state = 'end'
        throw error
      },
    )
    reading.catch(() => undefined) // awaited below
    while (state === 'reading') {
      // The connections keep the process alive meanwhile. With nothing to read `reading` is over at once, and the place in the group is to be kept all the same.
      await Promise.race([
        places.length > 0 ? reading : this.#stopped.promise,
        sleep(tickMs, undefined, { ref: false }),
      ])
      if (this.#isStopped) state = 'end'
      if (state === 'reading' && (await this.#tick(fetcher, committed)) === 'rejoin') state = 'rejoin'
    }
    fetcher.stop()
    await reading
    await this.#commit(fetcher, committed)
    return state
  }

  async #tick(fetcher: Fetcher, committed: Map<string, number>): Promise<'ok' | 'rejoin'> {
    if ((await this.#commit(fetcher, committed)) === 'rejoin') return 'rejoin'
    return await this.#member.heartbeat()
  }

  /** Commits what moved since the last time. */
  async #commit(fetcher: Fetcher, committed: Map<string, number>): Promise<'ok' | 'gone' | 'rejoin'> {
    if (!this.#options.commits) return 'ok'
    const moved = fetcher.positions
      .map(({ topic, partition, nextOffset }) => ({ topic, partition, nextOffset }))
      .filter((position) => committed.get(placeName(position)) !== position.nextOffset)
    const outcome = await this.#member.commit(moved)
    if (outcome === 'ok') for (const position of moved) committed.set(placeName(position), position.nextOffset)
    return outcome
  }

  /** Where to begin in each place; `committedOffset` is -1 where the group has committed nothing. */
  async #ranges(places: readonly Place[]) {
    const { groupId, from } = this.#options
    const known = new Map((await fetchCommitted(this.#cluster, groupId)).map((each) => [placeName(each), each]))
    const ranges = await startingOffsets(this.#cluster, places, from)
    return ranges.map((range) => {
      const committedOffset = known.get(placeName(range))?.committedOffset ?? -1
      return { ...range, committedOffset, nextOffset: committedOffset < 0 ? range.nextOffset : committedOffset }
    })
  }
}
