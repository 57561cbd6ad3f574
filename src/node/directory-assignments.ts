import { type BrokerId, messageOf, type Uuid } from '../base/index.ts'
import type { AssignReplicasResult, Coordination, ReplicaAssignment } from '../coordination/index.ts'
import { directoryOf, type MetadataDelta, type MetadataImage } from '../metadata/index.ts'
import type { Timer, Timers } from '../platform/index.ts'
import type { Logger } from '../telemetry/index.ts'

/** What one request says; the next one has the rest. */
const maxAssignments = 2000
const retryMs = 1000

/**
 * Tells the controller in which of this broker's log directories its replicas are (KIP-858), so that it knows which ones fail
 * with a directory. One request at a time; what the metadata says already is not told.
 *
 * It remembers where each replica is, and looks again at whatever the metadata says anew: a request whose answer never came may
 * still be acted on, by a controller of before too, after a later one was; and a replica that goes and comes back between two looks has
 * no directory any more.
 */
export class DirectoryAssignments {
  readonly #coordination: Pick<Coordination, 'image' | 'assignReplicas'>
  readonly #brokerId: BrokerId
  readonly #timers: Timers
  readonly #logger: Logger
  /** Where each replica of this broker is, as far as it was told. */
  readonly #placed = new Map<string, ReplicaAssignment>()
  /** Keys of those of which the metadata may say something else. */
  readonly #due = new Set<string>()
  /** Of which a request failed, that may yet be acted on: what comes after it is told even if the metadata says it already. */
  readonly #uncertain = new Set<string>()
  /** The controller keeps no directories, with the features that are finalized. */
  #isUnsupported = false
  #timer: Timer | undefined
  #isAsking = false
  #isStopped = false

  constructor(options: {
    readonly coordination: Pick<Coordination, 'image' | 'assignReplicas'>
    readonly brokerId: BrokerId
    readonly timers: Timers
    readonly logger: Logger
  }) {
    this.#coordination = options.coordination
    this.#brokerId = options.brokerId
    this.#timers = options.timers
    this.#logger = options.logger
  }

  /** A replica is in `directory` from now on. */
  tell(topicId: Uuid, partition: number, directory: Uuid): void {
    const key = keyOf(topicId, partition)
    this.#placed.set(key, { topicId, partition, directory })
    this.#due.add(key)
    this.#schedule(0)
  }

  /** The metadata has changed to `image`, which `coordination.image` is. */
  applyDelta(delta: MetadataDelta, image: MetadataImage): void {
    if (image.features !== delta.base.features) this.#isUnsupported = false
    if (delta.isSnapshot) for (const key of [...this.#placed.keys()]) this.#lookAt(key)
    for (const { topicId, partitions } of delta.deletedTopics.values()) {
      for (const { partition } of partitions) this.#forget(keyOf(topicId, partition))
    }
    for (const [topicId, { partitions }] of delta.changedTopics) {
      for (const partition of partitions) this.#lookAt(keyOf(topicId, partition))
    }
    this.#schedule(0)
  }

  stop(): void {
    this.#isStopped = true
    this.#timer?.cancel()
  }

  #lookAt(key: string): void {
    const assignment = this.#placed.get(key)
    if (assignment === undefined) return
    const known = this.#knownOf(assignment)
    if (known === undefined) this.#forget(key)
    else if (known !== assignment.directory) this.#due.add(key)
  }

  #forget(key: string): void {
    this.#placed.delete(key)
    this.#due.delete(key)
    this.#uncertain.delete(key)
  }

  #schedule(delayMs: number): void {
    if (this.#isAsking || this.#timer !== undefined || this.#due.size === 0) return
    if (this.#isUnsupported || this.#isStopped) return
    this.#timer = this.#timers.set(delayMs, () => {
      this.#timer = undefined
      void this.#tellAll()
    })
  }

  async #tellAll(): Promise<void> {
    this.#isAsking = true
    let delayMs = 0
    const news = this.#takeNews()
    const { features } = this.#coordination.image
    try {
      const result = await this.#told(news.map(([, assignment]) => assignment))
      const isNewer = this.#coordination.image.features !== features
      this.#isUnsupported = !result.ok && result.reason === 'unsupported-version' && !isNewer
      if (result.ok) {
        for (const [i, [key, assignment]] of news.entries()) {
          if (this.#placed.get(key) === assignment) this.#due.delete(key)
          this.#uncertain.delete(key)
          // The image may hold what was acted on after this, and was there before the answer.
          if (result.results[i]?.ok) this.#lookAt(key)
        }
      } else {
        delayMs = retryMs
      }
    } catch (error) {
      this.#logger.warn({ replicas: news.length, error: messageOf(error) }, 'log directories not told, trying again')
      for (const [key] of news) if (this.#placed.has(key)) this.#uncertain.add(key)
      delayMs = retryMs
    } finally {
      this.#isAsking = false
    }
    this.#schedule(delayMs)
  }

  /** What one request is to say. */
  #takeNews(): [string, ReplicaAssignment][] {
    const news: [string, ReplicaAssignment][] = []
    for (const key of this.#due) {
      if (news.length === maxAssignments) break
      const assignment = this.#placed.get(key)!
      const known = this.#knownOf(assignment)
      if (known === undefined) this.#forget(key)
      else if (this.#uncertain.has(key) || known !== assignment.directory) news.push([key, assignment])
      else this.#due.delete(key)
    }
    return news
  }

  async #told(assignments: readonly ReplicaAssignment[]): Promise<AssignReplicasResult> {
    return assignments.length === 0 ? { ok: true, results: [] } : await this.#coordination.assignReplicas(assignments)
  }

  /** Undefined: the topic is gone, or the replica isn't this broker's any more. */
  #knownOf({ topicId, partition }: ReplicaAssignment): Uuid | undefined {
    const found = this.#coordination.image.topics.byId(topicId)?.partitions[partition]
    return found?.replicas.includes(this.#brokerId) ? directoryOf(found, this.#brokerId) : undefined
  }
}

function keyOf(topicId: Uuid, partition: number): string {
  return `${topicId}-${partition}`
}
