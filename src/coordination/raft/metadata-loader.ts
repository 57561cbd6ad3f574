import {
  decodeRecords,
  emptyImage,
  imageOfSnapshot,
  type MetadataDelta,
  MetadataDeltaBuilder,
  MetadataFormatError,
  type MetadataImage,
  metadataVersion,
  snapshotDelta,
} from '../../metadata/index.ts'
import type { Entry, Snapshot } from '../../raft/index.ts'
import { CoordinationError } from '../coordination-error.ts'
import { decodeSnapshot } from './metadata-snapshot.ts'

/**
 * Turns what the quorum committed into images, and hands them on. `applied` is the latest; `published` the latest that was
 * handed on. They differ only before `beginPublishing`, while the node catches up: what its last run left is not to be acted on.
 */
export class MetadataLoader {
  readonly #clusterId: string
  readonly #publish: (delta: MetadataDelta, image: MetadataImage) => void
  #applied: MetadataImage = emptyImage
  #published: MetadataImage = emptyImage
  #isPublishing: boolean = false

  /** `clusterId`: the one that this node belongs to. */
  constructor(clusterId: string, publish: (delta: MetadataDelta, image: MetadataImage) => void) {
    this.#clusterId = clusterId
    this.#publish = publish
  }

  get applied(): MetadataImage {
    return this.#applied
  }

  get published(): MetadataImage {
    return this.#published
  }

  /** Entries that follow on what is applied; they become one step. */
  onCommitted(entries: readonly Entry[]): void {
    const builder = new MetadataDeltaBuilder(this.#applied)
    for (const entry of entries) {
      if (entry.type === 'data') for (const record of decodeRecords(entry.data)) builder.replay(record)
    }
    const last = entries.at(-1)
    if (last === undefined) return
    const { delta, image } = builder.finish(last.index, last.term)
    this.#apply(delta, image)
  }

  /** Replaces everything. */
  onSnapshot({ index, term, data }: Snapshot): void {
    const image = imageOfSnapshot(decodeSnapshot(data), index, term)
    this.#apply(snapshotDelta(this.#applied, image), image)
  }

  /** Hands on what is applied, as a whole, and from then on each step. */
  beginPublishing(): void {
    if (this.#isPublishing) return
    this.#isPublishing = true
    this.#handOn(snapshotDelta(this.#published, this.#applied), this.#applied)
  }

  #apply(delta: MetadataDelta, image: MetadataImage): void {
    this.#check(image)
    this.#applied = image
    if (this.#isPublishing) this.#handOn(delta, image)
  }

  #handOn(delta: MetadataDelta, image: MetadataImage): void {
    this.#published = image
    this.#publish(delta, image)
  }

  #check({ clusterId, features }: MetadataImage): void {
    if (clusterId !== '' && clusterId !== this.#clusterId) {
      throw new CoordinationError(
        'wrong-cluster',
        `The metadata log is of cluster ${clusterId}; this node belongs to cluster ${this.#clusterId}`,
      )
    }
    const level = features.get(metadataVersion.feature) ?? 0
    if (level > metadataVersion.latest) {
      throw new MetadataFormatError(
        `${metadataVersion.feature} ${level} is newer than this version knows; allowed is up to ${metadataVersion.latest}`,
      )
    }
  }
}
