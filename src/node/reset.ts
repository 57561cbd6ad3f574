import { type BrokerId, RookeryError } from '../base/index.ts'
import type { AlterConfigRequest, Coordination, CreateTopicRequest } from '../coordination/index.ts'
import { groupTopic } from '../group/index.ts'
import type { ConfigsImage, MetadataImage } from '../metadata/index.ts'
import type { ReplicaManager } from '../replication/index.ts'
import type { Observation } from './observation.ts'

export interface ResetOptions {
  /**
   * 'declared', the default: the topics that were declared at the start are there again, and no others. 'keep': those that others
   * made stay too, empty, with the partitions and settings that they have.
   */
  readonly topics?: 'declared' | 'keep'
}

/** What was set while the node ran can't be taken back; the cause says why. */
export class ResetError extends RookeryError {
  readonly code = 'RESET_FAILED'
}

export interface ResetParts {
  readonly brokerId: BrokerId
  readonly coordination: Coordination
  readonly replicas: ReplicaManager
  readonly observation: Observation
  readonly declared: readonly CreateTopicRequest[]
  /** Settings of this broker and of all brokers as they were at the start. */
  readonly brokerConfigs: BrokerConfigs
}

/** By the name of the resource: '' is all brokers. */
export type BrokerConfigs = ReadonlyMap<string, ReadonlyMap<string, string>>

const timeoutMs = 30_000
/** Topics made in one entry of the metadata log: an entry has a limit. */
const partitionsAtOnce = 2000

export function brokerConfigsOf(configs: ConfigsImage, brokerId: BrokerId): BrokerConfigs {
  return new Map(['', String(brokerId)].map((name) => [name, new Map(configs.of('broker', name))]))
}

/**
 * Deletes all topics and makes those anew that are to be there, the internal one of groups among them: with it go all groups and
 * what they committed, with the logs all that is known of producers. Their ids are not given out again. Resolves when the logs are open
 * and the coordinators answer. The caller keeps requests away meanwhile; what is under way is answered with errors that clients try again after.
 */
export async function resetNode(parts: ResetParts, { topics = 'declared' }: ResetOptions): Promise<void> {
  const { coordination, replicas, observation } = parts
  const { admin, image } = coordination
  const anew = topicsAnew(image, parts, topics)
  const deletions = [...image.topics.all()].map(({ topicId }) => ({ topicId }))
  for (const result of await admin.deleteTopics(deletions, { timeoutMs })) {
    if (!result.ok && result.reason !== 'unknown-topic-id') throw new ResetError(`Topics stay: ${result.message}`)
  }
  const changes = configChanges(image.configs, parts.brokerConfigs)
  if (changes.length > 0) {
    for (const result of await admin.alterConfigs(changes, { timeoutMs })) {
      if (!result.ok) throw new ResetError(`Settings of the broker stay: ${result.message}`)
    }
  }
  for (const requests of inPieces(anew)) {
    for (const result of await admin.createTopics(requests, { timeoutMs })) {
      // A request that was under way may have made one.
      if (!result.ok && result.reason !== 'topic-exists')
        throw new ResetError(`Topic ${result.name}: ${result.message}`)
    }
  }
  await replicas.whenOpened()
  await observation.whenGroupsLoaded()
}

function topicsAnew(image: MetadataImage, { declared }: ResetParts, topics: 'declared' | 'keep'): CreateTopicRequest[] {
  const requests = new Map(declared.map((request) => [request.name, request]))
  for (const { name, partitions } of image.topics.all()) {
    // Groups keep their coordinators, so that their members go on with them.
    const stays = name === groupTopic || topics === 'keep'
    if (!stays || requests.has(name)) continue
    const { length: partitionCount } = partitions
    const configs = new Map(image.configs.of('topic', name))
    requests.set(name, { name, partitionCount, replicationFactor: partitions[0]?.replicas.length ?? -1, configs })
  }
  return [...requests.values()]
}

function configChanges(now: ConfigsImage, atStart: BrokerConfigs): AlterConfigRequest[] {
  const changed = [...atStart].filter(([name, before]) => !isSame(now.of('broker', name), before))
  return changed.map(([resourceName, changes]) => ({ resourceType: 'broker', resourceName, changes, replaces: true }))
}

function isSame(left: ReadonlyMap<string, string>, right: ReadonlyMap<string, string>): boolean {
  return left.size === right.size && [...left].every(([key, value]) => right.get(key) === value)
}

function inPieces(requests: readonly CreateTopicRequest[]): CreateTopicRequest[][] {
  const pieces: CreateTopicRequest[][] = []
  let left = 0
  for (const request of requests) {
    const count = Math.max(1, request.partitionCount)
    if (left < count) {
      pieces.push([])
      left = partitionsAtOnce
    }
    pieces.at(-1)!.push(request)
    left -= count
  }
  return pieces
}
