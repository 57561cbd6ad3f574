import type { Random, Timers } from '../../../src/platform/index.ts'
import type { Server } from '../node/server.ts'
import type { ClientWorld } from '../node/world.ts'
import type { QuorumWatch } from './quorum-watch.ts'
import type { ClusterScenario } from './scenario.ts'
import type { ClusterWatch } from './watch.ts'

/** What everybody in a run of a cluster shares. */
export interface ClusterWorld extends ClientWorld {
  readonly scenario: ClusterScenario
  readonly servers: readonly Server[]
  readonly watch: ClusterWatch
  readonly quorumWatch: QuorumWatch
  /** Of the one who makes the faults: they come from a machine of its own, which nothing happens to. */
  readonly random: Random
  readonly timers: Timers
}

/** Host names of the brokers; node 1 is the first. */
export const nodeNames: readonly string[] = ['n1', 'n2', 'n3']
/** Of the controllers, where the brokers aren't controllers themselves. */
export const separateControllerNames: readonly string[] = ['n4', 'n5', 'n6']
export const controllerPort = 9093
/** `log.dirs` of every node. */
export const dataFolder = '/data/kafka'

export function nodeName(nodeId: number): string {
  return `n${nodeId}`
}

export function nodeIdOf(name: string): number {
  return Number(name.slice(1))
}
