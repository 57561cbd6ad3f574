import { messageOf } from '../../base/index.ts'
import { apis } from '../../protocol/index.ts'
import type { Cluster, TopicMetadata } from '../client/cluster.ts'
import { describeHealth, describeQuorum } from '../client/cluster-description.ts'
import { describeConfigs } from '../client/configs.ts'
import { storageAdvice } from '../client/errors.ts'
import { sizeText } from '../output.ts'
import { type DoctorFinding, fail, ok, warn } from './finding.ts'

/** Beyond these a clock is told of, and makes brokers refuse records (message.timestamp.after.max.ms). */
const skewWarnMs = 1000
const skewFailMs = 3_600_000

/** The broker's clock beside this machine's. No API asks for the time; the leader of a quorum tells it when it is described. */
export async function checkClock(cluster: Cluster): Promise<DoctorFinding> {
  const beforeMs = Date.now()
  const startMs = performance.now()
  const quorum = await describeQuorum(cluster)
  const tripMs = performance.now() - startMs
  if (quorum === null || quorum.leaderTimestamp <= 0) {
    return ok('clock', 'Not known: this broker tells its time only with a record (--write)')
  }
  return clockFinding(quorum.leaderTimestamp - (beforeMs + tripMs / 2), tripMs)
}

/** `skewMs`: how far the broker's clock is ahead; known to half of `tripMs`. */
export function clockFinding(skewMs: number, tripMs: number): DoctorFinding {
  const certainMs = Math.max(0, Math.abs(skewMs) - tripMs / 2)
  const side = skewMs > 0 ? 'ahead of' : 'behind'
  const text = `The broker's clock is ${durationText(Math.abs(skewMs))} ${side} this machine's`
  if (certainMs < skewWarnMs) {
    return ok('clock', `The broker's clock and this machine's agree, to ${durationText(Math.abs(skewMs) + tripMs / 2)}`)
  }
  const advice = 'Synchronize both (NTP): times of records, retention and look-ups by time depend on them'
  return certainMs < skewFailMs ? warn('clock', text, advice) : fail('clock', text, advice)
}

/** Partitions that can't be read or written to, or have fewer copies than they should. */
export async function checkPartitions(
  cluster: Cluster,
  topics: readonly TopicMetadata[],
): Promise<readonly DoctorFinding[]> {
  const { offline, failed, underReplicated, partitions } = await describeHealth(cluster, topics)
  const findings: DoctorFinding[] = []
  if (offline.length > 0) {
    const message = `${offline.length} of ${partitions} partitions have no leader: ${someOf(offline)}`
    findings.push(
      fail('partitions', message, 'Start the brokers that hold them; `rookery topics describe` names these'),
    )
  }
  if (failed.length > 0) {
    const message = `${failed.length} of ${partitions} partitions can not be read or written to: ${someOf(failed.map(({ partition, errorName }) => `${partition} (${errorName})`))}`
    findings.push(fail('partitions', message, storageAdvice))
  }
  if (underReplicated.length > 0) {
    const message = `${underReplicated.length} of ${partitions} partitions have replicas that are behind: ${someOf(underReplicated)}`
    findings.push(warn('partitions', message, 'A broker is down or too slow; `rookery cluster` says which is reached'))
  }
  if (findings.length > 0) return findings
  return [ok('partitions', `All ${partitions} partitions have a leader and all their replicas in sync`)]
}

/** What new topics get, and what present ones have, beside the number of brokers. */
export async function checkReplication(
  cluster: Cluster,
  topics: readonly TopicMetadata[],
): Promise<readonly DoctorFinding[]> {
  const { brokers } = await cluster.refresh([])
  const count = brokers.length
  const findings: DoctorFinding[] = []
  const id = brokers[0]?.nodeId
  if (id === undefined) return findings
  const configs = await describeConfigs(cluster, { kind: 'broker', name: String(id) })
  const value = (key: string) => Number(configs.find((each) => each.key === key)?.value ?? Number.NaN)
  const factor = value('default.replication.factor')
  const minIsr = value('min.insync.replicas')
  for (const key of [
    'default.replication.factor',
    'offsets.topic.replication.factor',
    'transaction.state.log.replication.factor',
  ]) {
    if (value(key) > count) {
      const message = `${key}=${value(key)} with ${count === 1 ? 'one broker' : `${count} brokers`}`
      const what = key.startsWith('default')
        ? 'topics can not be created by default'
        : 'groups or transactions can not begin'
      findings.push(fail('replication', `${message}: ${what}`, `Add brokers, or set ${key}=${count}`))
    }
  }
  if (minIsr > factor) {
    const message = `min.insync.replicas=${minIsr} is above default.replication.factor=${factor}`
    findings.push(
      fail('replication', `${message}: acks=all fails for new topics`, 'Raise the factor, or lower the minimum'),
    )
  } else if (minIsr === factor && count > 1 && factor > 1) {
    const message = `min.insync.replicas=${minIsr} is as high as default.replication.factor`
    findings.push(warn('replication', `${message}: one broker less and acks=all fails`, 'Leave one between the two'))
  }
  const single = topics.filter(
    ({ isInternal, partitions }) => !isInternal && partitions.some((p) => p.replicas.length === 1),
  )
  if (count > 1 && single.length > 0) {
    const names = someOf(single.map(({ name }) => name))
    findings.push(
      warn(
        'replication',
        `${single.length} topics have one replica: ${names}`,
        'A lost disk is lost data: give them more',
      ),
    )
  }
  findings.push(...(await checkMinIsr(cluster, topics)))
  if (findings.length > 0) return findings
  const plain = `default.replication.factor=${factor}, min.insync.replicas=${minIsr}, ${count === 1 ? 'one broker' : `${count} brokers`}`
  return [ok('replication', plain)]
}

