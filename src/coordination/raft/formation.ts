import { deferred, type Uuid } from '../../base/index.ts'
import type { Timers } from '../../platform/index.ts'
import type { NodeId, Voter } from '../../raft/index.ts'
import type { NodeDescription, NodeMessages, RpcNetwork, RpcTarget } from '../../rpc/index.ts'
import type { Logger } from '../../telemetry/index.ts'
import { CoordinationError } from '../coordination-error.ts'

export interface FormationOptions {
  readonly network: RpcNetwork
  readonly messages: NodeMessages
  readonly timers: Timers
  readonly logger: Logger
  readonly nodeId: number
  /** Durable already: whoever is told it may write it down as a voter's. */
  readonly directoryId: Uuid
  /** All of them, this node too, as `controller.quorum.voters` names them. */
  readonly voters: ReadonlyMap<number, RpcTarget>
  /** The id that a new cluster gets. */
  readonly newClusterId: string
  /** Aborted when the node stops: the wait rejects. */
  readonly signal: AbortSignal
}

export interface Formation {
  readonly clusterId: string
  /** What the log of this node begins with. Empty: the cluster is there, and this node isn't known to it as a voter. */
  readonly voters: readonly Voter[]
}

/** Between two rounds of asking. */
const roundMs = 100
const callTimeoutMs = 1000
/** Rounds between two lines of log that say for whom this node waits. */
const roundsPerReport = 50

/**
 * The first boot of a quorum of several voters, on a node whose folders are empty. Voters are formatted only when it is certain
 * that none of them has a log already: a majority of empty disks would otherwise elect a leader that forgets what the cluster
 * knows.
 *
 * The voter with the lowest id decides, once it has reached every other and found all empty: who votes, by directory ids too.
 * The others take over what it says. A node that finds a cluster formed of which it is a voter, with this very directory,
 * joins it: it never voted. One that finds a cluster formed with another directory of its own has lost its disk, and
 * follows without a vote until it is added again.
 *
 * Throws `CoordinationError`: other nodes have other voters in their settings, or the node stops.
 */
export async function formQuorum(options: FormationOptions): Promise<Formation> {
  const { voters, nodeId, timers, logger, signal } = options
  for (let round = 1; ; round++) {
    const found = await describeOthers(options)
    if (signal.aborted) throw new CoordinationError('stopped', 'The node stops before its cluster was formed')
    for (const description of found.values()) checkVoters(description, options)
    // One that follows without a vote may not know yet who has one.
    const formed = [...found.values()].filter(({ clusterId, voters }) => clusterId !== '' && voters.length > 0)
    const [first] = formed
    if (first !== undefined) {
      return joinFormed(formed.find((description) => namesAsVoter(description, options)) ?? first, options)
    }
    const missing = [...voters.keys()].filter((id) => id !== nodeId && found.get(id)?.clusterId !== '')
    if (missing.length === 0 && nodeId === Math.min(...voters.keys())) return decide(found, options)
    if (round % roundsPerReport === 0) {
      const waitsFor = missing.map((id) => nameOf(id, voters.get(id)!))
      logger.info(
        { waitsFor },
        missing.length > 0 ? 'new cluster waits for voters' : 'new cluster waits for its first voter',
      )
    }
    await pause(timers, signal)
  }
}

async function describeOthers(options: FormationOptions): Promise<ReadonlyMap<number, NodeDescription>> {
  const { voters, nodeId, network, messages } = options
  const found = new Map<number, NodeDescription>()
  await Promise.all(
    [...voters].map(async ([id, target]) => {
      if (id === nodeId) return
      const channel = network.connect(target)
      try {
        const request = messages.describeRequest.encode({ clusterId: '', nodeId })
        const description = messages.nodeDescription.decode(await channel.call('Describe', request, callTimeoutMs))
        if (description.nodeId === id) found.set(id, description)
      } catch {
        // Not up yet, or not this far: asked again.
      } finally {
        channel.close()
      }
    }),
  )
  return found
}

function decide(found: ReadonlyMap<number, NodeDescription>, options: FormationOptions): Formation {
  const { voters, nodeId, directoryId, newClusterId, logger } = options
  const members = [...voters.keys()].sort((a, b) => a - b)
  logger.info({ clusterId: newClusterId, voters: members }, 'new cluster formed')
  return {
    clusterId: newClusterId,
    voters: members.map((id) =>
      voter(id, id === nodeId ? directoryId : (found.get(id)!.directoryId as Uuid), endpointOf(voters.get(id)!)),
    ),
  }
}

function joinFormed(description: NodeDescription, options: FormationOptions): Formation {
  const { nodeId, directoryId, logger } = options
  const { clusterId } = description
  if (!namesAsVoter(description, options)) {
    logger.warn(
      { clusterId, nodeId, directoryId },
      'cluster does not know this folder as a voter: following without a vote, until it is added with: rookery quorum add-voter',
    )
    return { clusterId, voters: [] }
  }
  logger.info({ clusterId, toldBy: description.nodeId }, 'joined the new cluster')
  return {
    clusterId,
    voters: description.voters.map((each) => voter(each.id, each.directoryId as Uuid, each.endpoint)),
  }
}

function namesAsVoter({ voters }: NodeDescription, { nodeId, directoryId }: FormationOptions): boolean {
  return voters.some((each) => each.id === nodeId && each.directoryId === directoryId)
}

function voter(id: number, directoryId: Uuid, endpoint: string): Voter {
  return { id: id as NodeId, directoryId, ...(endpoint === '' ? {} : { endpoint }) }
}

/** All voters must mean the same quorum: two that overlap would each have a majority. */
function checkVoters({ nodeId, configuredVoters }: NodeDescription, { voters, nodeId: own }: FormationOptions): void {
  const theirs = configuredVoters.map(({ id, endpoint }) => `${id}@${endpoint}`).sort()
  const ours = [...voters].map(([id, target]) => `${id}@${endpointOf(target)}`).sort()
  if (theirs.join(',') === ours.join(',')) return
  throw new CoordinationError(
    'wrong-cluster',
    `controller.quorum.voters differs: node ${own} has ${ours.join(',')}, node ${nodeId} has ${theirs.join(',') || 'none'}`,
  )
}

export function endpointOf({ host, port }: RpcTarget): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`
}

function nameOf(id: number, target: RpcTarget): string {
  return `${id}@${endpointOf(target)}`
}

function pause(timers: Timers, signal: AbortSignal): Promise<void> {
  const passed = deferred<void>()
  const timer = timers.set(roundMs, () => passed.resolve())
  signal.addEventListener(
    'abort',
    () => {
      timer.cancel()
      passed.resolve()
    },
    { once: true },
  )
  return passed.promise
}
