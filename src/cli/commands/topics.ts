import type { Cluster } from '../client/cluster.ts'
import { alterConfigs, type ConfigChange } from '../client/configs.ts'
import { RequestRefusedError } from '../client/errors.ts'
import {
  createPartitions,
  createTopics,
  deleteTopics,
  describeTopic,
  matchingTopics,
  type TopicDescription,
  type TopicOutcome,
} from '../client/topics.ts'
import { type ClusterCommandOptions, withCluster } from '../connect.ts'
import { exitCodes, UsageError } from '../exit.ts'
import { confirmed, counted, note, show, table } from '../output.ts'
import { parseSettings } from '../settings.ts'
import { printable } from '../table.ts'

export type TopicsOptions = ClusterCommandOptions

export interface ListOptions extends TopicsOptions {
  readonly internal?: boolean
}

/** Those that names and patterns mean, or all. */
export async function list(patterns: readonly string[], options: ListOptions): Promise<void> {
  await withCluster(options, async (cluster) => {
    const all = await cluster.allTopics()
    const wanted = patterns.length === 0 ? undefined : new Set(await matchingTopics(cluster, patterns))
    for (const name of wanted ?? []) if (!all.some((topic) => topic.name === name)) await refuseUnknown(cluster, name)
    const topics = all
      .filter((topic) => wanted?.has(topic.name) ?? (options.internal === true || !topic.isInternal))
      .map(({ name, partitions, isInternal }) => ({
        name,
        partitions: partitions.length,
        replicas: partitions[0]?.replicas.length ?? 0,
        ...(options.internal === true ? { internal: isInternal } : {}),
      }))
    await show(options, topics, () => {
      if (topics.length === 0) return 'No topics\n'
      return table(
        [
          { title: 'TOPIC', value: (topic) => topic.name },
          { title: 'PARTITIONS', value: (topic) => topic.partitions },
          { title: 'REPLICAS', value: (topic) => topic.replicas },
        ],
        topics,
      )
    })
  })
}

/** `topics crate` is read as `topics list crate`: whoever mistyped a command is told of that. */
async function refuseUnknown(cluster: Cluster, name: string): Promise<void> {
  const { nearestOf } = await import('../../config/index.ts')
  const command = nearestOf(name, ['list', 'create', 'describe', 'alter', 'delete'])
  if (command !== undefined) throw new UsageError(`There is no topic ${name}. Did you mean \`topics ${command}\`?`)
  await cluster.topic(name)
}

export interface CreateOptions extends TopicsOptions {
  readonly partitions?: number
  readonly replicationFactor?: number
  /** `key=value` texts. */
  readonly config?: readonly string[]
  readonly ifNotExists?: boolean
}

const topicAlreadyExists = 36
const unknownTopicOrPartition = 3

export async function create(names: readonly string[], options: CreateOptions): Promise<void> {
  const { partitions = -1, replicationFactor = -1 } = options
  const configs = Object.fromEntries(parseSettings('--config', options.config))
  await withCluster(options, async (cluster) => {
    const topics = names.map((name) => ({ name, partitions, replicationFactor, configs }))
    const created = await createTopics(cluster, topics)
    const tolerated = options.ifNotExists === true ? topicAlreadyExists : undefined
    await showOutcomes(cluster, options, created, tolerated, ({ name, partitions: count }) => {
      return `Topic ${printable(name)} created${count > 0 ? ` with ${counted(count, 'partition')}` : ''}`
    })
  })
}

export interface AlterOptions extends TopicsOptions {
  /** The number of partitions afterwards. */
  readonly partitions?: number
  /** `key=value` texts. */
  readonly config?: readonly string[]
  readonly deleteConfig?: readonly string[]
}

/** Partitions first: topics that can't have them keep their settings too. */
export async function alter(names: readonly string[], options: AlterOptions): Promise<void> {
  const { partitions, deleteConfig = [] } = options
  const changes: readonly ConfigChange[] = [
    ...[...parseSettings('--config', options.config)].map(
      ([key, value]) => ({ operation: 'set', key, value }) as const,
    ),
    ...deleteConfig.map((key) => ({ operation: 'delete', key, value: null }) as const),
  ]
  if (partitions === undefined && changes.length === 0) {
    throw new UsageError('Nothing to change: name --partitions, --config or --delete-config')
  }
  await withCluster(options, async (cluster) => {
    const outcomes: TopicOutcome[] = []
    const enlarged =
      partitions === undefined
        ? names.map((name) => ({ name, error: undefined }))
        : await createPartitions(cluster, names, partitions)
    for (const { name, error } of enlarged) {
      const unchanged = error !== undefined || changes.length === 0
      outcomes.push({
        name,
        error: unchanged ? error : await alterConfigs(cluster, { kind: 'topic', name }, changes, false),
      })
    }
    const result = partitions === undefined ? '' : `: ${counted(partitions, 'partition')}`
    await showOutcomes(cluster, options, outcomes, undefined, ({ name }) => `Topic ${printable(name)} altered${result}`)
  })
}

