import { execFile } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { createConnection } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { Kafka, logLevel } from 'kafkajs'
import { afterEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import {
  type Broker,
  type BrokerLogger,
  type BrokerOptions,
  type ClusterOptions,
  ConfigError,
  DirectoryLockedError,
  NetworkError,
  startBroker,
  startCluster,
} from '../../src/index.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

const folders: string[] = []

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'rookery-test-'))
  folders.push(folder)
  return folder
}

afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true })
})

function client(broker: Broker): Kafka {
  return new Kafka({ brokers: [broker.bootstrapServers], logLevel: logLevel.NOTHING })
}

async function send(broker: Broker, topic: string, ...values: string[]): Promise<void> {
  const producer = client(broker).producer()
  await producer.connect()
  await producer.send({ topic, messages: values.map((value) => ({ value })) })
  await producer.disconnect()
}

/** The end offsets of a topic's partitions. */
async function endOffsets(broker: Broker, topic: string): Promise<string[]> {
  const admin = client(broker).admin()
  await admin.connect()
  const offsets = await admin.fetchTopicOffsets(topic)
  await admin.disconnect()
  return offsets.sort((left, right) => left.partition - right.partition).map(({ high }) => high)
}

async function isListening(port: number): Promise<boolean> {
  return await new Promise((resolve) => {
    const socket = createConnection({ host: '127.0.0.1', port })
    socket.once('connect', () => {
      socket.destroy()
      resolve(true)
    })
    socket.once('error', () => resolve(false))
  })
}

/** Runs a program in a process of its own that has to end by itself; it imports the package as `index`. */
async function runProgram(code: string): Promise<string> {
  const program = `const index = ${JSON.stringify(join(import.meta.dirname, '../../src/index.ts'))}\n${code}`
  const args = ['--input-type=module', '--eval', program]
  const { stdout } = await promisify(execFile)(process.execPath, args, { timeout: 20_000 })
  return stdout
}

