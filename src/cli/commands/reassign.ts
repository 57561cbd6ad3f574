import { readFile } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { messageOf } from '../../base/index.ts'
import type { Cluster } from '../client/cluster.ts'
import { type Placement, planReassignments } from '../client/reassignment-plan.ts'
import {
  alterReassignments,
  listReassignments,
  type OngoingReassignment,
  type PartitionName,
  type ReassignmentChange,
} from '../client/reassignments.ts'
import { moveToFolders, notInFolders, type ReplicaFolder } from '../client/replica-folders.ts'
import { removeThrottle, setThrottle, throttleOf } from '../client/replication-throttle.ts'
import { matchingTopics } from '../client/topics.ts'
import { type ClusterCommandOptions, withCluster } from '../connect.ts'
import { UsageError } from '../exit.ts'
import { counted, note, Progress, show, table, write } from '../output.ts'
import { showPartitionOutcomes } from '../partition-outcomes.ts'
import { printable } from '../table.ts'

export type ReassignOptions = ClusterCommandOptions

/** The reassignments that run. */
export async function list(options: ReassignOptions): Promise<void> {
  await withCluster(options, async (cluster) => {
    const ongoing = await listReassignments(cluster)
    await show(options, ongoing, () => {
      if (ongoing.length === 0) return 'No reassignments\n'
      return table(
        [
          { title: 'PARTITION', value: ({ topic, partition }: OngoingReassignment) => `${topic}-${partition}` },
          { title: 'REPLICAS', value: ({ replicas }) => replicas.join(',') },
          { title: 'ADDING', value: ({ adding }) => adding.join(',') },
          { title: 'REMOVING', value: ({ removing }) => removing.join(',') },
        ],
        ongoing,
      )
    })
  })
}

export interface PlanOptions extends ReassignOptions {
  /** Ids of brokers; all when left out. */
  readonly to?: readonly number[]
  readonly replicationFactor?: number
}

/** Writes a plan that spreads topics over brokers: JSON, as Kafka's own tool takes it too. */
export async function plan(patterns: readonly string[], options: PlanOptions): Promise<void> {
  await withCluster(options, async (cluster) => {
    const { brokers } = await cluster.refresh([])
    const known = brokers.map(({ nodeId }) => nodeId).sort((a, b) => a - b)
    const to = options.to === undefined ? known : [...new Set(options.to)]
    for (const id of to) {
      if (!known.includes(id)) throw new UsageError(`There is no broker ${id}; there are ${known.join(', ')}`)
    }
    const { replicationFactor } = options
    if (replicationFactor !== undefined && replicationFactor > to.length) {
      throw new UsageError(`${counted(to.length, 'broker')} can't have ${replicationFactor} replicas of a partition`)
    }
    const placements = await placementsOf(cluster, patterns)
    const partitions = planReassignments(placements, to, replicationFactor)
    note(`${partitions.length} of ${counted(placements.length, 'partition')} would change`)
    await write(`${JSON.stringify({ version: 1, partitions })}\n`)
  })
}

async function placementsOf(cluster: Cluster, patterns: readonly string[]): Promise<Placement[]> {
  const placements: Placement[] = []
  for (const name of await matchingTopics(cluster, patterns)) {
    const { partitions } = await cluster.topic(name)
    for (const { partition, replicas } of partitions) placements.push({ topic: name, partition, replicas })
  }
  return placements
}

export interface StartOptions extends ReassignOptions {
  readonly wait?: boolean
  /** Bytes a second that each broker may give, and take, meanwhile; waits as `wait` does. */
  readonly throttle?: number
}

/** Between two looks at how far it is. */
const pollMs = 500

/** Begins what a plan says, and with `wait` or a throttle stays until it is done. */
export async function start(path: string, options: StartOptions): Promise<void> {
  const { placements, folders } = await readPlan(path)
  await withCluster(options, async (cluster) => {
    if (options.throttle === undefined) return await startAndWait(cluster, placements, folders, options)
    const before = await Promise.all(placements.map((each) => placementNow(cluster, each)))
    const throttle = throttleOf(before, placements)
    try {
      await setThrottle(cluster, throttle, options.throttle)
      await startAndWait(cluster, placements, folders, { ...options, wait: true })
    } finally {
      await removeThrottle(cluster, throttle)
    }
  })
}

async function placementNow(cluster: Cluster, { topic, partition }: Placement): Promise<Placement> {
  const { partitions } = await cluster.topic(topic)
  return { topic, partition, replicas: partitions.find((each) => each.partition === partition)?.replicas ?? [] }
}

