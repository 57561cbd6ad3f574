import fc from 'fast-check'
import { expect, test } from 'vitest'
import { type LeaderEpoch, zeroUuid } from '../../../src/base/index.ts'
import { GroupCoordinator, type JoinGroupResponse, type OffsetFetchResponse } from '../../../src/group/index.ts'
import { groupRecordCodec } from '../../../src/group/records.ts'
import type { Random } from '../../../src/platform/index.ts'
import { BatchView, readRecords } from '../../../src/protocol/index.ts'
import { Metrics, silentLogger } from '../../../src/telemetry/index.ts'
import { inlineOffload, ManualTime, MemoryStore } from '../coordinator-runtime/support.ts'
import { defaultConfig, rebalanceMs, sessionMs } from './bench.ts'

type Action =
  | { readonly do: 'commit' | 'fetch' | 'join' | 'sync' | 'heartbeat' | 'leave' | 'restart'; readonly who: number }
  | { readonly do: 'advance'; readonly ms: number }
  | { readonly do: 'commit-log' | 'lose-log' | 'move' | 'move-away-and-back' | 'hold-log' | 'refuse' | 'accept' }

const memberCount = 3
const action: fc.Arbitrary<Action> = fc.oneof(
  {
    weight: 12,
    arbitrary: fc.record({
      do: fc.constantFrom('commit', 'commit', 'fetch', 'join', 'join', 'sync', 'sync', 'heartbeat', 'leave', 'restart'),
      who: fc.nat(memberCount - 1),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constant('advance' as const), ms: fc.constantFrom(1, 50, 3000, 10_000) }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constantFrom(
        'commit-log' as const,
        'commit-log' as const,
        'lose-log' as const,
        'move' as const,
        'move-away-and-back' as const,
        'hold-log' as const,
        'refuse' as const,
        'accept' as const,
      ),
    }),
  },
)

interface Member {
  readonly groupInstanceId: string | null
  memberId: string
  generation: number
  /** It leads its generation, of which these are the members. */
  ids: readonly string[]
}

