import { once } from 'node:events'
import { connect as connectSocket } from 'node:net'
import { networkInterfaces } from 'node:os'
import { connect as connectTls } from 'node:tls'
import { describe, expect, test } from 'vitest'
import type { KafkaClient } from '../../src/network/index.ts'
import { apis, ErrorCode } from '../../src/protocol/index.ts'
import { until } from '../support/condition.ts'
import { connect } from '../support/kafka-connection.ts'
import { type LoggedBroker, startLoggedBroker } from '../support/logged-broker.ts'
import { produceBatch } from '../support/producing.ts'
import { msOf, shortestMs } from '../support/timing.ts'

const addressFamilies = ['127.0.0.1', '::1']
const interfaces = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? [])
const hasAddress = (address: string) => interfaces.some((each) => each.address === address)
/** Where others reach this machine, if it has such an address. */
const outerAddress = interfaces.find(({ internal, family }) => !internal && family === 'IPv4')?.address

const endpointsSeenBy = async (address: string) => {
  const client = await connect(address)
  const { brokers } = await client.request(apis.Metadata, 9, { topics: [] })
  client.close()
  return brokers.map(({ host, port }) => `${host}:${port}`)
}

describe('where clients reach a node', () => {
  test.each(addressFamilies.filter(hasAddress))('localhost listens at %s too', async (address) => {
    await using node = await startLoggedBroker({ storage: 'memory' })
    expect(await endpointsSeenBy(`${address}:${node.broker.port}`)).toEqual([`localhost:${node.broker.port}`])
  })

  test.each(['0.0.0.0', '[::]', ''])(
    'the wildcard listener %j advertises the address that was dialled',
    async (host) => {
      const config = { listeners: `PLAINTEXT://${host}:0` }
      await using node = await startLoggedBroker({ storage: 'memory', config })
      const { port } = node.broker
      const dialled = ['127.0.0.1', ...(outerAddress === undefined ? [] : [outerAddress])]
      if (host !== '0.0.0.0' && hasAddress('::1')) dialled.push('::1')
      for (const address of dialled) expect(await endpointsSeenBy(`${address}:${port}`)).toEqual([`${address}:${port}`])
    },
  )

  test('a coordinator is named as reachable as the broker', async () => {
    const config = { listeners: 'PLAINTEXT://0.0.0.0:0' }
    await using node = await startLoggedBroker({ storage: 'memory', config })
    const client = await connect(`127.0.0.1:${node.broker.port}`)
    const { host, port } = await client.request(apis.FindCoordinator, 3, { key: 'g', keyType: 0 })
    expect([host, port]).toEqual(['127.0.0.1', node.broker.port])
    client.close()
  })
})

describe('who is no Kafka client', () => {
  /** The one line that names what came; the connection is closed by then. */
  const refusalOf = async (node: LoggedBroker) => {
    await until(() => node.complaints().length > 0, 'a line about it')
    expect(node.complaints()).toHaveLength(1)
    return JSON.stringify(node.complaints()[0])
  }

  test('sends TLS: one line says so', async () => {
    await using node = await startLoggedBroker({ storage: 'memory' })
    const socket = connectTls({ host: '127.0.0.1', port: node.broker.port, rejectUnauthorized: false })
    await once(socket, 'error')
    expect(await refusalOf(node)).toMatch(/TLS/)
    expect(await endpointsSeenBy(`127.0.0.1:${node.broker.port}`)).toHaveLength(1)
  })

  test('sends HTTP: one line says so, and 400 with a sentence comes back', async () => {
    await using node = await startLoggedBroker({ storage: 'memory' })
    const response = await fetch(`http://127.0.0.1:${node.broker.port}/health`)
    expect(response.status).toBe(400)
    expect(await response.text()).toBe(
      'This port speaks the Kafka protocol, not HTTP: give it to a Kafka client as bootstrap server.\n',
    )
    expect(await refusalOf(node)).toMatch(/HTTP/)
  })

  test('sends something else: one line, and the connection ends', async () => {
    await using node = await startLoggedBroker({ storage: 'memory' })
    const socket = connectSocket(node.broker.port, '127.0.0.1')
    socket.write('SSH-2.0-OpenSSH_9.6\r\n')
    await once(socket.resume(), 'close')
    await refusalOf(node)
  })
})

describe('what a new client asks first', () => {
  const asked = async (client: KafkaClient, version: number, name: string) =>
    (await client.request(apis.Metadata, version, { topics: [{ name }] })).topics[0]!

  test('an auto-created topic has its leader in the same answer, and takes records at once', async () => {
    await using node = await startLoggedBroker({ storage: 'memory', config: { 'num.partitions': 3 } })
    const client = await connect(node.bootstrapServers)
    for (const version of [1, 4, 9, 12]) {
      const { errorCode, partitions } = await asked(client, version, `new-${version}`)
      expect(errorCode).toBe(ErrorCode.NONE)
      expect(partitions.map((each) => [each.errorCode, each.leaderId])).toEqual([
        [0, 1],
        [0, 1],
        [0, 1],
      ])
      expect(await produceBatch(client, `new-${version}`, 2, { records: [{ timestamp: 1 }] })).toBe(0)
    }
    client.close()
  })

  /** Of a new node: what its first member of its first group does until it has a record. */
  const firstRecordMs = async () => {
    await using node = await startLoggedBroker({ topics: ['orders'] })
    const client = await connect(node.bootstrapServers)
    await produceBatch(client, 'orders', 0, { records: [{ timestamp: 1, value: Buffer.from('first') }] })
    const tookMs = await msOf(() => readAsFirstMember(client))
    client.close()
    return tookMs
  }

  const readAsFirstMember = async (client: KafkaClient) => {
    const found = await client.request(apis.FindCoordinator, 3, { key: 'g', keyType: 0 })
    expect(found.errorCode).toBe(ErrorCode.NONE)
    const join = (memberId: string) =>
      client.request(apis.JoinGroup, 7, {
        groupId: 'g',
        sessionTimeoutMs: 10_000,
        rebalanceTimeoutMs: 300_000,
        memberId,
        protocolType: 'consumer',
        protocols: [{ name: 'range', metadata: Buffer.alloc(0) }],
      })
    const { memberId } = await join('')
    const { errorCode, generationId } = await join(memberId)
    expect(errorCode).toBe(ErrorCode.NONE)
    const synced = await client.request(apis.SyncGroup, 3, {
      groupId: 'g',
      generationId,
      memberId,
      assignments: [{ memberId, assignment: Buffer.from('a') }],
    })
    expect(synced.errorCode).toBe(ErrorCode.NONE)
    const ask = { partition: 0, fetchOffset: 0, partitionMaxBytes: 1000 }
    const { responses } = await client.request(apis.Fetch, 11, {
      maxWaitMs: 5000,
      minBytes: 1,
      topics: [{ topic: 'orders', partitions: [ask] }],
      forgottenTopicsData: [],
    })
    expect(responses[0]!.partitions[0]!.records!.includes('first')).toBe(true)
  }

  test('the first member of the first group has its first record at once', async () => {
    expect(await shortestMs(2000, firstRecordMs)).toBeLessThan(2000) // Kafka's initial rebalance delay alone is 3000
  })
})
