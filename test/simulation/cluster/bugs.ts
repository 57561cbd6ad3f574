import type { BrokerId } from '../../../src/base/index.ts'
import { PartitionRules } from '../../../src/controller/partition-change.ts'
import { openLogManager } from '../../../src/log/index.ts'
import { Followers } from '../../../src/raft/core/followers.ts'
import { type LogIndex, RaftCore } from '../../../src/raft/index.ts'
import { InSyncReplicas } from '../../../src/replication/in-sync-replicas.ts'
import { ReplicaManager } from '../../../src/replication/index.ts'
import { Partition } from '../../../src/replication/partition.ts'
import { bugs as nodeBugs } from '../node/bugs.ts'
import { overriding } from '../node/overriding.ts'
import type { ClusterRunOptions } from './run.ts'

/** What a wrong node would do. */
export interface ClusterBug {
  /** Where the search begins: one of the next seeds is known to show it. */
  readonly firstSeed: number
  readonly options?: Partial<ClusterRunOptions>
  /** Makes every node of the process wrong; the result makes them right again. */
  readonly install?: () => () => void
}

export const clusterBugs: Readonly<Record<string, ClusterBug>> = {
  'the high watermark counts the committed ISR only': {
    firstSeed: 2,
    install: () => replacing(InSyncReplicas, 'maximal', { get: (isr) => isr.committed }),
  },

  'min.insync.replicas counts replicas that are only asked for': {
    firstSeed: 53,
    options: { faults: ['power-loss-of-all', 'power-loss', 'kill-two', 'kill'] },
    install: () => replacing(InSyncReplicas, 'committed', { get: (isr) => isr.maximal }),
  },

  'a follower joins the ISR without what is committed': {
    firstSeed: 1,
    options: { faults: ['power-loss', 'kill', 'pause', 'slow-disk'] },
    install: () =>
      replacing(InSyncReplicas, 'expand', {
        call: (expand, [replica, , mayJoin]) => expand(replica, 0, mayJoin),
      }),
  },

  'a follower acknowledges more than it has': {
    firstSeed: 1,
    install: () =>
      replacing(InSyncReplicas, 'onFetch', {
        call: (onFetch, [fetch, leaderEndOffset, nowMs]) =>
          onFetch({ ...fetch, fetchOffset: Math.min(fetch.fetchOffset + 3, leaderEndOffset) }, leaderEndOffset, nowMs),
      }),
  },

  'an answer does not wait for the high watermark': {
    firstSeed: 6,
    install: () => replacing(Partition, 'waitCommitted', { call: () => 'reached' }),
  },

  'a follower does not say in which epoch its log ends': {
    firstSeed: 20,
    options: {
      openLogs: async (options) => {
        const logs = await openLogManager(options)
        return overriding(logs, {
          getOrCreate: async (spec) => {
            const log = await logs.getOrCreate(spec)
            return new Proxy(log, {
              get: (_, property) => {
                const value: unknown = Reflect.get(log, property, log)
                if (property === 'latestEpoch') return -1
                return typeof value === 'function' ? value.bind(log) : value
              },
            })
          },
        })
      },
    },
  },

  'a leader takes what a leader of another epoch was asked for': {
    firstSeed: 11,
    install: () => replacing(Partition, 'checkReplica', { call: (checkReplica) => checkReplica(-1) }),
  },

  'replicas that lack records are elected': {
    firstSeed: 4,
    options: { faults: ['kill', 'power-loss', 'kill-two', 'isolate'] },
    install: () =>
      replacing(PartitionRules, 'change', {
        call: (change, [topic, partition, target]) => {
          const { isr } = target
          if (isr === undefined || isr.includes(partition.leader)) return change(topic, partition, target)
          const stays = (replica: BrokerId) => isr.includes(replica) || !partition.isr.includes(replica)
          return change(topic, partition, { ...target, isr: partition.replicas.filter(stays) })
        },
      }),
  },

  'votes and copies count by node id, whatever the disk': {
    firstSeed: 7,
    options: { faults: ['wipe'], settings: ['replica.lag.time.max.ms=300'] },
    install: countingAnyDisk,
  },

  'a voter that was removed still counts': {
    firstSeed: 1,
    options: { faults: ['revote', 'isolate', 'pause'], settings: ['replica.lag.time.max.ms=300'] },
    install: countingFollowers,
  },

  'a topic that takes the name of another keeps its log': {
    firstSeed: 2,
    options: {
      openLogs: async (options) => {
        const logs = await openLogManager(options)
        return overriding(logs, {
          getOrCreate: async (spec) => logs.get(spec.topic, spec.partition) ?? (await logs.getOrCreate(spec)),
          delete: () => Promise.resolve(),
        })
      },
    },
  },

  'a reassignment does not wait until the new replicas are in sync': {
    firstSeed: 1,
    install: () =>
      replacing(PartitionRules, 'change', {
        call: (change, [topic, partition, target]) => {
          const { replicas, removingReplicas = [] } = target
          if (replicas === undefined) return change(topic, partition, target)
          const staying = replicas.filter((replica) => !removingReplicas.includes(replica))
          const done = { replicas: staying, isr: staying, addingReplicas: [], removingReplicas: [] }
          return change(topic, partition, { ...target, ...done })
        },
      }),
  },

  'a broker keeps what moved to others while it was away': {
    firstSeed: 19,
    install: () => replacing(ReplicaManager, 'deleteStrays', { call: () => Promise.resolve() }),
  },

  'a follower does not delete what its leader deleted': {
    firstSeed: 2,
    install: () => replacing(Partition, 'followLogStart', { call: () => Promise.resolve() }),
  },

  'deleted records are not waited for at the followers': {
    firstSeed: 60,
    install: () =>
      replacing(InSyncReplicas, 'lowWatermark', {
        call: (_lowWatermark, [localLogStartOffset]) => localLogStartOffset,
      }),
  },

  'an answer comes before the sync': {
    firstSeed: 1,
    options: { faults: ['power-loss-of-all'], ...nodeBugs['an answer comes before the sync']! },
  },
}

