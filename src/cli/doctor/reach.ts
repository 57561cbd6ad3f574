import { lookup } from 'node:dns/promises'
import { isIP } from 'node:net'
import { addressText } from '../../base/index.ts'
import { apis } from '../../protocol/index.ts'
import { type Address, type Cluster, parseBootstrapServers } from '../client/cluster.ts'
import { BrokerConnection } from '../client/connection.ts'
import { connectionFaultText } from '../client/errors.ts'
import { type DoctorFinding, fail, ok, warn } from './finding.ts'

type Platform = Cluster['platform']

/** Of an address as it is written: what it means here, and whether a broker answers. */
interface Reached {
  readonly address: Address
  readonly ips: readonly string[]
  /** Why not; undefined when a broker answers. */
  readonly fault: string | undefined
  readonly clusterId: string | null
}

/** A longer wait tells nothing more. */
const maxConnectMs = 5000

/** Each address that was given on the command line. */
export async function checkBootstrap(
  bootstrapServers: string,
  platform: Platform,
  timeoutMs: number,
): Promise<readonly DoctorFinding[]> {
  const findings: DoctorFinding[] = []
  for (const address of parseBootstrapServers(bootstrapServers)) {
    const reached = await reach(address, platform, timeoutMs)
    const name = addressText(address)
    if (reached.fault === undefined) {
      findings.push(ok('bootstrap', `${name} is a broker${ipsText(reached)}`))
    } else {
      findings.push(fail('bootstrap', reached.fault, `Is the broker running, and does it listen on ${name}?`))
    }
  }
  return findings
}

/**
 * Each address that brokers tell clients to use (`advertised.listeners`): after its first answer a client talks to those, and
 * not to the address that it was given.
 */
export async function checkAdvertised(
  cluster: Cluster,
  bootstrapServers: string,
  timeoutMs: number,
): Promise<readonly DoctorFinding[]> {
  const { clusterId, brokers } = await cluster.refresh([])
  const bootstrap = parseBootstrapServers(bootstrapServers)
  const isRemote = !(await Promise.all(bootstrap.map(({ host }) => isThisMachine(host)))).includes(true)
  return await Promise.all(
    brokers.map(async ({ nodeId, host, port }) => {
      const name = addressText({ host, port })
      const reached = await reach({ host, port }, cluster.platform, timeoutMs)
      const broker = `Broker ${nodeId} tells clients to use ${name}`
      const setting = `set advertised.listeners=PLAINTEXT://${addressText(bootstrap[0]!)} on broker ${nodeId}`
      const isLocal = isLoopback(host) || reached.ips.some(isLoopback)
      if (isUnspecified(host)) return fail('reach', `${broker}, which is no address to connect to`, setting)
      const isSame = reached.fault === undefined && reached.clusterId === clusterId
      if (isLocal && isRemote) {
        if (isSame) {
          const message = `${broker}, which only programs on the broker's own machine reach, such as this one`
          return warn('reach', message, `For clients elsewhere ${setting}`)
        }
        const message = `${broker}, which from here is this machine and not the broker's`
        return fail('reach', message, `The address must be one that clients can reach: ${setting}`)
      }
      if (reached.fault !== undefined) {
        return fail('reach', `${broker}, and that fails: ${reached.fault}`, adviceFor(reached, isLocal, setting))
      }
      if (isSame) return ok('reach', `${broker}${ipsText(reached)}: reached`)
      const message = `${broker}, where a broker of another cluster answers (${reached.clusterId})`
      return fail('reach', message, `Two brokers advertise one address; ${setting}`)
    }),
  )
}

/** The classic case: a broker in a container advertises an address that only means something in there. */
function adviceFor({ ips }: Reached, isLocal: boolean, setting: string): string {
  if (ips.length === 0) {
    const both = 'give it a listener for them and one for clients outside, each with its advertised address'
    return `A name that other containers know? Then ${both}; or ${setting}`
  }
  const container = 'a broker in a container must advertise the port that is published outside'
  if (isLocal) return `Nothing listens there: ${container}, so ${setting}`
  return `Open the way there (firewall, published port), or ${setting}`
}

async function reach(address: Address, platform: Platform, timeoutMs: number): Promise<Reached> {
  const ips = await ipsOf(address.host)
  try {
    const limit = Math.min(timeoutMs, maxConnectMs)
    const connection = await BrokerConnection.connect({ ...address, platform, timeoutMs: limit })
    try {
      const metadata = await connection.call(apis.Metadata, { topics: [], allowAutoTopicCreation: false })
      return { address, ips, fault: undefined, clusterId: metadata.clusterId }
    } finally {
      connection.close()
    }
  } catch (error) {
    return { address, ips, fault: connectionFaultText(error), clusterId: null }
  }
}

/** Whether APIs that every command needs are served in a version that is known here. */
export function checkVersions(connection: BrokerConnection): DoctorFinding {
  const needed = [apis.Metadata, apis.Produce, apis.Fetch, apis.ListOffsets, apis.FindCoordinator, apis.OffsetCommit]
  const missing = needed.filter((api) => !connection.serves(api)).map(({ name }) => name)
  if (missing.length === 0) return ok('versions', `Client and broker share versions of all APIs that matter`)
  const advice = 'The broker is older than Kafka 0.11, or newer than this command line'
  return warn('versions', `There is no common version of ${missing.join(', ')}`, advice)
}

async function ipsOf(host: string): Promise<readonly string[]> {
  if (isIP(host) !== 0) return [host]
  const found = await lookup(host, { all: true }).catch(() => [])
  return found.map(({ address }) => address)
}

async function isThisMachine(host: string): Promise<boolean> {
  return isLoopback(host) || (await ipsOf(host)).some(isLoopback)
}

function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^(?:::ffff:)?127\./.test(host)
}

function isUnspecified(host: string): boolean {
  return host === '0.0.0.0' || host === '::' || host === ''
}

/** ` (127.0.0.1, ::1)`; nothing for an address that is a number. */
function ipsText({ address, ips }: Reached): string {
  return ips.length === 0 || ips[0] === address.host ? '' : ` (${ips.join(', ')})`
}
