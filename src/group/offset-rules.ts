import { type Uuid, zeroUuid } from '../base/index.ts'
import type { Now, Ticket } from '../coordinator-runtime/index.ts'
import type { ClassicGroup } from './classic-group.ts'
import { type ClassicGroups, findMember } from './classic-groups.ts'
import type { GroupConfig } from './config.ts'
import { Effects } from './effects.ts'
import { Member } from './member.ts'
import { type CommittedOffset, isStorable, type OffsetRecord } from './records.ts'
import type {
  DeleteGroupResponse,
  FetchedOffset,
  MemberRefusal,
  OffsetCommitRequest,
  OffsetCommitResponse,
  OffsetDeleteRequest,
  OffsetDeleteResponse,
  OffsetFetchRequest,
  OffsetFetchResponse,
} from './types.ts'

/** A batch of tombstones grows to about this size; what is left goes into the next. Far below any `max.message.bytes`. */
const tombstoneBatchBytes = 128 << 10
/** Offsets that one turn of a sweep looks at. */
const offsetsPerTurn = 5000

/** A topic that is gone; by its id too, as a topic of the same name may have taken its place. */
export interface DeletedTopic {
  readonly topic: string
  readonly topicId: Uuid
}

/** How far the offsets of deleted topics have been forgotten in the groups of one partition. */
export class TopicDeletion {
  /** By name, which several may have had one after the other. */
  readonly topics: ReadonlyMap<string, readonly DeletedTopic[]>
  /** The group whose offsets filled a batch: it may have more. */
  unfinished: ClassicGroup | undefined
  #groups: ReadonlyMap<string, ClassicGroup> | undefined
  #left: Iterator<ClassicGroup, undefined> = [].values()

  constructor(topics: readonly DeletedTopic[]) {
    this.topics = Map.groupBy(topics, ({ topic }) => topic)
  }

  /** The groups that are left; all, when these are not the groups of before: they were loaded anew. */
  begin(groups: ReadonlyMap<string, ClassicGroup>): Iterator<ClassicGroup, undefined> {
    if (groups !== this.#groups) {
      this.#groups = groups
      this.#left = groups.values()
      this.unfinished = undefined
    }
    return this.#left
  }

  restart(): void {
    this.#groups = undefined
  }
}

const nothingCommitted = { offset: -1, leaderEpoch: -1, metadata: '' } as const

/**
 * The rules of committed offsets: who may commit and delete them, and when they are forgotten. Commits in transactions don't
 * exist yet, so no offset is ever unstable.
 *
 * When an offset is forgotten (none of these: it is kept):
 *
 *     its own expiry time is set                     at that time
 *     group Empty, was a group of members            retention after it became Empty
 *     group of nobody, only commits                  retention after the commit
 *     group of consumers, Stable, reads other topics retention after the commit
 */
export class OffsetRules {
  readonly #config: GroupConfig
  readonly #groups: Map<string, ClassicGroup>
  readonly #members: ClassicGroups
  /** Groups that the sweep in progress has yet to look at. */
  #sweep: Iterator<ClassicGroup, undefined> | undefined
  /** The group whose offsets filled a batch: it may have more. */
  #unfinished: ClassicGroup | undefined

  constructor(config: GroupConfig, groups: Map<string, ClassicGroup>, members: ClassicGroups) {
    this.#config = config
    this.#groups = groups
    this.#members = members
  }