/** Messages come from the disks that vote. */
function countingAnyDisk(): () => void {
  return replacing(RaftCore, 'step', {
    call: (step, [message], core) => {
      const voter = core.membership.voters.find(({ id }) => id === message.from)
      return step(voter === undefined ? message : { ...message, fromDirectoryId: voter.directoryId })
    },
  })
}

/** Copies of whoever follows count, with a vote or without. */
function countingFollowers(): () => void {
  const { get } = Object.getOwnPropertyDescriptor(Followers.prototype, 'matchIndexes')!
  return replacing(Followers, 'matchIndexes', {
    get: (followers) => {
      const { length } = get!.call(followers) as LogIndex[]
      const all = [...followers.all.values()].map(({ matchIndex }) => matchIndex)
      return all.sort((a, b) => b - a).slice(0, length)
    },
  })
}

type Methods<T> = { [K in keyof T]: T[K] extends (...args: never[]) => unknown ? K : never }[keyof T]

/** Puts something else in place of a getter or a method of every object of a class, until it is taken back. */
function replacing<T extends object, K extends keyof T & string>(
  type: { readonly prototype: T },
  name: K,
  by: K extends Methods<T>
    ? {
        readonly call: (
          original: Extract<T[K], (...args: never[]) => unknown>,
          args: ParametersOf<T[K]>,
          target: T,
        ) => unknown
      }
    : { readonly get: (target: T) => T[K] },
): () => void {
  const original = Object.getOwnPropertyDescriptor(type.prototype, name)!
  const replacement = by as {
    readonly call?: (original: unknown, args: unknown[], target: T) => unknown
    readonly get?: (target: T) => unknown
  }
  Object.defineProperty(
    type.prototype,
    name,
    replacement.call === undefined
      ? {
          configurable: true,
          get(this: T) {
            return replacement.get!(this)
          },
        }
      : {
          configurable: true,
          writable: true,
          value(this: T, ...args: unknown[]) {
            return replacement.call!((original.value as (...args: unknown[]) => unknown).bind(this), args, this)
          },
        },
  )
  return () => {
    Object.defineProperty(type.prototype, name, original)
  }
}

type ParametersOf<F> = F extends (...args: infer Args) => unknown ? Args : never
