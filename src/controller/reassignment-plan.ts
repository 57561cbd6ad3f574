import type { BrokerId } from '../base/index.ts'
import type { PartitionImage } from '../metadata/index.ts'

/** The replicas of a partition on their way to others. */
export type ReplicaState = Pick<PartitionImage, 'isr' | 'replicas' | 'addingReplicas' | 'removingReplicas'>

type Assignment = Omit<ReplicaState, 'isr'>

export function isReassigned(partition: Pick<PartitionImage, 'addingReplicas' | 'removingReplicas'>): boolean {
  return partition.addingReplicas.length > 0 || partition.removingReplicas.length > 0
}

/** First step towards `target`: its replicas in its order, then those that are to go when it is reached. */
export function plannedReassignment(current: readonly BrokerId[], target: readonly BrokerId[]): Assignment {
  const removingReplicas = current.filter((brokerId) => !target.includes(brokerId)).sort(ascending)
  const addingReplicas = target.filter((brokerId) => !current.includes(brokerId)).sort(ascending)
  return { replicas: [...target, ...removingReplicas], addingReplicas, removingReplicas }
}

/** Last step: when every replica that stays is in the ISR, the others go. The state itself while that isn't so. */
export function completedReassignment(state: ReplicaState): ReplicaState {
  const { isr, replicas, removingReplicas } = state
  if (!isReassigned(state)) return state
  const staying = (brokerId: BrokerId) => !removingReplicas.includes(brokerId)
  const newReplicas = replicas.filter(staying)
  if (newReplicas.length === 0 || !newReplicas.every((brokerId) => isr.includes(brokerId))) return state
  return { isr: isr.filter(staying), replicas: newReplicas, addingReplicas: [], removingReplicas: [] }
}

/**
 * Back to the replicas from before the reassignment, without those that it added. The ISR may be empty: then only added
 * replicas were in sync, and to go back may lose what was acknowledged.
 */
export function revertedReassignment(partition: ReplicaState): ReplicaState {
  const { isr, replicas, addingReplicas } = partition
  const original = (brokerId: BrokerId) => !addingReplicas.includes(brokerId)
  return { isr: isr.filter(original), replicas: replicas.filter(original), addingReplicas: [], removingReplicas: [] }
}

function ascending(a: BrokerId, b: BrokerId): number {
  return a - b
}
