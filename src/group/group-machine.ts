import { unreachable } from '../base/index.ts'
import type { Now, StateMachine, Ticket } from '../coordinator-runtime/index.ts'
import { ClassicGroup } from './classic-group.ts'
import { ClassicGroups } from './classic-groups.ts'
import type { GroupConfig } from './config.ts'
import { Effects, type GroupTimer } from './effects.ts'
import { OffsetRules } from './offset-rules.ts'
import type { GroupRecord } from './records.ts'
import type { DescribeGroupResponse, ListedGroup, ListGroupsRequest } from './types.ts'

/** Groups that one turn of the loop gives their timers after a load. */
const groupsPerTurn = 500

/**
 * The groups of one partition of `__consumer_offsets`: pure, replayed from its records. `members` and `offsets` hold the rules,
 * this class the groups and what is common to both.
 */
export class GroupMachine implements StateMachine<GroupRecord, GroupTimer> {
  readonly members: ClassicGroups
  readonly offsets: OffsetRules
  readonly #groups = new Map<string, ClassicGroup>()
  /** Loaded groups whose sessions have not begun yet. */
  #unarmed: Iterator<ClassicGroup> | undefined

  constructor(config: GroupConfig) {
    this.members = new ClassicGroups(config, this.#groups)
    this.offsets = new OffsetRules(config, this.#groups, this.members)
  }

  keyOf(record: GroupRecord): string {
    return record.groupId
  }

  replay(record: GroupRecord): void {
    const { groupId } = record
    let group = this.#groups.get(groupId)
    if (group === undefined) {
      if (record.value === null) return
      group = new ClassicGroup(groupId)
      this.#groups.set(groupId, group)
    }
    if (record.kind === 'group') {
      if (record.value === null) group.replayRemoval()
      else group.replay(record.value)
    } else if (record.value === null) {
      group.offsets.delete(record.topic, record.partition)
    } else {
      group.offsets.set(record.topic, record.partition, record.value)
    }
    this.members.forgetIfVacant(group)
  }

  onLoaded(now: Now): Effects {
    this.#unarmed = [...this.#groups.values()].values()
    const effects = this.#armSessions(now)
    this.offsets.scheduleSweep(effects)
    return effects
  }

  onTimer(event: GroupTimer, now: Now): Effects {
    switch (event.kind) {
      case 'session':
        return this.members.onSessionTimer(event.groupId, event.memberId, now)
      case 'join':
        return this.members.onJoinTimer(event.groupId, now)
      case 'initial-join':
        return this.members.onInitialJoinTimer(event.groupId, event.delayMs, event.remainingMs, now)
      case 'sync':
        return this.members.onSyncTimer(event.groupId, now)
      case 'arm-sessions':
        return this.#armSessions(now)
      case 'expire-offsets':
        return this.offsets.onExpireTimer(now)
      default:
        return unreachable(event)
    }
  }

  /** Not all at once: a partition may hold thousands of groups. */
  #armSessions(now: Now): Effects {
    const effects = new Effects(now)
    for (let i = 0; i < groupsPerTurn; i++) {
      const next = this.#unarmed?.next()
      if (next === undefined || next.done === true) return effects
      if (this.#groups.get(next.value.groupId) === next.value) this.members.onLoaded(next.value, effects)
    }
    effects.setTimer('arm-sessions', 0, { kind: 'arm-sessions' })
    return effects
  }

  describe(groupId: string, ticket: Ticket<DescribeGroupResponse>, now: Now): Effects {
    return new Effects(now).answer(ticket, this.#describe(groupId))
  }

  /** Only a Stable group tells what its members said. What they were given last they have until they are given anew. */
  #describe(groupId: string): DescribeGroupResponse {
    const group = this.#groups.get(groupId)
    if (group === undefined) return { ok: false, groupId, reason: 'group-id-not-found' }
    const { state } = group
    const protocolName = state === 'Stable' ? (group.protocolName ?? '') : ''
    const members = [...group.members.values()].map((member) => ({
      memberId: member.memberId,
      groupInstanceId: member.groupInstanceId,
      clientId: member.clientId,
      clientHost: member.clientHost,
      metadata: state === 'Stable' ? member.metadataFor(protocolName) : noBytes,
      assignment: member.assignment,
    }))
    return { ok: true, groupId, state, protocolType: group.protocolType ?? '', protocolName, members }
  }

  list(request: ListGroupsRequest, ticket: Ticket<readonly ListedGroup[]>, now: Now): Effects {
    const states = new Set(request.states.map((state) => state.toLowerCase()))
    const types = new Set(request.types.map((type) => type.toLowerCase()))
    const listed: ListedGroup[] = []
    for (const { groupId, state, protocolType } of this.#groups.values()) {
      if (states.size > 0 && !states.has(state.toLowerCase())) continue
      if (types.size > 0 && !types.has('classic')) continue
      listed.push({ groupId, protocolType: protocolType ?? '', state, type: 'classic' })
    }
    return new Effects(now).answer(ticket, listed)
  }
}

const noBytes = Buffer.alloc(0)
