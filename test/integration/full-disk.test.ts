import { expect, test } from 'vitest'
import type { KafkaClient } from '../../src/network/index.ts'
import { apis, ErrorCode } from '../../src/protocol/index.ts'
import { BrokerProcess } from '../support/broker-process.ts'
import { until } from '../support/condition.ts'
import { watchHeldUp } from '../support/held-up.ts'
import { connect, readPartition } from '../support/kafka-connection.ts'
import { ProduceError, produceBatch } from '../support/producing.ts'
import { describeWithSmallDisk, SmallDisk } from '../support/small-disk.ts'

const waitsForRoom = 'disk of the metadata log is full, waiting for room'

await describeWithSmallDisk('a node whose disk is full', () => {
  test('answers what it can, and serves again by itself when there is room', async () => {
    await using disk = await SmallDisk.make(4)
    await using node = await BrokerProcess.start({ folder: `${disk.path}/data` })
    const client = await connect(node.bootstrapServers)
    await createTopic(client, 'orders')
    const acknowledged = await produceUntilFull(client)
    await disk.fill()
    // The metadata log, too: the last block of its files may yet take some.
    const created = await createTopicsUntilFull(client, node)

    expect(await readPartition(client, 'orders', 0)).toHaveLength(acknowledged)
    const { topics } = await client.request(apis.Metadata, 12, { topics: null })
    expect(topics.map(({ errorCode, partitions }) => [errorCode, partitions[0]?.leaderId])).toContainEqual([0, 1])
    expect(await produce(client)).toBe(ErrorCode.KAFKA_STORAGE_ERROR)

    disk.resize(64)
    await until(async () => (await produce(client)) === ErrorCode.NONE, 'records are taken again')
    expect(await createTopic(client, 'later')).toBe(ErrorCode.NONE)
    expect((await readPartition(client, 'orders', 0)).length).toBeGreaterThan(acknowledged)
    expect(node.logLines().map(({ msg }) => msg)).not.toContain('node has to end')
    client.close()
    await node.kill()

    // One whose creation was not answered was made all the same, as it may be after any request that timed out.
    await using again = await BrokerProcess.start({ folder: `${disk.path}/data` })
    const after = await connect(again.bootstrapServers)
    const names = (await after.request(apis.Metadata, 12, { topics: null })).topics.map(({ name }) => name)
    expect(names).toEqual(expect.arrayContaining(['orders', 'later', ...created]))
    expect(names.length).toBeGreaterThan(2 + created.length)
    expect((await readPartition(after, 'orders', 0)).length).toBeGreaterThan(acknowledged)
    after.close()
  })

  test.each(['SIGTERM', 'SIGKILL'] as const)(
    'can be ended by %s, says why it does not start, and has all when there is room',
    async (signal) => {
      await using disk = await SmallDisk.make(4)
      const folder = `${disk.path}/data`
      let acknowledged = 0
      {
        await using node = await BrokerProcess.start({ folder })
        const client = await connect(node.bootstrapServers)
        await createTopic(client, 'orders')
        acknowledged = await produceUntilFull(client)
        await disk.fill()
        await createTopicsUntilFull(client, node)
        const heldUp = watchHeldUp()
        const endedMs = performance.now()
        if (signal === 'SIGTERM') expect((await node.stop()).exitCode).toBe(0)
        else await node.kill()
        // Before a container would be killed.
        expect(performance.now() - endedMs).toBeLessThan(8000 + heldUp().byMachineMs)
        client.close()
      }
      await using refused = new BrokerProcess({ folder })
      const { exitCode, stderr } = await refused.program.ended()
      expect(exitCode).toBe(1)
      expect(stderr).toMatch(/disk( of the metadata log)? is full|Disk full/i)
      expect(stderr).not.toMatch(/^ {4}at /m)

      disk.resize(64)
      await using node = await BrokerProcess.start({ folder })
      const client = await connect(node.bootstrapServers)
      expect((await readPartition(client, 'orders', 0)).length).toBeGreaterThanOrEqual(acknowledged)
      expect(await produce(client)).toBe(ErrorCode.NONE)
      client.close()
    },
  )
})

/** The error code. */
async function createTopic(client: KafkaClient, name: string, timeoutMs = 10_000): Promise<number | undefined> {
  const { topics } = await client.request(apis.CreateTopics, 7, {
    topics: [{ name, numPartitions: 1, replicationFactor: 1, assignments: [], configs: [] }],
    timeoutMs,
  })
  return topics[0]?.errorCode
}

/** Until the metadata log waits for room; the names of the topics whose creation was answered. */
async function createTopicsUntilFull(client: KafkaClient, { program }: BrokerProcess): Promise<string[]> {
  const created: string[] = []
  for (let i = 0; !program.stdout.includes(waitsForRoom); i++) {
    // No answer in time may also be that of a machine which stood still.
    if ((await createTopic(client, `topic${i}`, 300)) === ErrorCode.NONE) created.push(`topic${i}`)
  }
  return created
}

/** The error code. */
async function produce(client: KafkaClient): Promise<number> {
  try {
    const value = Buffer.alloc(50_000, 'x')
    await produceBatch(client, 'orders', 0, { records: [{ timestamp: Date.now(), key: null, value, headers: [] }] })
    return ErrorCode.NONE
  } catch (error) {
    if (error instanceof ProduceError) return error.errorCode
    throw error
  }
}

/** How many batches were acknowledged. */
async function produceUntilFull(client: KafkaClient): Promise<number> {
  for (let acknowledged = 0; ; acknowledged++) {
    const errorCode = await produce(client)
    if (errorCode === ErrorCode.NONE) continue
    expect(errorCode).toBe(ErrorCode.KAFKA_STORAGE_ERROR)
    return acknowledged
  }
}
