import { describeQuorum, type QuorumDescription, type QuorumMember } from '../client/cluster-description.ts'
import { type ClusterCommandOptions, withCluster } from '../connect.ts'
import { exitCodes } from '../exit.ts'
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
