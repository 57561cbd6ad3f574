import { createRealPlatform } from '../../platform/index.ts'
import { Cluster } from '../client/cluster.ts'
import { connectionFaultText } from '../client/errors.ts'
import type { ClusterCommandOptions } from '../connect.ts'
import { checkClock, checkDisks, checkPartitions, checkReplication } from '../doctor/cluster-checks.ts'
import { type DoctorFinding, fail } from '../doctor/finding.ts'
import { checkFolders, checkLocal, configuredFolders } from '../doctor/machine.ts'
import { checkWriting } from '../doctor/probe.ts'
import { checkAdvertised, checkBootstrap, checkVersions } from '../doctor/reach.ts'
import { exitCodes } from '../exit.ts'
import { endWithReader, hasColors, write } from '../output.ts'
import { printable } from '../table.ts'

export interface DoctorOptions extends ClusterCommandOptions {
  readonly config?: string
  readonly write?: boolean
}

/** Whoever takes longer is a finding. */
const maxWaitMs = 10_000

/** A line for each finding as it is found; exits with 1 when one of them is a failure. Writes only when told to. */
export async function doctor(options: DoctorOptions): Promise<void> {
  endWithReader()
  // A file that can't be used is a wrong argument, and no finding.
  const folders = options.config === undefined ? undefined : await configuredFolders(options.config)
  const findings: DoctorFinding[] = []
  const platform = createRealPlatform()
  const timeoutMs = Math.min(options.timeout * 1000, maxWaitMs)
  /** A check that fails by itself is a finding, and the others go on. */
  const check = async (name: string, run: () => Promise<readonly DoctorFinding[]> | readonly DoctorFinding[]) => {
    let found: readonly DoctorFinding[]
    try {
      found = await run()
    } catch (error) {
      found = [fail(name, connectionFaultText(error), 'This could not be looked at')]
    }
    findings.push(...found)
    if (options.json !== true) for (const each of found) await write(`${lineOf(each)}\n`)
  }
  await check('bootstrap', () => checkBootstrap(options.bootstrapServer, platform, timeoutMs))
  if (folders !== undefined) await check('disk', () => checkFolders(folders))
  if (findings.some(({ check: name, status }) => name === 'bootstrap' && status === 'ok')) {
    const cluster = await Cluster.connect({ platform, bootstrapServers: options.bootstrapServer, timeoutMs })
    try {
      await check('versions', async () => [checkVersions(await cluster.any())])
      await check('reach', () => checkAdvertised(cluster, options.bootstrapServer, timeoutMs))
      if (options.write !== true) await check('clock', async () => [await checkClock(cluster)])
      await check('partitions', async () => checkPartitions(cluster, await cluster.allTopics()))
      await check('replication', async () => checkReplication(cluster, await cluster.allTopics()))
      await check('disk', () => checkDisks(cluster))
      if (folders === undefined) await check('files', () => checkLocal(cluster))
      if (options.write === true) {
        await check('write', () => checkWriting(cluster)) // tells the clock too, when it gets as far
        const isClockKnown = findings.some(({ check: name }) => name === 'clock')
        if (!isClockKnown) await check('clock', async () => [await checkClock(cluster)])
      }
    } finally {
      cluster.close()
    }
  }
  if (options.json === true) await write(`${JSON.stringify(findings, undefined, 2)}\n`)
  if (findings.some(({ status }) => status === 'fail')) process.exitCode = exitCodes.fault
}

const colors = { ok: 32, warn: 33, fail: 31 } as const

function lineOf({ check, status, message, advice }: DoctorFinding): string {
  const word = status.toUpperCase().padEnd(4)
  const shown = hasColors(process.stdout) ? `\u001b[${colors[status]}m${word}\u001b[39m` : word
  const rest = advice === undefined ? message : `${message}. ${advice}`
  return `${shown}  ${check.padEnd(11)}  ${printable(rest)}`
}