async function startAndWait(
  cluster: Cluster,
  placements: readonly Placement[],
  folders: readonly ReplicaFolder[],
  options: StartOptions,
): Promise<void> {
  await moveToFolders(cluster, folders) // first: replicas that come are made where they are to be
  const outcomes = await alterReassignments(cluster, placements)
  await showPartitionOutcomes(options, outcomes, (name) => `Partition ${name}: reassignment begun`)
  const begun = new Set(outcomes.filter(({ error }) => error === undefined).map(nameOf))
  const toMove = folders.filter((each) => begun.has(nameOf(each)))
  if (options.wait === true) await untilDone(cluster, begun, toMove)
}

async function untilDone(
  cluster: Cluster,
  begun: ReadonlySet<string>,
  folders: readonly ReplicaFolder[],
): Promise<void> {
  const progress = new Progress()
  for (;;) {
    const running = (await listReassignments(cluster)).filter((each) => begun.has(nameOf(each)))
    const moving = running.length > 0 ? [] : await notInFolders(cluster, folders)
    const left = new Set([...running, ...moving].map(nameOf))
    if (left.size === 0) break
    progress.show(() => `${begun.size - left.size} of ${counted(begun.size, 'partition')} done`)
    await sleep(pollMs)
  }
  progress.clear()
  note(`${counted(begun.size, 'partition')} reassigned`)
}

export interface CancelOptions extends ReassignOptions {
  readonly all?: boolean
}

/** Cancels those of a plan, or all that run: replicas are again where they were. */
export async function cancel(path: string | undefined, options: CancelOptions): Promise<void> {
  if ((path === undefined) === (options.all !== true)) throw new UsageError('Name a plan, or --all')
  const planned = path === undefined ? undefined : (await readPlan(path)).placements
  await withCluster(options, async (cluster) => {
    const named: readonly PartitionName[] = planned ?? (await listReassignments(cluster))
    const changes = named.map(({ topic, partition }): ReassignmentChange => ({ topic, partition, replicas: null }))
    const outcomes = changes.length === 0 ? [] : await alterReassignments(cluster, changes)
    await showPartitionOutcomes(options, outcomes, (name) => `Partition ${name}: reassignment cancelled`)
    if (outcomes.length === 0) note('No reassignments')
  })
}

function nameOf({ topic, partition }: PartitionName): string {
  return `${topic}-${partition}`
}

interface Plan {
  readonly placements: readonly Placement[]
  /** Of those replicas for which the plan names one. */
  readonly folders: readonly ReplicaFolder[]
}

/** Throws `UsageError`. */
async function readPlan(path: string): Promise<Plan> {
  const invalid = (what: string) => new UsageError(`${printable(path)} is no plan of reassignments: ${what}`)
  let plan: unknown
  try {
    plan = JSON.parse(await readFile(path, 'utf8'))
  } catch (error) {
    throw invalid(messageOf(error))
  }
  const { version, partitions } = (plan ?? {}) as { readonly version?: unknown; readonly partitions?: unknown }
  if (version !== 1) throw invalid('version has to be 1')
  if (!Array.isArray(partitions) || partitions.length === 0) throw invalid('it has no list of partitions')
  const folders: ReplicaFolder[] = []
  const placements = partitions.map((each: unknown) => {
    if (!isPlacement(each)) throw invalid(`a partition needs topic, partition and replicas: ${JSON.stringify(each)}`)
    const { topic, partition, replicas, log_dirs: logDirs = [] } = each
    if (logDirs.length !== 0 && logDirs.length !== replicas.length) {
      throw invalid(`log_dirs has to name a folder, or any, for each replica: ${JSON.stringify(each)}`)
    }
    for (const [index, folder] of logDirs.entries()) {
      if (folder !== 'any') folders.push({ topic, partition, broker: replicas[index]!, path: folder })
    }
    return { topic, partition, replicas }
  })
  return { placements, folders }
}

function isPlacement(value: unknown): value is Placement & { readonly log_dirs?: readonly string[] } {
  if (typeof value !== 'object' || value === null) return false
  const { topic, partition, replicas, log_dirs: folders = [] } = value as Readonly<Record<string, unknown>>
  const isId = (id: unknown) => typeof id === 'number' && Number.isInteger(id) && id >= 0 && id < 2 ** 31
  const isList = Array.isArray(replicas) && replicas.length > 0 && replicas.every(isId)
  const areFolders = Array.isArray(folders) && folders.every((folder) => typeof folder === 'string')
  return typeof topic === 'string' && isId(partition) && isList && areFolders
}
