import { addressText, type Uuid, zeroUuid } from '../../base/index.ts'
import { type Cluster, parseBootstrapServers } from '../client/cluster.ts'
import { describeQuorum, type QuorumDescription, type QuorumMember } from '../client/cluster-description.ts'
import { addVoter, removeVoter } from '../client/quorum-voters.ts'
import { type ClusterCommandOptions, withCluster } from '../connect.ts'
import { exitCodes, UsageError } from '../exit.ts'
import { note, show, table } from '../output.ts'

/** Who votes on the metadata, who leads, and how far each is. */
export async function status(options: ClusterCommandOptions): Promise<void> {
  await withCluster(options, async (cluster) => {
    const quorum = await describeQuorum(cluster)
    if (quorum === null) {
      note('rookery: This cluster has no metadata quorum, or no leader of it now')
      process.exitCode = exitCodes.fault
      return
    }
    await show(options, quorum, () => textOf(quorum))
  })
}

export interface AddVoterOptions extends ClusterCommandOptions {
  /** `host:port`, in place of what the node told of itself. */
  readonly endpoint?: string
  readonly directoryId?: Uuid
  /** The vote that its id has with another folder is taken first. */
  readonly replace?: boolean
}

/** Gives a vote to a controller that follows. Of a node that is there all that is needed is its id. */
export async function add(id: number, options: AddVoterOptions): Promise<void> {
  await withCluster(options, async (cluster) => {
    const { voters, observers } = await knownQuorum(cluster)
    const follower = observers.find((each) => each.id === id)
    const present = voters.find((each) => each.id === id)
    const directoryId = options.directoryId ?? follower?.directoryId
    const [given] = options.endpoint === undefined ? [] : parseBootstrapServers(options.endpoint)
    const address = given ?? follower?.address ?? present?.address
    if (directoryId === undefined || directoryId === null) {
      const why =
        present === undefined
          ? 'does not follow the quorum: is it started?'
          : 'has a vote, and no other folder that follows'
      throw new UsageError(`Node ${id} ${why}`)
    }
    if (address === undefined || address === null) {
      throw new UsageError(
        `Node ${id} has not told where it listens: is controller among its process.roles? --endpoint says it`,
      )
    }
    if (present !== undefined && present.directoryId !== directoryId) {
      if (options.replace !== true) {
        throw new UsageError(`Node ${id} has a vote with the folder ${present.directoryId}: --replace takes that first`)
      }
      await removeVoter(cluster, { id, directoryId: present.directoryId ?? zeroUuid })
    }
    await addVoter(cluster, { id, directoryId }, address)
    await show(options, { id, directoryId, ...address }, () => `Voter ${id} added, at ${addressText(address)}\n`)
  })
}

export interface RemoveVoterOptions extends ClusterCommandOptions {
  readonly directoryId?: Uuid
}

/** Takes the vote of a node, which may be the leader. */
export async function remove(id: number, options: RemoveVoterOptions): Promise<void> {
  await withCluster(options, async (cluster) => {
    const { voters } = await knownQuorum(cluster)
    const directoryId = options.directoryId ?? voters.find((each) => each.id === id)?.directoryId
    if (directoryId === undefined || directoryId === null) {
      throw new UsageError(`Node ${id} has no vote: the voters are ${voters.map((each) => each.id).join(', ')}`)
    }
    await removeVoter(cluster, { id, directoryId })
    await show(options, { id, directoryId }, () => `Voter ${id} removed\n`)
  })
}

async function knownQuorum(cluster: Cluster): Promise<QuorumDescription> {
  const quorum = await describeQuorum(cluster)
  if (quorum === null) throw new UsageError('This cluster has no metadata quorum, or no leader of it now')
  return quorum
}

function textOf(quorum: QuorumDescription): string {
  const { leaderId, leaderEpoch, highWatermark, voters, observers, leaderTimestamp } = quorum
  const leaderEnd = voters.find(({ id }) => id === leaderId)?.logEndOffset ?? highWatermark
  const members = [
    ...voters.map((member) => ({ ...member, role: member.id === leaderId ? 'leader' : 'voter' })),
    ...observers.map((member) => ({ ...member, role: 'observer' })),
  ]
  const isCurrent = ({ logEndOffset }: QuorumMember) => logEndOffset >= highWatermark
  const current = voters.filter(isCurrent).length
  const since = (timestamp: number) => (timestamp < 0 || leaderTimestamp < 0 ? null : leaderTimestamp - timestamp)
  const head = `Leader ${leaderId} in epoch ${leaderEpoch}; ${current} of ${voters.length} voters have all ${highWatermark} entries\n\n`
  return (
    head +
    table(
      [
        { title: 'NODE', value: (member) => member.id },
        { title: 'ROLE', value: (member) => member.role },
        { title: 'DIRECTORY', value: (member) => member.directoryId },
        { title: 'END OFFSET', value: (member) => (member.logEndOffset < 0 ? null : member.logEndOffset) },
        {
          title: 'LAG',
          value: ({ logEndOffset }) => (logEndOffset < 0 ? null : Math.max(0, leaderEnd - logEndOffset)),
        },
        { title: 'HEARD MS AGO', value: (member) => since(member.lastFetchTimestamp) },
        { title: 'CAUGHT UP MS AGO', value: (member) => since(member.lastCaughtUpTimestamp) },
      ],
      members,
    )
  )
}