describe('startBroker()', () => {
  test('serves a client from memory, with declared topics, and is gone after stop', async () => {
    const broker = await startBroker({
      topics: ['orders', { name: 'audit', partitions: 3, configs: { 'cleanup.policy': 'compact' } }],
    })
    expect(broker.bootstrapServers).toBe(`localhost:${broker.port}`)
    expect(broker.dataDirectory).toBeUndefined()
    expect(broker.clusterId).toMatch(/^[\w-]{22}$/)
    await send(broker, 'orders', 'a', 'b')
    expect(await endOffsets(broker, 'orders')).toEqual(['2'])
    expect(await endOffsets(broker, 'audit')).toEqual(['0', '0', '0'])
    await broker.stop()
    await broker.stop()
    expect(await isListening(broker.port)).toBe(false)
  })

  test('runs many at once, each a cluster of its own', async () => {
    const brokers = await Promise.all(
      Array.from({ length: 5 }, (_, i) => startBroker({ topics: [{ name: 'mine', partitions: i + 1 }] })),
    )
    expect(new Set(brokers.map(({ port }) => port)).size).toBe(5)
    expect(new Set(brokers.map(({ clusterId }) => clusterId)).size).toBe(5)
    const partitions = await Promise.all(brokers.map(async (broker) => (await endOffsets(broker, 'mine')).length))
    expect(partitions).toEqual([1, 2, 3, 4, 5])
    await Promise.all(brokers.map((broker) => broker.stop()))
  })

  test('keeps its data in a folder over a restart', async () => {
    const storage = join(newFolder(), 'made', 'when-missing')
    const first = await startBroker({ storage, topics: ['orders'] })
    expect(first.dataDirectory).toBe(storage)
    await send(first, 'orders', 'a', 'b', 'c')
    await expect(startBroker({ storage })).rejects.toThrow(DirectoryLockedError)
    await first.stop()
    await using second = await startBroker({ storage, topics: ['orders', 'more'] })
    expect(second.clusterId).toBe(first.clusterId)
    expect(await endOffsets(second, 'orders')).toEqual(['3'])
    expect(await endOffsets(second, 'more')).toEqual(['0'])
  })

  test('removes a temporary folder at stop', async () => {
    let folder: string | undefined
    {
      await using broker = await startBroker({ storage: 'temporary', topics: ['orders'] })
      folder = broker.dataDirectory
      await send(broker, 'orders', 'a')
      expect(readdirSync(folder!)).toContain('orders-0')
    }
    expect(existsSync(folder!)).toBe(false)
  })

  test('refuses what contradicts itself, naming all of it', async () => {
    const starting = startBroker({
      port: 70_000,
      config: { listeners: 'PLAINTEXT://localhost:0', 'log.dirs': '/tmp/x' },
    })
    await expect(starting).rejects.toThrow(ConfigError)
    await expect(starting).rejects.toThrow(/log\.dirs[\s\S]*70000[\s\S]*listeners/)
    await expect(startBroker({ config: { 'num.partitons': 1 } })).rejects.toThrow('did you mean num.partitions')
    await expect(startBroker({ topics: [{ name: 'a', configs: { 'cleanup.policy': 'x' } }] })).rejects.toThrow(
      ConfigError,
    )
    await expect(startBroker({ topics: ['no good name'] })).rejects.toThrow(ConfigError)
    await expect(startBroker({ storage: '' })).rejects.toThrow(ConfigError)
    const mistyped = { topic: ['orders'], topics: 'orders', 'log.retention.ms': 5 } as object
    await expect(startBroker(mistyped)).rejects.toThrow(
      /topic is no option .*\n.*log\.retention\.ms is .* in the option config\n.*topics: allowed is a list/,
    )
  })

  test.each([null, 'orders', 5, ['orders']])('refuses %j in place of options', async (options) => {
    const starting = startBroker(options as unknown as BrokerOptions)
    await expect(starting).rejects.toThrow(ConfigError)
    await expect(starting).rejects.toThrow('startBroker: allowed is an object with topics, config')
  })

  test.each([
    [{ config: null }, "config: allowed is an object with settings under Kafka's keys"],
    [{ config: ['a'] }, 'config: allowed is an object'],
    [{ topics: null }, 'topics: allowed is a list'],
    [{ topics: [null] }, 'topics: null: allowed is a name, or an object with name'],
    [{ topics: [{ name: 'a', partitons: 3 }] }, 'topics: topic a: partitons is no field of a topic: did you mean'],
    [{ topics: [{ name: 'a', config: {} }] }, 'did you mean configs?'],
    [{ topics: ['a', 'a'] }, 'topics: topic a is declared twice'],
    [{ storage: 5 }, 'storage: allowed is memory, temporary or a path'],
    [{ clock: null }, 'clock: allowed is manual or { startAt }'],
    [{ topic: ['a'] }, 'topic is no option of startBroker: did you mean topics?'],
  ])('refuses %j', async (options, message) => {
    const starting = startBroker(options as unknown as BrokerOptions)
    await expect(starting).rejects.toThrow(ConfigError)
    await expect(starting).rejects.toThrow(message)
  })

  test.each([
    [null, 'startCluster: allowed is an object with nodes, brokers'],
    [{ node: 3 }, 'node is no option of startCluster: did you mean nodes?'],
    [{ topics: 'orders' }, 'topics: allowed is a list'],
    [{ topics: [{ name: 'a', config: {} }] }, 'did you mean configs?'],
  ])('startCluster refuses %j', async (options, message) => {
    const starting = startCluster(options as unknown as ClusterOptions)
    await expect(starting).rejects.toThrow(ConfigError)
    await expect(starting).rejects.toThrow(message)
  })

  test('says that a port is taken, and leaves no folder behind', async () => {
    await using broker = await startBroker()
    await using folder = await temporaryFolder()
    vi.stubEnv('TMPDIR', folder.path) // of its own: other tests make and remove folders meanwhile
    onTestFinished(() => void vi.unstubAllEnvs())
    await expect(startBroker({ port: broker.port, storage: 'temporary' })).rejects.toThrow(NetworkError)
    expect(readdirSync(folder.path)).toEqual([])
  })

  test('takes settings under the keys of Kafka', async () => {
    await using broker = await startBroker({ config: { 'num.partitions': 4 }, topics: ['orders'] })
    expect(await endOffsets(broker, 'orders')).toHaveLength(4)
  })

  test('writes to the logger that it is given', async () => {
    const lines: { fields: Record<string, unknown>; message: string }[] = []
    const loggerWith = (base: Record<string, unknown>): BrokerLogger => {
      const write = (fields: Record<string, unknown>, message: string) => {
        lines.push({ fields: { ...base, ...fields }, message })
      }
      return {
        child: (fields) => loggerWith({ ...base, ...fields }),
        debug: write,
        info: write,
        warn: write,
        error: write,
      }
    }
    const broker = await startBroker({ logger: loggerWith({ test: 1 }) })
    await broker.stop()
    expect(lines).toContainEqual({ fields: expect.objectContaining({ test: 1 }), message: 'node started' })
  })
})

describe('a program with a broker', () => {
  test('ends by itself after stop, in memory and on a disk', async () => {
    const left = await runProgram(`
      const { startBroker } = await import(index)
      for (const storage of ['memory', 'temporary']) {
        const broker = await startBroker({ storage, topics: ['orders'] })
        await broker.stop()
      }
      console.log(process.getActiveResourcesInfo().filter((each) => /TCP|Timeout|Immediate|Worker/.test(each)).join())`)
    expect(left).toBe('\n')
  })

  test.each([
    ['memory', []],
    ['temporary', ['classic-level', 'level']],
  ])('in storage %s loads of Level, pino and gRPC only %j', async (storage, packages) => {
    const loaded = await runProgram(`
      const { registerHooks } = await import('node:module')
      const seen = new Set()
      registerHooks({
        load(url, context, next) {
          const found = /node_modules\\/(level|classic-level|pino|@grpc)\\//.exec(url)
          if (found) seen.add(found[1])
          return next(url, context)
        },
      })
      const { startBroker } = await import(index)
      const broker = await startBroker({ storage: '${storage}', topics: ['orders'] })
      await broker.stop()
      console.log(JSON.stringify([...seen].sort()))`)
    expect(JSON.parse(loaded)).toEqual(packages)
  })
})
