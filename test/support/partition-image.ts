import type { PartitionImage } from '../../src/metadata/index.ts'

/** The part of a partition that nothing happens to: no reassignment, no replica outside the ISR that may lead. */
export const settledReplicas: Pick<
  PartitionImage,
  'addingReplicas' | 'removingReplicas' | 'elr' | 'lastKnownElr' | 'leaderRecoveryState' | 'directories'
> = {
  addingReplicas: [],
  removingReplicas: [],
  elr: [],
  lastKnownElr: [],
  leaderRecoveryState: 'recovered',
  directories: [],
}
