import { join } from 'node:path'
import type { Uuid } from '../base/index.ts'
import { type Files, replaceFile } from '../platform/index.ts'
import { StorageError } from './errors.ts'

const metaPropertiesFile = 'meta.properties'

/** Whose folder this is, as Kafka's `meta.properties` version 1 says. */
export interface MetaProperties {
  readonly clusterId: string
  readonly nodeId: number
  /** Tells this folder from the others of the node. */
  readonly directoryId: Uuid
}

/** Undefined when the folder was never used. Throws `StorageError` when the file can't be understood. */
export async function readMetaProperties(files: Files, directory: string): Promise<MetaProperties | undefined> {
  const path = join(directory, metaPropertiesFile)
  const content = await files.readFile(path, 64 * 1024)
  if (content === undefined) return undefined
  const values = new Map<string, string>()
  for (const line of content.toString('utf8').split(/\r?\n/)) {
    const match = /^\s*([^#!=\s][^=\s]*)\s*=\s*(.*?)\s*$/.exec(line)
    if (match !== null) values.set(match[1]!, match[2]!)
  }
  const version = values.get('version')
  const clusterId = values.get('cluster.id')
  const nodeId = values.get('node.id')
  if (version !== '1' || clusterId === undefined || clusterId === '' || !/^\d{1,10}$/.test(nodeId ?? '')) {
    throw new StorageError(`File ${path} is no meta.properties of version 1 with cluster.id and node.id`, path)
  }
  const directoryId = values.get('directory.id')
  if (directoryId === undefined) throw new StorageError(`File ${path} has no directory.id`, path)
  return { clusterId, nodeId: Number(nodeId), directoryId: directoryId as Uuid }
}

export async function writeMetaProperties(files: Files, directory: string, meta: MetaProperties): Promise<void> {
  const text = `#\nversion=1\ncluster.id=${meta.clusterId}\nnode.id=${meta.nodeId}\ndirectory.id=${meta.directoryId}\n`
  await replaceFile(files, directory, metaPropertiesFile, Buffer.from(text))
}