  commit(request: OffsetCommitRequest, ticket: Ticket<OffsetCommitResponse>, now: Now): Effects {
    const effects = new Effects(now)
    const { groupId, generationId, retentionTimeMs } = request
    const group = this.#groups.get(groupId)
    if (group === undefined) {
      if (generationId >= 0) {
        const reason = request.reportsUnknownGroup ? 'group-id-not-found' : 'illegal-generation'
        return effects.answer(ticket, { ok: false, reason })
      }
    } else {
      const reason = refusalOfCommit(group, request)
      if (reason !== null) return effects.answer(ticket, { ok: false, reason })
      if (group.state !== 'CompletingRebalance') this.#members.renewSession(group, request.memberId, effects)
    }
    const topics = request.topics.map(({ topic, topicId, partitions }) => ({
      topic,
      partitions: partitions.map(({ partition, offset, leaderEpoch, metadata }) => {
        const length = metadata?.length ?? 0
        if (metadata !== null && (length > this.#config.offsetMetadataMaxBytes || !isStorable(metadata))) {
          return { partition, reason: 'offset-metadata-too-large' as const }
        }
        if (!Number.isSafeInteger(offset)) return { partition, reason: 'offset-out-of-range' as const }
        const value: CommittedOffset = {
          offset,
          leaderEpoch,
          metadata: metadata ?? '',
          commitTimestampMs: now.wallMs,
          expireTimestampMs: retentionTimeMs < 0 ? -1 : Math.min(now.wallMs + retentionTimeMs, Number.MAX_SAFE_INTEGER),
          topicId,
        }
        effects.records.push({ kind: 'offset', groupId, topic, partition, value })
        return { partition, reason: null }
      }),
    }))
    return effects.answer(ticket, { ok: true, topics })
  }

  fetch(request: OffsetFetchRequest, ticket: Ticket<OffsetFetchResponse>, now: Now): Effects {
    const { groupId, topics } = request
    const offsets = this.#groups.get(groupId)?.offsets
    const answered =
      topics === null
        ? [...(offsets?.byTopic ?? [])].map(([topic, partitions]) => ({
            topic,
            partitions: [...partitions].map(([partition, committed]) => fetched(partition, committed)),
          }))
        : topics.map(({ topic, partitions }) => ({
            topic,
            partitions: partitions.map((partition) => fetched(partition, offsets?.get(topic, partition))),
          }))
    return new Effects(now).answer(ticket, { ok: true, groupId, topics: answered })
  }

  deleteOffsets(request: OffsetDeleteRequest, ticket: Ticket<OffsetDeleteResponse>, now: Now): Effects {
    const effects = new Effects(now)
    const { groupId } = request
    const group = this.#groups.get(groupId)
    if (group === undefined) return effects.answer(ticket, { ok: false, reason: 'group-id-not-found' })
    // Members of a group of consumers may still read other topics; of other kinds of groups nothing is known.
    if (group.state !== 'Empty' && group.protocolType !== 'consumer') {
      return effects.answer(ticket, { ok: false, reason: 'non-empty-group' })
    }
    const subscribed = group.subscribedTopics()
    const topics = request.topics.map(({ topic, partitions }) => {
      const isRead = group.state !== 'Empty' && (subscribed === undefined || subscribed.has(topic))
      return {
        topic,
        partitions: partitions.map((partition) => {
          if (isRead) return { partition, reason: 'group-subscribed-to-topic' as const }
          if (group.offsets.get(topic, partition) !== undefined) {
            effects.records.push({ kind: 'offset', groupId, topic, partition, value: null })
          }
          return { partition, reason: null }
        }),
      }
    })
    return effects.answer(ticket, { ok: true, topics })
  }

  /** Answers 'more' while offsets are left: a group may have more than one batch takes. */
  deleteGroup(groupId: string, ticket: Ticket<DeleteGroupResponse['reason'] | 'more'>, now: Now): Effects {
    const effects = new Effects(now)
    const group = this.#groups.get(groupId)
    if (group === undefined) return effects.answer(ticket, 'group-id-not-found')
    if (group.state !== 'Empty') return effects.answer(ticket, 'non-empty-group')
    const batch = new TombstoneBatch()
    for (const [topic, partitions] of group.offsets.byTopic) {
      for (const partition of partitions.keys()) {
        if (!batch.add({ kind: 'offset', groupId, topic, partition, value: null })) break
      }
    }
    effects.records.push(...batch.records)
    if (batch.isFull) return effects.answer(ticket, 'more')
    effects.records.push({ kind: 'group', groupId, value: null })
    return effects.answer(ticket, null)
  }

  /** Forgets what was committed for topics that are gone, a part at a time; answers 'more' while some is left. */
  deleteTopics(deletion: TopicDeletion, ticket: Ticket<'done' | 'more'>, now: Now): Effects {
    const effects = new Effects(now)
    const batch = new TombstoneBatch()
    const groups = deletion.begin(this.#groups)
    let looked = 0
    let isDone = false
    while (looked < offsetsPerTurn && !batch.isFull) {
      const group = deletion.unfinished ?? groups.next().value
      if (group === undefined) {
        isDone = true
        break
      }
      looked += 1 + group.offsets.byTopic.size
      for (const [topic, partitions] of group.offsets.byTopic) {
        const deleted = deletion.topics.get(topic)
        if (deleted === undefined) continue
        looked += partitions.size
        for (const [partition, { topicId }] of partitions) {
          if (topicId !== zeroUuid && !deleted.some((each) => each.topicId === topicId)) continue
          batch.add({ kind: 'offset', groupId: group.groupId, topic, partition, value: null })
        }
      }
      deletion.unfinished = batch.isFull ? group : undefined
    }
    effects.records.push(...batch.records)
    effects.onRefused = () => {
      deletion.restart()
      return {}
    }
    return effects.answer(ticket, isDone ? 'done' : 'more')
  }

  scheduleSweep(effects: Effects, delayMs = this.#config.offsetsRetentionCheckIntervalMs): void {
    effects.setTimer('expire-offsets', Math.min(delayMs, maxTimerMs), { kind: 'expire-offsets' })
  }

  /** One turn of a sweep over all groups: writes tombstones for what is too old, and goes on in the next turn. */
  onExpireTimer(now: Now): Effects {
    const effects = new Effects(now)
    this.#sweep ??= this.#groups.values()
    const batch = new TombstoneBatch()
    let looked = 0
    while (looked < offsetsPerTurn && !batch.isFull) {
      const group = this.#unfinished ?? this.#sweep.next().value
      if (group === undefined) {
        this.#sweep = undefined
        break
      }
      looked += 1 + group.offsets.size
      this.#expire(group, batch, now.wallMs)
      this.#unfinished = batch.isFull ? group : undefined
    }
    effects.records.push(...batch.records)
    this.scheduleSweep(effects, this.#sweep === undefined ? undefined : 0)
    effects.onRefused = (_reason, later) => {
      const next = new Effects(later)
      this.#sweep = undefined
      this.#unfinished = undefined
      this.scheduleSweep(next)
      return next
    }
    return effects
  }

  #expire(group: ClassicGroup, batch: TombstoneBatch, wallMs: number): void {
    const { groupId, offsets } = group
    const isExpired = this.#expiryOf(group, wallMs)
    let kept = 0
    for (const [topic, partitions] of offsets.byTopic) {
      for (const [partition, committed] of partitions) {
        const goes =
          isExpired(topic, committed) && batch.add({ kind: 'offset', groupId, topic, partition, value: null })
        if (!goes) kept++
      }
    }
    if (kept === 0 && group.state === 'Empty' && group.pendingMembers.size === 0) {
      batch.add({ kind: 'group', groupId, value: null })
    }
  }

  #expiryOf(group: ClassicGroup, wallMs: number): (topic: string, committed: CommittedOffset) => boolean {
    const { offsetsRetentionMs } = this.#config
    const { state, stateSinceMs, protocolType } = group
    const subscribed = state === 'Stable' ? group.subscribedTopics() : undefined
    return (topic, { commitTimestampMs, expireTimestampMs }) => {
      const isUnused = state === 'Empty' || (subscribed !== undefined && !subscribed.has(topic))
      if (!isUnused) return false
      if (expireTimestampMs >= 0) return wallMs >= expireTimestampMs
      const wasEmptied = state === 'Empty' && protocolType !== null && stateSinceMs >= 0
      return wallMs - (wasEmptied ? stateSinceMs : commitTimestampMs) >= offsetsRetentionMs
    }
  }
}

/** The longest delay that a timer takes. */
const maxTimerMs = 2 ** 31 - 1

/** Tombstones for one append. The first one always fits. */
class TombstoneBatch {
  readonly records: (OffsetRecord | { readonly kind: 'group'; readonly groupId: string; readonly value: null })[] = []
  #bytes = 0

