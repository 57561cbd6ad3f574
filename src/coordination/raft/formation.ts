import { addressText, deferred, messageOf, type Uuid } from '../../base/index.ts'
import type { Timers } from '../../platform/index.ts'
import type { NodeId, Voter } from '../../raft/index.ts'
import { type NodeDescription, type NodeMessages, RpcError, type RpcNetwork, type RpcTarget } from '../../rpc/index.ts'
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
  /** Of this run of the process. */
  readonly incarnationId: Uuid
  /** All of them, this node too, as `controller.quorum.voters` names them. */
  readonly voters: ReadonlyMap<number, RpcTarget>
  /** The id that a new cluster gets, and whether this node belongs to no other. */
  readonly newClusterId: string
  readonly isClusterIdGiven: boolean
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
/** The first line of log that says for whom this node waits comes after so many rounds, the others this far apart. */
const roundsBeforeReport = 10
const roundsPerReport = 50
/** Rounds for which a node that refuses to go on still answers: the other side is to see what differs, too. */
const roundsBeforeRefusal = 5

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
 * Throws `CoordinationError`: other nodes have other voters in their settings, are of several clusters or of another than
 * this node, another process answers where this node should, or the node stops.
 */
export async function formQuorum(options: FormationOptions): Promise<Formation> {
  const { voters, nodeId, timers, logger, signal } = options
  for (let round = 1; ; round++) {
    const { found, faults } = await describeAll(options)
    throwIfStopped(signal)
    const contradiction = contradictionOf(found, options)
    if (contradiction !== undefined) {
      logger.error({ reason: contradiction }, 'cluster not formed')
      for (let rest = roundsBeforeRefusal; rest > 0; rest--) await pause(timers, signal)
      throwIfStopped(signal)
      throw new CoordinationError('wrong-cluster', contradiction)
    }
    found.delete(nodeId)
    // One that follows without a vote may not know yet who has one.
    const formed = [...found.values()].filter(
      ({ clusterId, voters: members }) => clusterId !== '' && members.length > 0,
    )
    const [first] = formed
    if (first !== undefined) {
      return joinFormed(formed.find((description) => namesAsVoter(description, options)) ?? first, options)
    }
    const missing = [...voters.keys()].filter((id) => id !== nodeId && found.get(id)?.clusterId !== '')
    if (missing.length === 0 && nodeId === Math.min(...voters.keys())) return decide(found, options)
    if (round % roundsPerReport === roundsBeforeReport) {
      const waitsFor = missing.map((id) => `${nameOf(id, voters.get(id)!)} (${faults.get(id)})`)
      if (missing.length > 0) logger.info({ waitsFor }, 'new cluster waits for voters')
      else logger.info({ waitsFor: [Math.min(...voters.keys())] }, 'new cluster waits for the voter that forms it')
    }
    await pause(timers, signal)
  }
}

interface Descriptions {
  /** By the id under which the settings have them; this node too, where it reaches itself. */
  readonly found: Map<number, NodeDescription>
  /** Why others weren't found. For people. */
  readonly faults: ReadonlyMap<number, string>
}

async function describeAll(options: FormationOptions): Promise<Descriptions> {
  const { voters, nodeId, network, messages } = options
  const found = new Map<number, NodeDescription>()
  const faults = new Map<number, string>()
  await Promise.all(
    [...voters].map(async ([id, target]) => {
      const channel = network.connect(target)
      try {
        const request = messages.describeRequest.encode({ clusterId: '', nodeId })
        const description = messages.nodeDescription.decode(await channel.call('Describe', request, callTimeoutMs))
        if (description.nodeId === id || id === nodeId) found.set(id, description)
        else faults.set(id, `node ${description.nodeId} answers there`)
      } catch (error) {
        // Not up yet, or not this far: asked again.
        const isRefused = error instanceof RpcError && error.reason === 'connection-refused'
        faults.set(id, isRefused ? 'nothing listens there' : messageOf(error))
      } finally {
        channel.close()
      }
    }),
  )
  return { found, faults }
}

/** What keeps these nodes from being one cluster, for people; undefined when nothing does. */
function contradictionOf(found: ReadonlyMap<number, NodeDescription>, options: FormationOptions): string | undefined {
  const { voters, nodeId, incarnationId, newClusterId, isClusterIdGiven } = options
  const self = found.get(nodeId)
  if (self !== undefined && self.incarnationId !== incarnationId) {
    const place = `${addressText(voters.get(nodeId)!)}, where controller.quorum.voters has node ${nodeId}`
    return self.nodeId === nodeId
      ? `Two nodes have node.id ${nodeId}: another process answers at ${place}`
      : `Node ${self.nodeId} answers at ${place}`
  }
  const ours = [...voters].map(([id, target]) => nameOf(id, target)).sort()
  const clusters = new Map<string, number>(isClusterIdGiven ? [[newClusterId, nodeId]] : [])
  for (const description of found.values()) {
    // All voters must mean the same quorum: two that overlap would each have a majority.
    const theirs = description.configuredVoters.map(({ id, endpoint }) => `${id}@${endpoint}`).sort()
    if (theirs.join(',') !== ours.join(',')) {
      return `controller.quorum.voters differs: node ${nodeId} has ${ours.join(',')}, node ${description.nodeId} has ${theirs.join(',') || 'none'}`
    }
    if (description.clusterId !== '') clusters.set(description.clusterId, description.nodeId)
  }
  if (clusters.size < 2) return undefined
  const said = [...clusters].map(([clusterId, node]) => `node ${node} of cluster ${clusterId}`)
  return `These nodes are not of one cluster: ${said.join(', ')}`
}

function throwIfStopped(signal: AbortSignal): void {
  if (signal.aborted) throw new CoordinationError('stopped', 'The node stops before its cluster was formed')
}

function decide(found: ReadonlyMap<number, NodeDescription>, options: FormationOptions): Formation {
  const { voters, nodeId, directoryId, newClusterId, logger } = options
  const members = [...voters.keys()].sort((a, b) => a - b)
  logger.info({ clusterId: newClusterId, voters: members }, 'new cluster formed')
  return {
    clusterId: newClusterId,
    voters: members.map((id) =>
      voter(id, id === nodeId ? directoryId : (found.get(id)!.directoryId as Uuid), addressText(voters.get(id)!)),
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

function nameOf(id: number, target: RpcTarget): string {
  return `${id}@${addressText(target)}`
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