export interface DeleteOptions extends TopicsOptions {
  readonly yes?: boolean
  readonly ifExists?: boolean
}

export async function remove(names: readonly string[], options: DeleteOptions): Promise<void> {
  const question = `Delete ${counted(names.length, 'topic')} with all records (${names.join(', ')})?`
  if (options.yes !== true && !(await confirmed(question))) return
  await withCluster(options, async (cluster) => {
    const deleted = await deleteTopics(cluster, names)
    const tolerated = options.ifExists === true ? unknownTopicOrPartition : undefined
    await showOutcomes(cluster, options, deleted, tolerated, ({ name }) => `Topic ${printable(name)} deleted`)
  })
}

export interface DescribeOptions extends TopicsOptions {
  readonly all?: boolean
}

/** Those that names and patterns mean, or all but Kafka's own. */
export async function describe(patterns: readonly string[], options: DescribeOptions): Promise<void> {
  await withCluster(options, async (cluster) => {
    const topics: TopicDescription[] = []
    for (const name of await matchingTopics(cluster, patterns.length === 0 ? ['*'] : patterns)) {
      topics.push(await describeTopic(cluster, name, { allConfigs: options.all === true }))
    }
    await show(options, topics, () => topics.map(describedText).join('\n'))
  })
}

function describedText({ name, partitions, configs, configSources }: TopicDescription): string {
  const records = partitions.reduce((sum, { firstOffset, endOffset }) => sum + (endOffset ?? 0) - (firstOffset ?? 0), 0)
  const settings = Object.entries(configs).map(([key, value]) => {
    const source = configSources[key]
    return `  ${key}=${value ?? '(hidden)'}${source === 'topic' ? '' : ` (${source})`}\n`
  })
  const head = `${printable(name)}: ${counted(partitions.length, 'partition')}, offsets span ${counted(records, 'record')}\n`
  const columns = [
    { title: 'PARTITION', value: (each: (typeof partitions)[number]) => each.partition },
    { title: 'LEADER', value: (each: (typeof partitions)[number]) => (each.leader < 0 ? null : each.leader) },
    { title: 'REPLICAS', value: (each: (typeof partitions)[number]) => each.replicas.join(',') },
    { title: 'ISR', value: (each: (typeof partitions)[number]) => each.isr.join(',') },
    { title: 'STATE', value: stateOf },
    { title: 'FIRST OFFSET', value: (each: (typeof partitions)[number]) => each.firstOffset },
    { title: 'END OFFSET', value: (each: (typeof partitions)[number]) => each.endOffset },
  ]
  const errors = partitions.flatMap(({ error }) => (error === null ? [] : [`${error}\n`]))
  return `${head}${settings.map(printableLine).join('')}${table(columns, partitions)}${errors.map(printableLine).join('')}`
}

function stateOf({ leader, replicas, isr, error }: TopicDescription['partitions'][number]): string {
  if (leader < 0) return 'offline'
  if (error !== null) return 'failed'
  return isr.length < replicas.length ? 'under-replicated' : 'ok'
}

/** One line a topic on success; what failed goes to the standard error and makes the exit code. */
async function showOutcomes<Outcome extends TopicOutcome>(
  cluster: Cluster,
  options: TopicsOptions,
  outcomes: readonly Outcome[],
  tolerated: number | undefined,
  asText: (outcome: Outcome) => string,
): Promise<void> {
  const results: { readonly name: string; readonly error?: string }[] = []
  for (const { name, error } of outcomes) {
    const errorCode = error instanceof RequestRefusedError ? error.errorCode : undefined
    if (error === undefined || (tolerated !== undefined && errorCode === tolerated)) results.push({ name })
    else if (errorCode !== unknownTopicOrPartition) results.push({ name, error: error.message })
    else results.push({ name, error: (await cluster.unknownTopic(name)).message })
  }
  const done = outcomes.filter((outcome) => outcome.error === undefined)
  await show(options, results, () => done.map((outcome) => `${asText(outcome)}\n`).join(''))
  for (const { error } of results) {
    if (error === undefined) continue
    note(`rookery: ${error}`)
    process.exitCode = exitCodes.fault
  }
}

function printableLine(line: string): string {
  return `${printable(line.slice(0, -1))}\n`
}
