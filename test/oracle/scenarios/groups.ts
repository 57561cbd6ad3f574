import { apis, type JoinGroupResponse } from '../../../src/protocol/index.ts'
import { until } from '../../support/condition.ts'
import type { Recorder } from '../recorder.ts'
import type { Scenarios } from '../scenario.ts'
import { versionsOf } from '../versions.ts'

const noMember = 'nobody-00000000-0000-0000-0000-000000000000'

export const groupScenarios: Scenarios = {
  'FindCoordinator, every version': async (broker) => {
    for (const version of versionsOf(apis.FindCoordinator)) {
      const keys = [broker.named('g'), '', 'ä b', 'x'.repeat(300)]
      for (const key of keys) {
        for (const keyType of version >= 1 ? [0, 2, 3, 5, -1, 127] : [0]) {
          // Share coordinators and transactions are not built.
          if (keyType === 2 && version >= 6) continue
          await broker.ask(apis.FindCoordinator, version, { key, keyType, coordinatorKeys: [key] })
        }
      }
      if (version >= 4) {
        await broker.ask(apis.FindCoordinator, version, { keyType: 0, coordinatorKeys: [] })
        await broker.ask(apis.FindCoordinator, version, { keyType: 0, coordinatorKeys: keys })
        await broker.ask(apis.FindCoordinator, version, { keyType: 0, coordinatorKeys: ['a', 'a'] })
      }
    }
  },

  'the life of a group of one, every version': async (broker) => {
    for (const version of versionsOf(apis.JoinGroup)) {
      const group = new Group(broker, broker.named(`g${version}`), version)
      const first = await group.enter('a')
      await group.heartbeat(first)
      await group.sync(
        first,
        first.members.map(({ memberId }) => [memberId, 'given']),
      )
      await group.heartbeat(first)
      await group.sync(first, [])
      await group.describe()
      // An unchanged member that leads begins a rebalance.
      const again = await group.join('a', { memberId: first.memberId })
      if (again === undefined) return
      await group.heartbeat(first)
      await group.sync(again, [[again.memberId, 'given again']])
      await group.heartbeat({ ...again, generationId: again.generationId + 1 })
      await group.heartbeat({ ...again, memberId: noMember })
      await group.describe()
      await group.leave([again.memberId])
      await group.heartbeat(again)
      await group.describe()
      await group.leave([again.memberId])
    }
  },

  'two members, every version': async (broker) => {
    for (const version of versionsOf(apis.JoinGroup)) {
      const group = new Group(broker, broker.named(`g${version}`), version)
      const a = await group.enter('a')
      await group.sync(a, [[a.memberId, 'all']])
      const joining = group.enter('b')
      await group.untilState('PreparingRebalance')
      await group.heartbeat(a)
      await group.sync(a, [[a.memberId, 'all']])
      await group.describe()
      const [a2, b] = await Promise.all([group.join('a', { memberId: a.memberId }), joining])
      if (a2 === undefined) return
      await group.heartbeat(a2)
      await group.heartbeat(b)
      await group.describe()
      const waiting = group.sync(b, [])
      await broker.ask(apis.ApiVersions, 0, {})
      await group.sync(a2, [
        [a2.memberId, 'mine'],
        [b.memberId, 'yours'],
      ])
      await waiting
      await group.sync(b, [])
      await group.describe()
      // A follower that is unchanged gets what it had.
      await group.join('b', { memberId: b.memberId })
      await group.heartbeat(b)
      // The leader goes; the other is told, and leads.
      await group.leave([a2.memberId])
      await group.heartbeat(b)
      const b2 = await group.join('b', { memberId: b.memberId })
      if (b2 === undefined) return
      await group.sync(b2, [[b2.memberId, 'all']])
      await group.describe()
      await group.leave([b2.memberId])
    }
  },

  'joins that are refused, every version': async (broker) => {
    for (const version of versionsOf(apis.JoinGroup)) {
      const group = new Group(broker, broker.named(`g${version}`), version)
      await new Group(broker, '', version).join('a')
      await group.join('a', { sessionTimeoutMs: 5999 })
      await group.join('a', { sessionTimeoutMs: 1_800_001 })
      await group.join('a', { sessionTimeoutMs: 0 })
      await group.join('a', { sessionTimeoutMs: -1 })
      await group.join('a', { memberId: noMember })
      await group.join('a', { protocols: [] })
      await group.join('a', { protocolType: '' })
      await group.describe()
      const a = await group.enter('a')
      await group.join('b', { protocolType: 'connect' })
      await group.join('b', { protocols: ['other'] })
      await group.join('b', { memberId: noMember })
      await group.join('b', { protocols: [] })
      await group.join('a', { memberId: a.memberId, protocols: [] })
      await group.join('a', { memberId: a.memberId, protocolType: 'connect' })
      await group.sync(a, [[a.memberId, 'x']])
      await group.join('b', { protocolType: 'connect' })
      await group.leave([a.memberId])
      // A group without members takes any type.
      const other = await group.enter('c', { protocolType: 'connect', protocols: ['other'] })
      await group.sync({ ...other, protocolType: 'connect', protocolName: 'other' }, [[other.memberId, 'x']])
      await group.describe()
      await group.leave([other.memberId])
    }
  },

  'the protocol that all have, by votes': async (broker) => {
    for (const version of [0, 3, 5, 7, 9]) {
      const group = new Group(broker, broker.named(`g${version}`), version)
      const a = await group.enter('a', { protocols: ['one', 'two', 'three'] })
      await group.sync({ ...a, protocolName: 'one' }, [[a.memberId, 'x']])
      const joining = group.enter('b', { protocols: ['three', 'two'] })
      await group.untilState('PreparingRebalance')
      const [a2, b] = await Promise.all([
        group.join('a', { memberId: a.memberId, protocols: ['one', 'three', 'two'] }),
        joining,
      ])
      if (a2 === undefined) return
      await group.sync({ ...a2, protocolName: 'three' }, [[b.memberId, 'x']])
      await group.sync({ ...b, protocolName: 'three' }, [])
      await group.leave([a2.memberId])
      await group.leave([b.memberId])
    }
  },

  'a group that is full': async (broker) => {
    for (const version of [0, 3, 4, 9]) {
      const group = new Group(broker, broker.named(`g${version}`), version)
      const [a, b, c] = await group.gather(['a', 'b', 'c'])
      const d = await group.join('d')
      if (d !== undefined && d.errorCode === 79) await group.join('d', { memberId: d.memberId })
      await group.describe()
      for (const member of [a!, b!, c!]) await group.leave([member.memberId])
    }
  },

  'SyncGroup, every version, and its errors': async (broker) => {
    for (const version of versionsOf(apis.SyncGroup)) {
      const group = new Group(broker, broker.named(`g${version}`), 5, version)
      await group.sync({ memberId: noMember, generationId: 1 }, [])
      await new Group(broker, '', 5, version).sync({ memberId: noMember, generationId: 1 }, [])
      const a = await group.enter('a')
      await group.sync({ ...a, generationId: a.generationId + 1 }, [])
      await group.sync({ ...a, generationId: a.generationId - 1 }, [])
      await group.sync({ ...a, memberId: noMember }, [])
      await group.sync({ ...a, memberId: '' }, [])
      if (version >= 5) {
        await group.sync({ ...a, protocolType: 'connect' }, [])
        await group.sync({ ...a, protocolName: 'other' }, [])
        for (const [type, name] of [
          [null, 'range'],
          ['consumer', null],
          [null, null],
        ] as const) {
          await broker.ask(apis.SyncGroup, version, {
            groupId: group.id,
            generationId: a.generationId,
            memberId: a.memberId,
            protocolType: type,
            protocolName: name,
            assignments: [],
          })
        }
      } else await group.sync(a, [])
      await group.sync(a, [[a.memberId, 'late']])
      await group.sync({ ...a, generationId: a.generationId + 1 }, [])
      if (version >= 5) {
        await group.sync({ ...a, protocolType: 'connect' }, [])
        await group.sync({ ...a, protocolName: 'other' }, [])
      }
      await group.describe()
      await group.leave([a.memberId])
      await group.sync(a, [])
    }
  },

  'Heartbeat, every version, and its errors': async (broker) => {
    for (const version of versionsOf(apis.Heartbeat)) {
      const group = new Group(broker, broker.named(`g${version}`), 5, 3, version)
      await group.heartbeat({ memberId: noMember, generationId: 1 })
      await new Group(broker, '', 5, 3, version).heartbeat({ memberId: noMember, generationId: 1 })
      const a = await group.enter('a')
      await group.heartbeat({ ...a, memberId: '' })
      await group.heartbeat({ ...a, generationId: -1 })
      await group.heartbeat(a)
      await group.sync(a, [[a.memberId, 'x']])
      await group.heartbeat(a)
      await group.heartbeat({ ...a, generationId: 99 })
      if (version >= 3) await group.heartbeat({ ...a, groupInstanceId: 'nobody' })
      await group.leave([a.memberId])
      await group.heartbeat(a)
    }
  },

  'LeaveGroup, every version, and its errors': async (broker) => {
    for (const version of versionsOf(apis.LeaveGroup)) {
      const group = new Group(broker, broker.named(`g${version}`), 5, 3, 3, version)
      await group.leave([noMember])
      await new Group(broker, '', 5, 3, 3, version).leave([noMember])
      const a = await group.enter('a')
      await group.sync(a, [[a.memberId, 'x']])
      await group.leave([noMember])
      await group.leave([''])
      if (version >= 3) {
        await group.leave([])
        await group.leave([noMember, a.memberId, a.memberId])
        await group.leaveStatic([{ memberId: a.memberId, groupInstanceId: 'nobody' }])
        await group.leaveStatic([{ memberId: '', groupInstanceId: 'nobody' }])
      } else await group.leave([a.memberId])
      await group.describe()
    }
  },

  'static members, every version that has them': async (broker) => {
    for (const version of versionsOf(apis.JoinGroup, 5)) {
      const group = new Group(broker, broker.named(`g${version}`), version)
      const groupInstanceId = 'one'
      const a = await group.join('a', { groupInstanceId })
      if (a === undefined) return
      await group.sync({ ...a, groupInstanceId }, [[a.memberId, 'x']])
      await group.describe()
      await group.heartbeat({ ...a, groupInstanceId })
      await group.heartbeat({ ...a, groupInstanceId: 'other' })
      await group.heartbeat({ ...a, memberId: noMember, groupInstanceId })
      // It starts again: another member id, the same generation.
      const a2 = await group.join('a', { groupInstanceId })
      if (a2 === undefined) return
      await group.describe()
      await group.heartbeat({ ...a, groupInstanceId })
      await group.sync({ ...a, groupInstanceId }, [])
      await group.join('a', { groupInstanceId, memberId: a.memberId })
      await group.heartbeat({ ...a2, groupInstanceId })
      await group.sync({ ...a2, groupInstanceId }, [[a2.memberId, 'y']])
      await group.leaveStatic([{ memberId: a.memberId, groupInstanceId }])
      await group.leaveStatic([{ memberId: '', groupInstanceId }])
      await group.describe()
    }
  },

  'members that fall silent': async (broker) => {
    // One says nothing in its session; one does not come to a rebalance; one never asks for its assignment.
    const [session, rebalance, unsynced] = ['session', 'rebalance', 'unsynced'].map(
      (text) => new Group(broker, broker.named(text), 5),
    ) as [Group, Group, Group]
    // Longer than either broker may stand still between two requests that are to come in time.
    const short = { sessionTimeoutMs: 7000, rebalanceTimeoutMs: 5000 }
    const s = await session.enter('s', short)
    await session.sync(s, [[s.memberId, 'x']])
    const a = await rebalance.enter('a', short)
    await rebalance.sync(a, [[a.memberId, 'x']])
    const b = await rebalance.enter('b', short) // a does not join again
    await rebalance.heartbeat(a)
    await rebalance.sync(b, [[b.memberId, 'x']])
    await rebalance.describe()
    await rebalance.leave([b.memberId])
    const u = await unsynced.enter('u', short)
    await unsynced.untilState('Empty')
    await unsynced.heartbeat(u)
    await unsynced.describe()
    await session.untilState('Empty')
    await session.heartbeat(s)
    await session.describe()
    const again = await session.enter('s', short)
    await session.leave([again.memberId])
  },

  'members that are replaced and that change what they want': async (broker) => {
    const group = new Group(broker, broker.named('g'), 5)
    const [a, b] = await group.gather(['a', 'b'])
    // A follower that changes what it wants begins a rebalance, and is answered when all have joined.
    const changing = group.join('b', { memberId: b!.memberId, protocols: ['range', 'other'] })
    await group.untilState('PreparingRebalance')
    await group.heartbeat(a!)
    await group.heartbeat(b!)
    const a2 = await group.join('a', { memberId: a!.memberId })
    const b2 = await changing
    if (a2 === undefined || b2 === undefined) return
    // In the middle of the next generation: an unchanged member gets the same answer again.
    await group.join('b', { memberId: b2.memberId, protocols: ['range', 'other'] })
    await group.join('a', { memberId: a2.memberId })
    await group.describe()
    await group.sync(a2, [[b2.memberId, 'all']])
    await group.sync(b2, [])
    await group.describe()
    await group.leave([a2.memberId])
    await group.leave([b2.memberId])
    await group.describe()
  },

  'DescribeGroups and ListGroups, every version': async (broker) => {
    const group = new Group(broker, broker.named('g'), 5)
    const a = await group.enter('a')
    const ask = async () => {
      for (const version of versionsOf(apis.DescribeGroups)) {
        const groups = [group.id, broker.named('missing'), '']
        await broker.ask(apis.DescribeGroups, version, { groups })
        await broker.ask(apis.DescribeGroups, version, { groups: [group.id], includeAuthorizedOperations: true })
        await broker.ask(apis.DescribeGroups, version, { groups: [] })
      }
      for (const version of versionsOf(apis.ListGroups)) {
        for (const statesFilter of version >= 4
          ? [[], ['Stable'], ['stable', 'EMPTY'], ['completingrebalance'], ['Nonsense'], ['']]
          : [[]]) {
          for (const typesFilter of version >= 5 ? [[], ['classic'], ['Classic'], ['consumer'], ['nonsense']] : [[]]) {
            await broker.ask(apis.ListGroups, version, { statesFilter, typesFilter })
          }
        }
      }
    }
    await ask()
    await group.sync(a, [[a.memberId, 'x']])
    await ask()
    await group.leave([a.memberId])
    await ask()
  },
}

