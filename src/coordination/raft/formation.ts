import { addressText, deferred, type Uuid } from '../../base/index.ts'
import type { Timers } from '../../platform/index.ts'
import type { NodeId, Voter } from '../../raft/index.ts'
import type { NodeDescription, NodeMessages, RpcNetwork, RpcTarget } from '../../rpc/index.ts'
import type { Logger } from '../../telemetry/index.ts'
import { CoordinationError } from '../coordination-error.ts'
import { describeNode } from '../peers/describe-node.ts'

/** Where the settings have a controller. */
export interface Place {
  readonly target: RpcTarget
  /** Whose place it is by `controller.quorum.voters`; undefined: whoever answers there. */
  readonly id: number | undefined
}

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
  /** A node that isn't waits for a cluster that others form. */
  readonly isController: boolean
  /**
   * All voters, a controller's own place too, as `controller.quorum.voters` names them; or those of
   * `controller.quorum.bootstrap.servers`, of which each is without an id.
   */
  readonly places: readonly Place[]
  /** The id that a new cluster gets, and whether this node belongs to no other. */
  readonly newClusterId: string
  readonly isClusterIdGiven: boolean
  /** Who called this node by its id, and is of a cluster already; undefined: nobody yet. */
  readonly calledBy: () => { readonly nodeId: number; readonly clusterId: string } | undefined
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
/** Rounds for which a node that would be a quorum of its own listens whether a cluster calls it: nodes try again each half second. */
const roundsAlone = 10

/**
 * The first boot of a node with a quorum, whose folders are empty. Voters are formatted only when it is certain that none of them has
 * a log already: a majority of empty disks would otherwise elect a leader that forgets what the cluster knows.
 *
 * The first voters are those of `controller.quorum.voters`, or, where that isn't set, the controllers that answer at the places of
 * `controller.quorum.bootstrap.servers`. The one with the lowest id decides, once it has reached every place and found all
 * empty, and all with the same settings: who votes, by directory ids too. The others take over what it says. A node that finds a
 * cluster formed of which it is a voter, with this very directory, joins it: it never voted. Any other, be it that its disk was wiped,
 * that it came later or is no controller, follows without a vote until it is added.
 *
 * A place alone that is this node's own makes a quorum of one. Where it was wiped, and others of its cluster live, they call it:
 * it then refuses to begin another cluster.
 *
 * Throws `CoordinationError`: other nodes have other voters in their settings, are of several clusters or of another than
 * this node, another process answers where this node should or has its id, or the node stops.
 */
export async function formQuorum(options: FormationOptions): Promise<Formation> {
  const { places, nodeId, timers, logger, signal } = options
  for (let round = 1; ; round++) {
    const found = await askAll(options)
    throwIfStopped(signal)
    const contradiction = contradictionOf(found, options)
    if (contradiction !== undefined) {
      logger.error({ reason: contradiction }, 'cluster not formed')
      for (let rest = roundsBeforeRefusal; rest > 0; rest--) await pause(timers, signal)
      throwIfStopped(signal)
      throw new CoordinationError('wrong-cluster', contradiction)
    }
    // One that follows without a vote may not know yet who has one.
    const formed = found.flatMap(({ description }) =>
      description !== undefined &&
      description.nodeId !== nodeId &&
      description.clusterId !== '' &&
      description.voters.length > 0
        ? [description]
        : [],
    )
    const [first] = formed
    if (first !== undefined) {
      return joinFormed(formed.find((description) => namesAsVoter(description, options)) ?? first, options)
    }
    const missing = found.filter((each) => !isOwn(each, options) && each.description?.clusterId !== '')
    if (missing.length === 0 && mayDecide(found, round, options)) return decide(found, options)
    if (round % roundsPerReport === roundsBeforeReport) {
      const waitsFor = missing.map(({ place, fault, description }) => {
        return `${nameOf(place)} (${fault ?? `node ${description?.nodeId}, which follows, and does not know yet who votes`})`
      })
      if (missing.length > 0) logger.info({ waitsFor }, 'new cluster waits for voters')
      else logger.info({ places: places.map(nameOf) }, 'new cluster waits for the controller that forms it')
    }
    await pause(timers, signal)
  }
}

/** What came of asking at one place. */
interface Found {
  readonly place: Place
  /** Undefined: nobody answered, or somebody who should not be there; `fault` says it then, for people. */
  readonly description: NodeDescription | undefined
  readonly fault: string | undefined
}

async function askAll({ places, nodeId, network, messages }: FormationOptions): Promise<readonly Found[]> {
  return await Promise.all(
    places.map(async (place): Promise<Found> => {
      const { id, target } = place
      const { description, fault } = await describeNode({ network, messages }, target, nodeId, callTimeoutMs)
      if (description === undefined || id === undefined || description.nodeId === id || id === nodeId) {
        return { place, description, fault }
      }
      return { place, description: undefined, fault: `node ${description.nodeId} answers there` }
    }),
  )
}

function isOwn({ place, description }: Found, { nodeId, incarnationId }: FormationOptions): boolean {
  return place.id === nodeId || description?.incarnationId === incarnationId
}

