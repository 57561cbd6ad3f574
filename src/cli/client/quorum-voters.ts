import type { Uuid } from '../../base/index.ts'
import { apis } from '../../protocol/index.ts'
import type { Cluster } from './cluster.ts'
import { expectNoError } from './errors.ts'

/** A node and the folder of its metadata log, which together have a vote. */
export interface QuorumVoter {
  readonly id: number
  readonly directoryId: Uuid
}

/** Gives a vote to a controller that follows already. Throws `RequestRefusedError`. */
export async function addVoter(
  cluster: Cluster,
  { id, directoryId }: QuorumVoter,
  { host, port }: { readonly host: string; readonly port: number },
): Promise<void> {
  const connection = await cluster.any()
  const { timeoutMs } = cluster
  const listeners = [{ name: 'CONTROLLER', host, port }]
  const request = { clusterId: null, timeoutMs, voterId: id, voterDirectoryId: directoryId, listeners }
  const answer = await connection.call(apis.AddRaftVoter, request, patience(cluster))
  expectNoError(`Voter ${id}`, answer.errorCode, answer.errorMessage)
}

/** Takes a vote; the node may follow on. Throws `RequestRefusedError`. */
export async function removeVoter(cluster: Cluster, { id, directoryId }: QuorumVoter): Promise<void> {
  const connection = await cluster.any()
  const request = { clusterId: null, voterId: id, voterDirectoryId: directoryId }
  const answer = await connection.call(apis.RemoveRaftVoter, request, patience(cluster))
  expectNoError(`Voter ${id}`, answer.errorCode, answer.errorMessage)
}

/** The broker gives up before this does. */
function patience({ timeoutMs }: Cluster) {
  return { timeoutMs: timeoutMs + 1000 }
}
