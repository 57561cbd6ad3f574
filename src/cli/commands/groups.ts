import { describeGroup, type GroupDescription, listGroups } from '../client/groups.ts'
import { type ClusterCommandOptions, withCluster } from '../connect.ts'
import { exitCodes } from '../exit.ts'
import { counted, note, show, table } from '../output.ts'
import { printable } from '../table.ts'

export type GroupsOptions = ClusterCommandOptions

export async function list(options: GroupsOptions): Promise<void> {
  await withCluster(options, async (cluster) => {
    const groups = await listGroups(cluster)
    await show(options, groups, () => {
      if (groups.length === 0) return 'No groups\n'
      return table(
        [
          { title: 'GROUP', value: (group) => group.groupId },
          { title: 'STATE', value: (group) => group.state || null },
          { title: 'PROTOCOL', value: (group) => group.protocolType || null },
        ],
        groups,
      )
    })
  })
}

export async function describe(ids: readonly string[], options: GroupsOptions): Promise<void> {
  await withCluster(options, async (cluster) => {
    const groups: GroupDescription[] = []
    for (const id of ids) {
      const group = await describeGroup(cluster, id)
      if (group.state !== 'Dead' || group.offsets.length > 0) groups.push(group)
      else {
        note(`rookery: There is no group ${id}`)
        process.exitCode = exitCodes.fault
      }
    }
    await show(options, groups, () => groups.map(describedText).join('\n'))
  })
}

function describedText(group: GroupDescription): string {
  const { groupId, state, assignor, coordinator, members, offsets } = group
  const facts = [state, counted(members.length, 'member'), ...(assignor === '' ? [] : [`assignor ${assignor}`])]
  const head = `${printable(groupId)}: ${printable(facts.join(', '))}, coordinator ${printable(coordinator)}\n`
  const clients = new Map(members.map((member) => [member.memberId, `${member.clientId}@${member.host}`]))
  const offsetTable = table(
    [
      { title: 'TOPIC', value: (each) => each.topic },
      { title: 'PARTITION', value: (each) => each.partition },
      { title: 'COMMITTED', value: (each) => each.committedOffset },
      { title: 'END OFFSET', value: (each) => each.endOffset },
      { title: 'LAG', value: (each) => each.lag },
      { title: 'CLIENT', value: (each) => (each.memberId === null ? null : (clients.get(each.memberId) ?? null)) },
      { title: 'MEMBER', value: (each) => each.memberId },
    ],
    offsets,
  )
  const idle = members.filter((member) => member.partitions.length === 0)
  const idleLines = idle.map(({ memberId }) => `Member ${printable(memberId)} has no partitions\n`)
  return `${head}${offsets.length === 0 ? 'Nothing is committed or assigned\n' : offsetTable}${idleLines.join('')}`
}
