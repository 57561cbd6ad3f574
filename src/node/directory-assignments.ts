import { type BrokerId, messageOf, type Uuid } from '../base/index.ts'
import type { AssignReplicasResult, Coordination, ReplicaAssignment } from '../coordination/index.ts'
import { directoryOf } from '../metadata/index.ts'
import type { Timer, Timers } from '../platform/index.ts'
import type { Logger } from '../telemetry/index.ts'

/** What one request says; the next one has the rest. */
const maxAssignments = 2000
const retryMs = 1000

/**
 * Tells the controller in which of this broker's log directories its replicas are (KIP-858), so that it knows which ones fail
 * with a directory. One request at a time; what the metadata says already is not told.
 */
export class DirectoryAssignments {
  readonly #coordination: Pick<Coordination, 'image' | 'assignReplicas'>
  readonly #brokerId: BrokerId
  readonly #timers: Timers
  readonly #logger: Logger
  /** The latest of each replica. */
  readonly #pending = new Map<string, ReplicaAssignment>()
  /** Of which a request failed, that may yet be acted on: what comes after it is told even if the metadata says it already. */
  readonly #uncertain = new Set<string>()
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
    this.#pending.set(`${topicId}-${partition}`, { topicId, partition, directory })
    this.#schedule(0)
  }

  stop(): void {
    this.#isStopped = true
    this.#timer?.cancel()
  }

  #schedule(delayMs: number): void {
    if (this.#isAsking || this.#timer !== undefined || this.#pending.size === 0 || this.#isStopped) return
    this.#timer = this.#timers.set(delayMs, () => {
      this.#timer = undefined
      void this.#tellAll()
    })
  }

  async #tellAll(): Promise<void> {
    this.#isAsking = true
    let delayMs = 0
    const news: [string, ReplicaAssignment][] = []
    for (const [key, assignment] of this.#pending) {
      if (news.length === maxAssignments) break
      if (this.#isNews(key, assignment)) {
        news.push([key, assignment])
      } else {
        this.#pending.delete(key)
        this.#uncertain.delete(key)
      }
    }
    try {
      const result = await this.#told(news.map(([, assignment]) => assignment))
      if (result.ok || result.reason === 'unsupported-version') {
        for (const [key, assignment] of news) {
          if (this.#pending.get(key) === assignment) this.#pending.delete(key)
          this.#uncertain.delete(key)
        }
      } else {
        delayMs = retryMs
      }
    } catch (error) {
      this.#logger.warn({ replicas: news.length, error: messageOf(error) }, 'log directories not told, trying again')
      for (const [key] of news) this.#uncertain.add(key)
      delayMs = retryMs
    } finally {
      this.#isAsking = false
    }
    this.#schedule(delayMs)
  }

  async #told(assignments: readonly ReplicaAssignment[]): Promise<AssignReplicasResult> {
    return assignments.length === 0 ? { ok: true, results: [] } : await this.#coordination.assignReplicas(assignments)
  }

  /** Not of a topic that is gone, or a replica that isn't this broker's any more. */
  #isNews(key: string, { topicId, partition, directory }: ReplicaAssignment): boolean {
    const found = this.#coordination.image.topics.byId(topicId)?.partitions[partition]
    if (!found?.replicas.includes(this.#brokerId)) return false
    return this.#uncertain.has(key) || directoryOf(found, this.#brokerId) !== directory
  }
}