/** Topics that acks=all can't be written to. */
async function checkMinIsr(cluster: Cluster, topics: readonly TopicMetadata[]): Promise<readonly DoctorFinding[]> {
  const connection = await cluster.any()
  if (!connection.serves(apis.DescribeConfigs)) return []
  const tooFew: string[] = []
  for (let from = 0; from < topics.length; from += 500) {
    const some = topics.slice(from, from + 500)
    const resources = some.map(({ name }) => ({
      resourceType: 2,
      resourceName: name,
      configurationKeys: ['min.insync.replicas'],
    }))
    const { results } = await connection.call(apis.DescribeConfigs, { resources })
    for (const { resourceName, configs } of results) {
      const minimum = Number(configs[0]?.value ?? 1)
      const topic = some.find(({ name }) => name === resourceName)
      const few = topic?.partitions.filter(({ isr, leaderId }) => leaderId >= 0 && isr.length < minimum) ?? []
      tooFew.push(...few.map(({ partition }) => `${resourceName}-${partition}`))
    }
  }
  if (tooFew.length === 0) return []
  const message = `${tooFew.length} partitions have fewer replicas in sync than min.insync.replicas: ${someOf(tooFew)}`
  return [fail('replication', message, 'acks=all fails there until replicas are back, or the setting is lower')]
}

/** Room on the brokers' disks, as far as they tell. */
export async function checkDisks(cluster: Cluster): Promise<readonly DoctorFinding[]> {
  const findings: DoctorFinding[] = []
  for (const id of cluster.addresses.keys()) {
    try {
      const connection = await cluster.broker(id)
      if (!connection.serves(apis.DescribeLogDirs)) continue
      const { results } = await connection.call(apis.DescribeLogDirs, { topics: [] })
      for (const { logDir, errorCode, totalBytes, usableBytes } of results) {
        const name = `${logDir} of broker ${id}`
        if (errorCode !== 0) {
          findings.push(fail('disk', `${name} is offline`, "The broker's log says why: a full disk, or one that fails"))
        } else if (totalBytes > 0) findings.push(roomFinding(name, usableBytes, totalBytes))
      }
    } catch (error) {
      findings.push(
        warn(
          'disk',
          `Broker ${id} does not tell of its disks: ${messageOf(error)}`,
          'Ask it from a machine that reaches it',
        ),
      )
    }
  }
  if (findings.length === 0) findings.push(ok('disk', 'Not known: the brokers do not tell (before Kafka 3.3)'))
  return findings
}

export function roomFinding(name: string, freeBytes: number, totalBytes: number): DoctorFinding {
  const share = freeBytes / totalBytes
  const text = `${name} has ${sizeText(freeBytes)} of ${sizeText(totalBytes)} left`
  const advice = 'Make room: shorter retention (retention.ms, retention.bytes), fewer topics, a larger disk'
  if (freeBytes < 64 * 1024 * 1024) return fail('disk', text, advice)
  return share < 0.1 ? warn('disk', text, advice) : ok('disk', text)
}

/** The first names of a list. */
function someOf(names: readonly string[]): string {
  return names.slice(0, 5).join(', ') + (names.length > 5 ? ` and ${names.length - 5} more` : '')
}

function durationText(ms: number): string {
  if (ms < 1000) return `${Math.ceil(ms)} ms`
  return ms < 120_000 ? `${(ms / 1000).toFixed(1)} s` : `${Math.round(ms / 60_000)} min`
}