  get isFull(): boolean {
    return this.#bytes >= tombstoneBatchBytes
  }

  /** False: it is full and the record must wait for another. */
  add(record: TombstoneBatch['records'][number]): boolean {
    if (this.isFull) return false
    this.records.push(record)
    // At most three bytes for a UTF-16 code unit, and the framing.
    this.#bytes += 3 * (record.groupId.length + (record.kind === 'offset' ? record.topic.length : 0)) + 32
    return true
  }
}

function fetched(partition: number, committed: CommittedOffset | undefined): FetchedOffset {
  const { offset, leaderEpoch, metadata } = committed ?? nothingCommitted
  return { partition, offset, leaderEpoch, metadata }
}

/** Null: it may. Without being a member one may commit only to a group that has none. */
function refusalOfCommit(group: ClassicGroup, request: OffsetCommitRequest): MemberRefusal | null {
  const { generationId, memberId, groupInstanceId } = request
  if (generationId < 0 && group.state === 'Empty') return null
  if (generationId < 0 && memberId === '' && groupInstanceId === null) return 'unknown-member-id'
  const member = findMember(group, request)
  if (!(member instanceof Member)) return member
  if (generationId !== group.generation) return 'illegal-generation'
  // It has the generation from its join, but not yet what to read in it.
  return group.state === 'CompletingRebalance' ? 'rebalance-in-progress' : null
}