interface MemberFacts {
  readonly memberId: string
  readonly generationId: number
  readonly groupInstanceId?: string | null
  readonly protocolType?: string | null
  readonly protocolName?: string | null
}

interface JoinOptions {
  readonly memberId?: string
  readonly groupInstanceId?: string | null
  readonly sessionTimeoutMs?: number
  readonly rebalanceTimeoutMs?: number
  readonly protocolType?: string
  readonly protocols?: readonly string[]
  /** What it says of itself to the one that assigns; by default something that is not a consumer's. */
  readonly metadata?: Buffer
}

/** Requests about one group, each API in one version. */
export class Group {
  readonly id: string
  readonly #broker: Recorder
  readonly #join: number
  readonly #sync: number
  readonly #heartbeat: number
  readonly #leave: number

  constructor(
    broker: Recorder,
    id: string,
    join: number,
    sync = Math.min(join, 5),
    heartbeat = Math.min(join, 4),
    leave = Math.min(join, 5),
  ) {
    this.#broker = broker
    this.id = id
    this.#join = join
    this.#sync = sync
    this.#heartbeat = heartbeat
    this.#leave = leave
  }

  /** `client`: the connection, which a join may hold up for long. */
  join(client: string, options: JoinOptions = {}): Promise<JoinGroupResponse | undefined> {
    const { memberId = '', groupInstanceId = null, sessionTimeoutMs = 30_000, protocolType = 'consumer' } = options
    const { protocols = ['range'], rebalanceTimeoutMs = 20_000 } = options
    const body = {
      groupId: this.id,
      sessionTimeoutMs,
      rebalanceTimeoutMs,
      memberId,
      groupInstanceId,
      protocolType,
      protocols: protocols.map((name) => ({ name, metadata: options.metadata ?? Buffer.from(`${client} ${name}`) })),
    }
    return this.#broker.attempt(apis.JoinGroup, this.#join, body, { client })
  }

