import { type BrokerId, RookeryError, type Uuid } from '../base/index.ts'
import type { AlterConfigRequest, Coordination, CreateTopicRequest } from '../coordination/index.ts'
import { type GroupCoordinator, groupTopic } from '../group/index.ts'
import type { ConfigsImage, MetadataImage, TopicImage } from '../metadata/index.ts'
import type { ReplicaManager } from '../replication/index.ts'
import type { Observation } from './observation.ts'

export interface ResetOptions {
  /**
   * 'declared', the default: the topics that were declared at the start are there again, and no others. 'keep': those that others
   * made stay too, empty, with the partitions and settings that they have.
   */
  readonly topics?: 'declared' | 'keep'
}

/** The node could not be emptied, or not wholly. */
export class ResetError extends RookeryError {
  readonly code = 'RESET_FAILED'
}

export interface ResetParts {
  readonly coordination: Coordination
  readonly replicas: ReplicaManager
  readonly groups: Pick<GroupCoordinator, 'forget'>
  readonly observation: Observation
  readonly atStart: StartState
}

/** What a reset goes back to. */
export interface StartState {
  /** Those that were declared, as they were then, by name. */
  readonly topics: ReadonlyMap<string, TopicState>
  /** Settings of this broker and, under '', of all brokers. */
  readonly brokerConfigs: ReadonlyMap<string, Configs>
}

interface TopicState {
  readonly partitionCount: number
  readonly configs: Configs
}

type Configs = ReadonlyMap<string, string>

export function startStateOf(
  { topics, configs }: MetadataImage,
  brokerId: BrokerId,
  declared: readonly CreateTopicRequest[],
): StartState {
  const there = declared.flatMap(({ name }) => topics.byName(name) ?? [])
  return {
    topics: new Map(there.map((topic) => [topic.name, stateOf(topic, configs)])),
    brokerConfigs: new Map(['', String(brokerId)].map((name) => [name, new Map(configs.of('broker', name))])),
  }
}

/** For each request to the controller; a stop waits that long too. */
const timeoutMs = 10_000
/** Topics, partitions and settings made at once: the controller takes twice as many. */
const recordsAtOnce = 5000

/**
 * Empties the topics that stay and deletes the others. A topic that is emptied keeps its id and its leader epochs, since not every client
 * goes on with a topic that was deleted and made anew; that is done only with one whose number of partitions was changed. The internal topic of groups is
 * emptied too, and with it go all groups and what they committed; with the logs goes all that is known of producers. Their ids are not given
 * out again. Resolves when the logs are open and the coordinators answer. The caller keeps requests away meanwhile; what is under way is
 * answered with errors that clients try again after.
 */
export async function resetNode(parts: ResetParts, { topics = 'declared' }: ResetOptions): Promise<void> {
  if (topics !== 'declared' && topics !== 'keep') {
    throw new ResetError(`The broker was not reset: topics: ${String(topics)}: allowed is declared or keep`)
  }
  const { coordination, replicas, groups, observation, atStart } = parts
  const { admin } = coordination
  const { deletions, alterations, creations, emptied } = plan(coordination.image, atStart, topics === 'keep')
  if (deletions.length > 0) {
    for (const result of await admin.deleteTopics(deletions, { timeoutMs })) {
      if (!result.ok && result.reason !== 'unknown-topic-id') throw new ResetError(`Topics stay: ${result.message}`)
    }
  }
  if (alterations.length > 0) {
    for (const result of await admin.alterConfigs(alterations, { timeoutMs })) {
      if (!result.ok) throw new ResetError(`Settings stay: ${result.message}`)
    }
  }
  for (const requests of inPieces(creations)) {
    for (const result of await admin.createTopics(requests, { timeoutMs })) {
      // A request that was under way may have made one.
      if (!result.ok && result.reason !== 'topic-exists')
        throw new ResetError(`Topic ${result.name}: ${result.message}`)
    }
  }
  const { image } = coordination
  const emptying = replicas.empty(
    emptied.flatMap((topicId) => image.topics.byId(topicId) ?? []),
    image,
  )
  groups.forget()
  await emptying
  await replicas.whenOpened()
  observation.onChange() // who waits for records has seen logs that are gone, and no metadata tell of it
  await observation.whenGroupsLoaded()
}

interface Plan {
  readonly deletions: { readonly topicId: Uuid }[]
  readonly alterations: AlterConfigRequest[]
  readonly creations: CreateTopicRequest[]
  readonly emptied: Uuid[]
}

function plan({ topics, configs }: MetadataImage, atStart: StartState, keepsOthers: boolean): Plan {
  const { deletions, alterations, creations, emptied }: Plan = {
    deletions: [],
    alterations: [],
    creations: [],
    emptied: [],
  }
  for (const topic of topics.all()) {
    const now = stateOf(topic, configs)
    const { name, topicId } = topic
    // Groups keep their coordinators, so that their members go on with them.
    const wanted = atStart.topics.get(name) ?? (keepsOthers || name === groupTopic ? now : undefined)
    if (wanted?.partitionCount !== now.partitionCount) {
      deletions.push({ topicId })
      continue
    }
    emptied.push(topicId)
    if (!isSame(now.configs, wanted.configs)) alterations.push(replacement('topic', name, wanted.configs))
  }
  for (const [name, { partitionCount, configs: wanted }] of atStart.topics) {
    if (topics.byName(name)?.partitions.length === partitionCount) continue
    creations.push({ name, partitionCount, replicationFactor: -1, configs: wanted })
  }
  for (const [name, wanted] of atStart.brokerConfigs) {
    if (!isSame(configs.of('broker', name), wanted)) alterations.push(replacement('broker', name, wanted))
  }
  return { deletions, alterations, creations, emptied }
}

function stateOf({ name, partitions }: TopicImage, configs: ConfigsImage): TopicState {
  return { partitionCount: partitions.length, configs: new Map(configs.of('topic', name)) }
}

function replacement(
  resourceType: AlterConfigRequest['resourceType'],
  resourceName: string,
  changes: Configs,
): AlterConfigRequest {
  return { resourceType, resourceName, changes, replaces: true }
}

function isSame(left: Configs, right: Configs): boolean {
  return left.size === right.size && [...left].every(([key, value]) => right.get(key) === value)
}

function inPieces(requests: readonly CreateTopicRequest[]): CreateTopicRequest[][] {
  const pieces: CreateTopicRequest[][] = []
  let left = 0
  for (const request of requests) {
    const count = 1 + request.partitionCount + request.configs.size
    if (pieces.length === 0 || left < count) {
      pieces.push([])
      left = recordsAtOnce
    }
    pieces.at(-1)!.push(request)
    left -= count
  }
  return pieces
}
