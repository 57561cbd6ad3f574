import { RequestRefusedError } from '../client/errors.ts'
import { deleteGroup, describeGroup, type GroupDescription, listGroups } from '../client/groups.ts'
import { applyReset, planReset } from '../client/offset-reset.ts'
import { beyondEndText, parseFroms, placesAllowed } from '../client/starting-offsets.ts'
import { type ClusterCommandOptions, withCluster } from '../connect.ts'
import { exitCodes, UsageError } from '../exit.ts'
import { confirmed, counted, note, show, table } from '../output.ts'
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

/** These groups, or all. */
export async function describe(ids: readonly string[], options: GroupsOptions): Promise<void> {
  await withCluster(options, async (cluster) => {
    const groups: GroupDescription[] = []
    const wanted = ids.length > 0 ? ids : (await listGroups(cluster)).map(({ groupId }) => groupId)
    for (const id of wanted) {
      const group = await describeGroup(cluster, id)
      if (group.state !== 'Dead' || group.offsets.length > 0) groups.push(group)
      else {
        note(`rookery: There is no group ${id}`)
        process.exitCode = exitCodes.fault
      }
    }
    await show(options, groups, () =>
      groups.length === 0 && ids.length === 0 ? 'No groups\n' : groups.map(describedText).join('\n'),
    )
  })
}

export interface DeleteOptions extends GroupsOptions {
  readonly yes?: boolean
}

export async function remove(ids: readonly string[], options: DeleteOptions): Promise<void> {
  const question = `Delete ${counted(ids.length, 'group')} with all offsets (${ids.join(', ')})?`
  if (options.yes !== true && !(await confirmed(question))) return
  await withCluster(options, async (cluster) => {
    const deleted: { readonly groupId: string; readonly error?: string }[] = []
    for (const groupId of ids) {
      try {
        await deleteGroup(cluster, groupId)
        deleted.push({ groupId })
      } catch (error) {
        if (!(error instanceof RequestRefusedError)) throw error
        deleted.push({ groupId, error: error.message })
        note(`rookery: ${printable(error.message)}`)
        process.exitCode = exitCodes.fault
      }
    }
    const done = deleted.filter(({ error }) => error === undefined)
    await show(options, deleted, () => done.map(({ groupId }) => `Group ${printable(groupId)} deleted\n`).join(''))
  })
}

export interface ResetOptions extends GroupsOptions {
  readonly to: string
  readonly topic?: readonly string[]
  readonly execute?: boolean
}

/** Shows where the group would go on, and sets it only when told to. */
export async function resetOffsets(groupId: string, options: ResetOptions): Promise<void> {
  const to = parseFroms(options.to)
  if (to === undefined) throw new UsageError(`--to ${options.to}: allowed is ${placesAllowed}`)
  await withCluster(options, async (cluster) => {
    const resets = await planReset(cluster, groupId, options.topic ?? [], to)
    if (resets.length === 0) {
      throw new UsageError(`Group ${groupId} has committed nothing: name with --topic what it is to read`)
    }
    if (options.execute === true) await applyReset(cluster, groupId, resets)
    const isExecuted = options.execute === true
    await show(options, { groupId, executed: isExecuted, offsets: resets }, () =>
      table(
        [
          { title: 'TOPIC', value: (each) => each.topic },
          { title: 'PARTITION', value: (each) => each.partition },
          { title: 'COMMITTED', value: (each) => each.committedOffset },
          { title: isExecuted ? 'NEW OFFSET' : 'WOULD BE', value: (each) => each.newOffset },
          { title: 'LAG', value: (each) => each.lag },
        ],
        resets,
      ),
    )
    const ends = resets.map(({ topic, partition, newOffset, lag }) => ({
      topic,
      partition,
      endOffset: newOffset + lag,
    }))
    const beyond = beyondEndText(to, ends)
    if (beyond !== undefined) note(`rookery: ${beyond}`)
    if (!isExecuted) note('Nothing was changed; --execute sets these offsets')
  })
}

function describedText(group: GroupDescription): string {
  const { groupId, state, assignor, coordinator, members, offsets } = group
  const lag = offsets.reduce((sum, each) => sum + (each.lag ?? 0), 0)
  const facts = [
    state,
    `lag ${lag}`,
    counted(members.length, 'member'),
    ...(assignor === '' ? [] : [`assignor ${assignor}`]),
  ]
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
