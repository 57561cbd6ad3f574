import { readdir, readFile } from 'node:fs/promises'
import { messageOf } from '../../base/index.ts'
import { createRealPlatform } from '../../platform/index.ts'
import { apis } from '../../protocol/index.ts'
import type { Cluster } from '../client/cluster.ts'
import { lockHolderOf } from '../log-files/folder.ts'
import { roomFinding } from './cluster-checks.ts'
import { type DoctorFinding, ok, warn } from './finding.ts'

/** Each open partition and connection takes some. */
const fewOpenFiles = 4096

/** The log folders that a configuration file names. Throws `ConfigError` for one that can't be read or used. */
export async function configuredFolders(file: string): Promise<readonly string[]> {
  const { ConfigError, parseConfig } = await import('../../config/index.ts')
  const text = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    const message = error.code === 'ENOENT' ? `There is no file ${file}` : `Cannot read ${file}: ${messageOf(error)}`
    throw new ConfigError([{ key: undefined, message }], { cause: error })
  })
  return parseConfig({ file: text, fileName: file, env: process.env }).logDirs
}

/** The processes that hold the folders that brokers name, where those are on this machine. */
export async function checkLocal(cluster: Cluster): Promise<readonly DoctorFinding[]> {
  const folders = new Set<string>()
  for (const id of cluster.addresses.keys()) {
    const connection = await cluster.broker(id).catch(() => undefined)
    if (connection?.serves(apis.DescribeLogDirs) !== true) continue
    const { results } = await connection.call(apis.DescribeLogDirs, { topics: [] })
    for (const { logDir } of results) if ((await lockHolderOf(logDir)) !== undefined) folders.add(logDir)
  }
  return await checkProcesses([...folders])
}

/** The room of folders, and the processes that hold them. */
export async function checkFolders(folders: readonly string[]): Promise<readonly DoctorFinding[]> {
  const { files } = createRealPlatform()
  const findings: DoctorFinding[] = []
  for (const folder of folders) {
    try {
      const { freeBytes, totalBytes } = await files.space(folder)
      findings.push(roomFinding(folder, freeBytes, totalBytes))
    } catch {
      findings.push(warn('disk', `There is no folder ${folder}`, 'The first start makes it, if this user may'))
    }
  }
  return [...findings, ...(await checkProcesses(folders))]
}

/** How many files the processes that hold these folders may open, and have open. */
async function checkProcesses(folders: readonly string[]): Promise<readonly DoctorFinding[]> {
  const findings: DoctorFinding[] = []
  const seen = new Set<string>()
  for (const folder of folders) {
    const holder = (await lockHolderOf(folder))?.replace('process ', '')
    if (holder === undefined || seen.has(holder)) continue
    seen.add(holder)
    const limits = await readFile(`/proc/${holder}/limits`, 'utf8').catch(() => '')
    const limit = /^Max open files\s+(\d+|unlimited)/m.exec(limits)?.[1]
    if (limit === undefined) continue // not Linux, or gone
    const open = await readdir(`/proc/${holder}/fd`).catch(() => undefined)
    findings.push(
      openFilesFinding(holder, limit === 'unlimited' ? Number.POSITIVE_INFINITY : Number(limit), open?.length),
    )
  }
  return findings
}

/** `open`: undefined when this user may not know. */
function openFilesFinding(pid: string, limit: number, open: number | undefined): DoctorFinding {
  const has = open === undefined ? '' : ` and has ${open} open`
  const message = `The broker (process ${pid}) may open ${limit === Number.POSITIVE_INFINITY ? 'any number of' : limit} files${has}`
  const advice = 'Raise the limit before it starts: ulimit -n 65536, or LimitNOFILE of systemd'
  const isNear = open !== undefined && open > limit * 0.8
  return limit < fewOpenFiles || isNear ? warn('files', message, advice) : ok('files', message)
}