  /** Joins, with the member id that the first answer gives where the version asks for it. */
  async enter(client: string, options: JoinOptions = {}): Promise<JoinGroupResponse> {
    let answer = await this.join(client, options)
    if (answer?.errorCode === 79) answer = await this.join(client, { ...options, memberId: answer.memberId })
    if (answer === undefined || answer.errorCode !== 0) throw new Error(`No member: error ${answer?.errorCode}`)
    return answer
  }

  /** All of them in one generation that is stable; the first leads. */
  async gather(clients: readonly string[]): Promise<JoinGroupResponse[]> {
    let members: JoinGroupResponse[] = []
    for (const client of clients) {
      const joining = this.enter(client)
      if (members.length > 0) await this.untilState('PreparingRebalance')
      const rejoining = members.map(({ memberId }, i) => this.join(clients[i]!, { memberId }))
      members = (await Promise.all([...rejoining, joining])).map((each) => each!)
      const [leader] = members
      await this.sync(
        leader!,
        members.map(({ memberId }) => [memberId, memberId.slice(0, 1)]),
      )
    }
    return members
  }

  sync(member: MemberFacts, assignments: readonly (readonly [string, string])[]) {
    const { memberId, generationId, groupInstanceId = null } = member
    const protocolType = member.protocolType ?? 'consumer'
    const protocolName = member.protocolName ?? 'range'
    const body = {
      groupId: this.id,
      generationId,
      memberId,
      groupInstanceId,
      protocolType,
      protocolName,
      assignments: assignments.map(([id, text]) => ({ memberId: id, assignment: Buffer.from(text) })),
    }
    return this.#broker.attempt(apis.SyncGroup, this.#sync, body, { client: `sync-${memberId.slice(0, 1)}` })
  }

  heartbeat({ memberId, generationId, groupInstanceId = null }: MemberFacts) {
    return this.#broker.attempt(apis.Heartbeat, this.#heartbeat, {
      groupId: this.id,
      generationId,
      memberId,
      groupInstanceId,
    })
  }

  leave(memberIds: readonly string[]) {
    const members = memberIds.map((memberId) => ({ memberId, groupInstanceId: null }))
    return this.#broker.attempt(apis.LeaveGroup, this.#leave, {
      groupId: this.id,
      memberId: memberIds[0] ?? '',
      members,
    })
  }

  leaveStatic(members: readonly { memberId: string; groupInstanceId: string }[]) {
    return this.#broker.attempt(apis.LeaveGroup, Math.max(3, this.#leave), { groupId: this.id, members })
  }

  describe() {
    return this.#broker.ask(apis.DescribeGroups, 5, { groups: [this.id] })
  }

  /** Waits, unrecorded. */
  untilState(state: string): Promise<void> {
    const isThere = async () => {
      const { groups } = await this.#broker.unrecorded(apis.DescribeGroups, 4, { groups: [this.id] })
      return groups[0]?.groupState === state
    }
    return until(isThere, `${this.id} is ${state}`)
  }
}
