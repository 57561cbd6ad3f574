import { join } from 'node:path'
import { expect, test } from 'vitest'
import { apis, buildBatch } from '../../src/protocol/index.ts'
import { until } from '../support/condition.ts'
import { freePorts } from '../support/free-ports.ts'
import { startKafkaBroker } from '../support/kafka-broker.ts'
import { describeWithPeer } from '../support/peers.ts'
import { RookeryProcess } from '../support/rookery-process.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { recordsOf } from './batches.ts'
import { Recorder } from './recorder.ts'

const speed = 'replica.alter.log.dirs.io.max.bytes.per.second'
const config = { 'replica.fetch.max.bytes': 100_000, 'log.flush.interval.messages': 1_000_000 }
const topic = 'moved'

/** What a broker with two folders says of a replica that moves from one to the other. Folders are called `home` and `away`. */
async function movesOf(port: number, folders: readonly string[]): Promise<unknown[]> {
  const said: unknown[] = []
  await using broker = new Recorder(port, '')
  await broker.createTopic(topic)
  for (let i = 0; i < 20; i++) {
    const records = buildBatch({ records: recordsOf(1, { value: Buffer.alloc(100_000, i) }) })
    const topicData = [{ name: topic, partitionData: [{ index: 0, records }] }]
    await broker.ask(apis.Produce, 9, { acks: -1, timeoutMs: 10_000, topicData })
  }
  const topics = [{ topic, partitions: [0] }]
  const folderOf = async (isFuture: boolean): Promise<string | undefined> => {
    const { results } = await broker.ask(apis.DescribeLogDirs, 2, { topics })
    return results.find((each) => each.topics[0]?.partitions.some(({ isFutureKey }) => isFutureKey === isFuture))
      ?.logDir
  }
  const home = (await folderOf(false))!
  const away = folders.find((each) => each !== home)!
  const nameOf = (path: string): string => path.replace(home, 'home').replace(away, 'away')
  const describe = async (): Promise<void> => {
    for (const version of [1, 2, 3, 4]) {
      const { results } = await broker.ask(apis.DescribeLogDirs, version, { topics })
      const found = results.map(({ logDir, errorCode, topics: each }) => {
        const partitions = each.flatMap((of) => of.partitions)
        return [
          nameOf(logDir),
          errorCode,
          partitions.map(({ partitionIndex, isFutureKey, offsetLag, partitionSize }) => {
            // How far a copy is, is its own matter.
            return [
              partitionIndex,
              isFutureKey,
              isFutureKey ? offsetLag > 0 && offsetLag <= 20 : offsetLag,
              isFutureKey || partitionSize,
            ]
          }),
        ] as const
      })
      said.push(['describe', version, found.sort(([a], [b]) => (a < b ? -1 : 1))])
    }
  }
  const alter = async (path: string, name = topic, partitions = [0]): Promise<void> => {
    for (const version of [1, 2]) {
      const { results } = await broker.ask(apis.AlterReplicaLogDirs, version, {
        dirs: [{ path, topics: [{ name, partitions }] }],
      })
      const codes = results.flatMap((each) =>
        each.partitions.map((of) => [each.topicName, of.partitionIndex, of.errorCode]),
      )
      said.push(['alter', nameOf(path), codes.map((each) => each.join(' ')).sort()])
    }
  }
  const setSpeed = async (bytesPerSecond: number): Promise<void> => {
    const configs = [{ name: speed, configOperation: 0, value: String(bytesPerSecond) }]
    const resources = [{ resourceType: 4, resourceName: '1', configs }]
    const { responses } = await broker.ask(apis.IncrementalAlterConfigs, 1, { resources, validateOnly: false })
    said.push(['speed', responses[0]?.errorCode])
    // Kafka answers before its broker goes by it. That takes changes one after the other: when the second of these topics, which
    // was made after the first was served, is served, all of what came before the first is done.
    for (const each of ['first', 'second']) await broker.createTopic(`${each}-after-${bytesPerSecond}`)
  }
  await describe()
  await alter(home)
  // The move is under way for as long as anyone looks.
  await setSpeed(20_000)
  await alter(away)
  await until(async () => (await folderOf(true)) === away, 'the copy is there')
  await describe()
  // Nothing of this ends the move.
  await alter(away)
  await alter('relative')
  await alter('')
  await alter('/nowhere/at/all')
  await alter(`${away}/`)
  await alter(away, topic, [1, -1])
  await alter(away, 'missing')
  await alter('/nowhere/at/all', 'missing')
  await describe()
  await alter(home)
  await until(async () => (await folderOf(true)) === undefined, 'the copy is gone')
  await describe()
  await setSpeed(1_000_000_000)
  await alter(away)
  const hasMoved = async () => (await folderOf(false)) === away && (await folderOf(true)) === undefined
  await until(hasMoved, 'the replica is in the other folder')
  await describe()
  for (const timestamp of [-1n, -2n]) {
    const partitions = [{ partitionIndex: 0, timestamp, currentLeaderEpoch: -1 }]
    const ends = await broker.ask(apis.ListOffsets, 5, { replicaId: -1, topics: [{ name: topic, partitions }] })
    said.push(['offset', ends.topics[0]?.partitions[0]?.errorCode, ends.topics[0]?.partitions[0]?.offset])
  }
  return said
}

describeWithPeer('kafka', 'Rookery and Apache Kafka, each with two folders,', (peer) => {
  test('say the same of a replica that moves from one to the other', { timeout: 240_000 }, async () => {
    await using folder = await temporaryFolder()
    const foldersOf = (name: string) => ['1', '2'].map((each) => join(folder.path, `${name}-${each}`))
    const [theirFolders, ourFolders] = [foldersOf('kafka'), foldersOf('rookery')]
    const [port] = await freePorts(1)
    const settings = {
      ...config,
      'node.id': 1,
      'log.dirs': ourFolders.join(),
      listeners: `PLAINTEXT://127.0.0.1:${port}`,
    }
    const overrides = Object.entries(settings).flatMap(([key, value]) => ['--override', `${key}=${value}`])
    const rookery = new RookeryProcess(['start', ...overrides])
    try {
      await rookery.untilSays('node started')
      const ours = await movesOf(port!, ourFolders)
      await using kafka = await startKafkaBroker(peer, { config: { ...config, 'log.dirs': theirFolders.join() } })
      expect(ours).toEqual(await movesOf(kafka.port, theirFolders))
    } finally {
      await rookery.signal('SIGTERM')
    }
  })
})
