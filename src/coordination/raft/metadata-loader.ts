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

/** Turns what the quorum committed into images, and hands each step on. Throws what it finds wrong with it, and what `onStep` throws. */
export class MetadataLoader {
  readonly #clusterId: string
  readonly #onStep: (delta: MetadataDelta, image: MetadataImage) => void
  #image: MetadataImage = emptyImage

  /** `clusterId`: the one that this node belongs to. */
  constructor(clusterId: string, onStep: (delta: MetadataDelta, image: MetadataImage) => void) {
    this.#clusterId = clusterId
    this.#onStep = onStep
  }

  get image(): MetadataImage {
    return this.#image
  }

  /** Entries that follow on what is applied; they become one step. */
  onCommitted(entries: readonly Entry[]): void {
    const builder = new MetadataDeltaBuilder(this.#image)
    for (const entry of entries) {
      if (entry.type === 'data') for (const record of decodeRecords(entry.data)) builder.replay(record)
    }
    const last = entries.at(-1)
    if (last === undefined) return
    const { delta, image } = builder.finish(last.index, last.term)
    this.#apply(delta, image)
  }

  /** Replaces everything. */
  onSnapshot({ index, term, data }: Pick<Snapshot, 'index' | 'term' | 'data'>): void {
    const image = imageOfSnapshot(decodeSnapshot(data), index, term)
    this.#apply(snapshotDelta(this.#image, image), image)
  }

  #apply(delta: MetadataDelta, image: MetadataImage): void {
    this.#check(image)
    this.#image = image
    this.#onStep(delta, image)
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