/** A coordinator whose log is slow, refuses, loses what isn't committed and changes hands, and clients that remember its answers. */
class World {
  readonly time = new ManualTime()
  readonly store = new MemoryStore()
  readonly coordinator: GroupCoordinator
  readonly #members: Member[] = Array.from({ length: memberCount }, (_, i) => ({
    groupInstanceId: i === 0 ? 'instance' : null,
    memberId: '',
    generation: -1,
    ids: [],
  }))
  #leaderEpoch = 1
  /** Committed offsets count up, so that an older one is a smaller one. */
  #lastOffset = 0
  /** The highest that a commit was acknowledged for, or that a fetch gave: never taken back. */
  #told = -1
  /** The highest generation that someone was given an assignment in. */
  #assigned = 0
  #open = 0

  constructor() {
    let drawn = 0
    const bytes = (length: number) => {
      const drawing = Buffer.alloc(length)
      drawing.writeUInt32BE(++drawn)
      return drawing
    }
    this.coordinator = new GroupCoordinator({
      config: defaultConfig,
      store: this.store,
      platform: {
        clock: this.time,
        timers: this.time,
        random: { bytes } as Partial<Random> as Random,
        offload: inlineOffload,
      },
      logger: silentLogger,
      metrics: new Metrics(),
      partitionCount: () => 1,
      writeTimeoutMs: 5000,
    })
  }

  async start(): Promise<void> {
    this.coordinator.becomeLeader(0, this.store.lead(0, this.#leaderEpoch))
    await this.time.settle()
  }

  async run(step: Action): Promise<void> {
    switch (step.do) {
      case 'commit-log':
        this.store.commit()
        break
      case 'lose-log':
        this.store.lose('storage-error')
        break
      case 'hold-log':
        this.store.commitsAtOnce = !this.store.commitsAtOnce
        break
      case 'refuse':
        this.store.refusal = 'not-enough-replicas'
        break
      case 'accept':
        this.store.refusal = undefined
        break
      case 'move':
        this.coordinator.becomeLeader(0, this.store.lead(0, ++this.#leaderEpoch))
        break
      case 'move-away-and-back':
        this.coordinator.resign(0, ++this.#leaderEpoch as LeaderEpoch)
        this.store.lose('not-leader')
        this.coordinator.becomeLeader(0, this.store.lead(0, ++this.#leaderEpoch))
        break
      case 'advance':
        await this.time.advance(step.ms)
        break
      case 'fetch':
        this.#follow(this.#fetch())
        break
      default:
        this.#ask(step.do, this.#members[step.who]!)
    }
    await this.time.settle()
    this.#lookAtLog()
  }

  #ask(what: 'commit' | 'join' | 'sync' | 'heartbeat' | 'leave' | 'restart', member: Member): void {
    const { memberId, groupInstanceId, generation: generationId } = member
    const identity = { groupId: 'g', memberId, groupInstanceId, generationId }
    switch (what) {
      case 'commit': {
        const offset = ++this.#lastOffset
        const partitions = [{ partition: 0, offset, leaderEpoch: -1, metadata: null }]
        const topics = [{ topic: 't', topicId: zeroUuid, partitions }]
        const asked = this.coordinator.offsetCommit({
          ...identity,
          retentionTimeMs: -1,
          reportsUnknownGroup: true,
          topics,
        })
        this.#follow(asked.then(({ ok }) => void (ok && this.#tell(offset))))
        break
      }
      case 'join':
      case 'restart': {
        const stored = this.#storedGeneration()
        const asked = this.coordinator.joinGroup({
          groupId: 'g',
          memberId: what === 'restart' ? '' : memberId,
          groupInstanceId,
          clientId: 'client',
          clientHost: '/127.0.0.1',
          sessionTimeoutMs: sessionMs,
          rebalanceTimeoutMs: rebalanceMs,
          protocolType: 'consumer',
          protocols: [{ name: 'range', metadata: Buffer.from('topics') }],
          requireKnownMemberId: groupInstanceId === null,
          supportsSkippingAssignment: true,
        })
        this.#follow(asked.then((joined) => this.#onJoined(member, joined, stored)))
        break
      }
      case 'sync': {
        const assignments = member.ids.map((id) => ({ memberId: id, assignment: Buffer.from(`${generationId} ${id}`) }))
        const asked = this.coordinator.syncGroup({ ...identity, protocolType: null, protocolName: null, assignments })
        this.#follow(
          asked.then((synced) => {
            if (!synced.ok || synced.assignment.length === 0) return
            this.#assigned = Math.max(this.#assigned, generationId)
            // A static member goes on under a new id with what its old run was given.
            const text = synced.assignment.toString()
            if (groupInstanceId === null) expect(text).toBe(`${generationId} ${memberId}`)
            else expect(text).toMatch(new RegExp(`^${generationId} instance-`))
          }),
        )
        break
      }
      case 'heartbeat':
        this.#follow(this.coordinator.heartbeat(identity))
        break
      case 'leave':
        this.#follow(this.coordinator.leaveGroup({ groupId: 'g', members: [{ memberId, groupInstanceId }] }))
        break
    }
  }

  /** `stored`: the generation in the log when it asked. */
  #onJoined(member: Member, joined: JoinGroupResponse, stored: number): void {
    if (joined.memberId !== '') member.memberId = joined.memberId
    if (!joined.ok) {
      if (joined.reason === 'unknown-member-id') member.memberId = ''
      return
    }
    expect(joined.generationId).toBeGreaterThanOrEqual(stored)
    member.generation = joined.generationId
    member.ids = joined.skipAssignment ? [] : joined.members.map(({ memberId }) => memberId)
    if (joined.members.length > 0) expect(joined.leader).toBe(joined.memberId)
  }

  async #fetch(): Promise<void> {
    const before = this.#told
    const [answer] = await this.coordinator.offsetFetch([{ groupId: 'g', topics: [{ topic: 't', partitions: [0] }] }])
    const offset = offsetIn(answer)
    if (offset === undefined) return
    expect(offset, 'what was told is not taken back').toBeGreaterThanOrEqual(before)
    this.#tell(offset)
  }

  #tell(offset: number): void {
    this.#told = Math.max(this.#told, offset)
  }

  #follow(answer: Promise<unknown>): void {
    this.#open++
    void answer.then(
      () => this.#open--,
      (error: unknown) => {
        this.#fault ??= error
      },
    )
  }

  /** The first expectation that an answer broke, or that a request rejected. */
  #fault: unknown

  #lookAtLog(): void {
    if (this.#fault !== undefined) throw this.#fault
    expect(this.#storedGeneration(), 'a generation that someone works in is stored').toBeGreaterThanOrEqual(
      this.#assigned,
    )
  }

  #storedGeneration(): number {
    let generation = 0
    for (const bytes of this.store.batches()) {
      const batch = new BatchView(bytes)
      for (const { key, value } of readRecords(batch, batch.recordBytes)) {
        const record = groupRecordCodec.decode(key!, value)
        if (record?.kind === 'group' && record.value !== null) {
          expect(record.value.generation, 'generations only grow').toBeGreaterThanOrEqual(generation)
          generation = record.value.generation
        }
      }
    }
    return generation
  }

  /** The log works again: all that waits is answered, and what was told is still true, also for the next coordinator. */
  async end(): Promise<void> {
    this.store.refusal = undefined
    this.store.commitsAtOnce = true
    this.store.commit()
    await this.time.advance(400_000)
    if (this.#fault !== undefined) throw this.#fault
    expect(this.#open, 'requests that are never answered').toBe(0)
    await this.#fetch()
    this.coordinator.becomeLeader(0, this.store.lead(0, ++this.#leaderEpoch))
    await this.time.settle()
    await this.#fetch()
    this.coordinator.stop()
    await this.time.advance(10) // a load that waited for the high watermark looks once more, and gives up
    expect(this.time.timerCount).toBe(0)
  }
}

function offsetIn(answer: OffsetFetchResponse | undefined): number | undefined {
  return answer?.ok === true ? answer.topics[0]?.partitions[0]?.offset : undefined
}

test('A coordinator takes nothing back that it told, whatever becomes of its log and its leadership', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(action, { minLength: 10, maxLength: 80, size: 'max' }), async (actions) => {
      const world = new World()
      await world.start()
      for (const step of actions) await world.run(step)
      await world.end()
    }),
    { numRuns: Number(process.env.ROOKERY_GROUP_RUNS ?? 100) },
  )
})