/** Whether it is for this node to say who votes, all places being empty. */
function mayDecide(found: readonly Found[], round: number, options: FormationOptions): boolean {
  const { places, nodeId, isController } = options
  if (!isController || !found.some((each) => isOwn(each, options))) return false
  const ids = found.map(({ place, description }) => place.id ?? description?.nodeId ?? nodeId)
  if (nodeId !== Math.min(...ids)) return false
  if (places.some(({ id }) => id !== undefined)) return true
  const own = listOf(places.map(nameOf))
  const differs = found.some(({ description }) => listOf(description?.bootstrapServers ?? []) !== own)
  return !differs && (places.length > 1 || round > roundsAlone)
}

/** What keeps these nodes from being one cluster, for people; undefined when nothing does. */
function contradictionOf(found: readonly Found[], options: FormationOptions): string | undefined {
  const { places, nodeId, incarnationId, newClusterId, isClusterIdGiven } = options
  const clusters = new Map<string, number>(isClusterIdGiven ? [[newClusterId, nodeId]] : [])
  const incarnations = new Map([[nodeId, incarnationId as string]])
  const ours = places.every(({ id }) => id === undefined) ? undefined : listOf(places.map(nameOf))
  for (const { place, description } of found) {
    if (description === undefined) continue
    if (place.id === nodeId && description.nodeId !== nodeId) {
      return `Node ${description.nodeId} answers at ${addressText(place.target)}, where controller.quorum.voters has node ${nodeId}`
    }
    const known = incarnations.get(description.nodeId)
    if (known !== undefined && known !== description.incarnationId) {
      const where = place.id === undefined ? '' : `, where controller.quorum.voters has node ${place.id}`
      return `Two nodes have node.id ${description.nodeId}: another process answers at ${addressText(place.target)}${where}`
    }
    incarnations.set(description.nodeId, description.incarnationId)
    const theirs = listOf(description.configuredVoters.map(({ id, endpoint }) => `${id}@${endpoint}`))
    // Whoever has none set finds voters otherwise, and can be a part of the cluster all the same; but not form it with us.
    const isToBeCompared = description.nodeId !== nodeId && (theirs !== '' || description.clusterId === '')
    if (ours !== undefined && isToBeCompared && theirs !== ours) {
      return `controller.quorum.voters differs: node ${nodeId} has ${ours}, node ${description.nodeId} has ${theirs || 'none'}`
    }
    if (description.clusterId !== '') clusters.set(description.clusterId, description.nodeId)
  }
  const caller = options.calledBy()
  if (ours === undefined && places.length === 1 && found[0] !== undefined && isOwn(found[0], options) && caller) {
    return `Node ${caller.nodeId} of cluster ${caller.clusterId} knows this node, whose folder is empty: name others in controller.quorum.bootstrap.servers, that it may follow them, and not form a cluster of its own`
  }
  if (clusters.size < 2) return undefined
  const said = [...clusters].map(([clusterId, node]) => `node ${node} of cluster ${clusterId}`)
  return `These nodes are not of one cluster: ${said.join(', ')}`
}

function throwIfStopped(signal: AbortSignal): void {
  if (signal.aborted) throw new CoordinationError('stopped', 'The node stops before its cluster was formed')
}

function decide(found: readonly Found[], options: FormationOptions): Formation {
  const { nodeId, directoryId, newClusterId, logger } = options
  const voters = new Map<number, Voter>()
  for (const each of found) {
    const { place, description } = each
    const id = isOwn(each, options) ? nodeId : description!.nodeId
    const disk = id === nodeId ? directoryId : (description!.directoryId as Uuid)
    if (!voters.has(id)) voters.set(id, voterOf(id, disk, addressText(place.target)))
  }
  const members = [...voters.values()].sort((a, b) => a.id - b.id)
  logger.info({ clusterId: newClusterId, voters: members.map(({ id }) => id) }, 'new cluster formed')
  return { clusterId: newClusterId, voters: members }
}

function joinFormed(description: NodeDescription, options: FormationOptions): Formation {
  const { nodeId, directoryId, isController, logger } = options
  const { clusterId } = description
  if (namesAsVoter(description, options)) {
    logger.info({ clusterId, toldBy: description.nodeId }, 'joined the new cluster')
    return {
      clusterId,
      voters: description.voters.map((each) => voterOf(each.id, each.directoryId as Uuid, each.endpoint)),
    }
  }
  if (!isController) {
    logger.info({ clusterId, toldBy: description.nodeId }, 'found the cluster')
  } else if (description.voters.some(({ id }) => id === nodeId)) {
    logger.warn(
      { clusterId, nodeId, directoryId },
      'cluster knows another folder of this node as a voter: following without a vote, until this one is added: rookery quorum add-voter',
    )
  } else {
    logger.info(
      { clusterId, nodeId, directoryId },
      'found the cluster: following without a vote, until it is added: rookery quorum add-voter',
    )
  }
  return { clusterId, voters: [] }
}

function namesAsVoter({ voters }: NodeDescription, { nodeId, directoryId }: FormationOptions): boolean {
  return voters.some((each) => each.id === nodeId && each.directoryId === directoryId)
}

function voterOf(id: number, directoryId: Uuid, endpoint: string): Voter {
  return { id: id as NodeId, directoryId, ...(endpoint === '' ? {} : { endpoint }) }
}

function nameOf({ id, target }: Place): string {
  return id === undefined ? addressText(target) : `${id}@${addressText(target)}`
}

/** The same for the same names, in whatever order. */
function listOf(names: readonly string[]): string {
  return [...names].sort().join(',')
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
