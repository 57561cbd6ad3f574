import { type ClusterDescription, describeCluster, type NodeDescription } from '../client/cluster-description.ts'
import { type ClusterCommandOptions, withCluster } from '../connect.ts'
import { counted, show, table } from '../output.ts'
import { printable } from '../table.ts'

export interface ClusterOptions extends ClusterCommandOptions {
  readonly apis?: boolean
}

/** The nodes, the partitions' state and the quorum of a cluster. */
export async function cluster(options: ClusterOptions): Promise<void> {
  await withCluster(options, async (connected) => {
    const description = await describeCluster(connected)
    await show(options, description, () => textOf(description, options.apis === true))
  })
}

function textOf(description: ClusterDescription, withApis: boolean): string {
  const { clusterId, controllerId, nodes, quorum } = description
  const controller = controllerId === null ? 'no controller' : `controller ${controllerId}`
  const parts = [
    `Cluster ${printable(clusterId ?? '(no id)')}: ${counted(nodes.length, 'node')}, ${controller}\n\n`,
    nodesText(nodes),
    '\n',
    partitionsText(description),
  ]
  if (quorum !== null) parts.push('\n', quorumText(quorum))
  if (withApis) parts.push('\n', apisText(nodes))
  return parts.join('')
}

function nodesText(nodes: readonly NodeDescription[]): string {
  const nodeTable = table(
    [
      { title: 'NODE', value: (node) => node.id },
      { title: 'ADDRESS', value: (node) => `${node.host}:${node.port}` },
      { title: 'RACK', value: (node) => node.rack },
      { title: 'LEADS', value: (node) => node.leads },
      { title: 'REPLICAS', value: (node) => node.replicas },
      { title: 'APIS', value: (node) => (node.fault === null ? Object.keys(node.versions).length : null) },
      { title: 'METADATA VERSION', value: (node) => node.features['metadata.version'] ?? null },
      { title: 'REACHED', value: (node) => (node.fault === null ? 'yes' : 'no') },
    ],
    nodes,
  )
  const faults = nodes.filter(({ fault }) => fault !== null)
  return nodeTable + faults.map(({ id, fault }) => `Node ${id}: ${printable(fault ?? '')}\n`).join('')
}

function partitionsText({ partitions: health }: ClusterDescription): string {
  const { topics, partitions, offline, failed, underReplicated } = health
  const head = `${counted(topics, 'topic')}, ${counted(partitions, 'partition')}`
  const failedText = failed.length > 0 ? `${failed.length} failed, ` : ''
  return [
    `${head}: ${offline.length} offline, ${failedText}${underReplicated.length} under-replicated\n`,
    ...(offline.length > 0 ? [`  Offline           ${namesText(offline)}\n`] : []),
    ...failed.slice(0, 20).map(({ error }) => `  Failed            ${printable(error)}\n`),
    ...(failed.length > 20 ? [`  Failed            and ${failed.length - 20} more\n`] : []),
    ...(underReplicated.length > 0 ? [`  Under-replicated  ${namesText(underReplicated)}\n`] : []),
  ].join('')
}

/** All of them are in the JSON. */
function namesText(names: readonly string[]): string {
  const shown = names.slice(0, 20).join(' ')
  return printable(names.length > 20 ? `${shown} and ${names.length - 20} more` : shown)
}

function quorumText(quorum: NonNullable<ClusterDescription['quorum']>): string {
  const { leaderId, leaderEpoch, highWatermark, voters, observers } = quorum
  const members = [
    ...voters.map((member) => ({ ...member, role: member.id === leaderId ? 'leader' : 'voter' })),
    ...observers.map((member) => ({ ...member, role: 'observer' })),
  ]
  const leaderEnd = voters.find(({ id }) => id === leaderId)?.logEndOffset ?? highWatermark
  const head = `Quorum: leader ${leaderId} in epoch ${leaderEpoch}, high watermark ${highWatermark}\n`
  return (
    head +
    table(
      [
        { title: 'NODE', value: (member) => member.id },
        { title: 'ROLE', value: (member) => member.role },
        { title: 'END OFFSET', value: (member) => (member.logEndOffset < 0 ? null : member.logEndOffset) },
        {
          title: 'LAG',
          value: ({ logEndOffset }) => (logEndOffset < 0 ? null : Math.max(0, leaderEnd - logEndOffset)),
        },
      ],
      members,
    )
  )
}

/** Versions by API and levels of features, a column for each node. */
function apisText(nodes: readonly NodeDescription[]): string {
  const names = [...new Set(nodes.flatMap(({ versions }) => Object.keys(versions)))]
  const columns = nodes.map(({ id, versions }) => ({
    title: `NODE ${id}`,
    value: (name: string) => {
      const range = versions[name]
      return range === undefined ? null : `${range[0]} to ${range[1]}`
    },
  }))
  const features = [...new Set(nodes.flatMap((node) => Object.keys(node.features)))]
  const levels = nodes.map(({ id, features: level }) => ({
    title: `NODE ${id}`,
    value: (name: string) => level[name] ?? null,
  }))
  return [
    table([{ title: 'API', value: (name: string) => name }, ...columns], names),
    '\n',
    table([{ title: 'FEATURE', value: (name: string) => name }, ...levels], features),
  ].join('')
}
