import { readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { type Admin, Kafka, logLevel } from 'kafkajs'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Broker, startBroker } from '../../src/index.ts'
import { RookeryProcess, type RunOptions, rookery } from '../support/rookery-process.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

/** What the commands say of partitions that can't be read, and of topics that go while they are read. */

let folder: AsyncDisposable & { readonly path: string }
let broker: Broker

const run = (args: readonly string[], options?: RunOptions) =>
  rookery([...args, '--bootstrap-server', broker.bootstrapServers], options)

/** Starts a broker on a folder in which the partition `hurt-1` has lost a file. */
beforeAll(async () => {
  folder = await temporaryFolder()
  const topics = [{ name: 'hurt', partitions: 2 }, 'whole']
  broker = await startBroker({ topics, storage: folder.path })
  for (const partition of ['0', '1']) await run(['produce', 'hurt', '--partition', partition], { input: 'a\nb\n' })
  await broker.stop()
  await rm(join(folder.path, 'hurt-1', 'partition.metadata'))
  expect(await readdir(join(folder.path, 'hurt-1'))).toContain('00000000000000000000.log')
  broker = await startBroker({ storage: folder.path })
})

afterAll(async () => {
  await broker.stop()
  await folder[Symbol.asyncDispose]()
})

const linesOf = (text: string) => text.split('\n').filter((line) => line !== '')

describe('a partition whose log is damaged', () => {
  test('is a failure for the doctor, with its name, the error and what to do', async () => {
    const { code, stdout } = await run(['doctor', '--json'])
    const findings = JSON.parse(stdout) as { check: string; status: string; message: string; advice: string }[]
    const failures = findings.filter(({ status }) => status === 'fail')
    expect(failures).toMatchObject([
      { check: 'partitions', message: expect.stringMatching(/1 of 3 partitions .*hurt-1.*KAFKA_STORAGE_ERROR/) },
    ])
    expect(failures[0]?.advice).toContain('rookery log verify')
    expect(code).toBe(1)
  })

  test('is counted by cluster', async () => {
    const { code, stdout } = await run(['cluster', '--json'])
    expect(code).toBe(0)
    expect(JSON.parse(stdout)).toMatchObject({
      partitions: {
        partitions: 3,
        offline: [],
        failed: [{ partition: 'hurt-1', error: expect.stringContaining('KAFKA_STORAGE_ERROR') }],
      },
    })
    const text = (await run(['cluster'])).stdout
    expect(text).toMatch(/^2 topics, 3 partitions: 0 offline, 1 failed, 0 under-replicated$/m)
    expect(text).toMatch(/^ {2}Failed +Offset of hurt-1: .*KAFKA_STORAGE_ERROR/m)
  })

  test('is described at once beside the others', async () => {
    const { code, stdout, stderr } = await run(['topics', 'describe', 'hurt', '--timeout', '300'])
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(stdout).toMatch(/^ +0 .* ok +0 +2$/m)
    expect(stdout).toMatch(/^ +1 .* failed +- +-$/m)
    expect(stdout).toMatch(/^Offset of hurt-1: .*KAFKA_STORAGE_ERROR.*rookery log verify/m)
    const described = JSON.parse((await run(['topics', 'describe', 'hurt', '--json'])).stdout)
    expect(described[0].partitions).toMatchObject([
      { error: null, endOffset: 2 },
      { error: expect.stringContaining('KAFKA_STORAGE_ERROR'), endOffset: null },
    ])
  })

  test('leaves the lag of a group in the others', async () => {
    const partitions = [0, 1].map((partition) => ({ partition, offset: '1' }))
    await withAdmin((admin) => admin.setOffsets({ groupId: 'half', topic: 'hurt', partitions }))
    const { code, stdout } = await run(['groups', 'describe', 'half', '--json', '--timeout', '300'])
    expect(code).toBe(0)
    const offsets = [
      { partition: 0, committedOffset: 1, lag: 1 },
      { partition: 1, committedOffset: 1, lag: null },
    ]
    expect(JSON.parse(stdout)[0]).toMatchObject({ groupId: 'half', offsets })
  })

  test.each([
    ['consume', ['consume', 'hurt', '--exit']],
    ['consume in a group', ['consume', 'hurt', '--exit', '--group', 'g']],
    ['produce', ['produce', 'hurt', '--partition', '1']],
    ['offsets', ['offsets', 'hurt']],
  ])('%s ends soon, with one line', async (_name, args) => {
    const startMs = performance.now()
    const { code, stderr } = await run([...args, '--timeout', '300'], { input: 'c\n' })
    const errors = linesOf(stderr).filter((line) => line.startsWith('rookery:'))
    expect(errors).toEqual([expect.stringMatching(/hurt-1.*KAFKA_STORAGE_ERROR.*rookery log verify/)])
    expect(code).toBe(1)
    expect(performance.now() - startMs).toBeLessThan(100_000)
  })
})

describe('a topic that is deleted while it is read', () => {
  const consumers = [
    ['alone', []],
    ['in a group', ['--group', 'readers']],
  ] as const

  test.each(consumers)('ends a consumer %s, with one line', async (name, group) => {
    const topic = `gone-${name.replaceAll(' ', '-')}`
    await run(['topics', 'create', topic])
    await run(['produce', topic], { input: 'first\n' })
    const args = ['consume', topic, '--from', 'beginning', ...group, '-b', broker.bootstrapServers, '--timeout', '300']
    const consumer = new RookeryProcess(args)
    await consumer.untilSays('first')
    await withAdmin((admin) => admin.deleteTopics({ topics: [topic] }))
    const { code, stderr } = await consumer.finished
    expect(linesOf(stderr)).toEqual([expect.stringContaining(`rookery: There is no topic ${topic}. `)])
    expect(code).toBe(1)
  })

  test.each(consumers)('and made anew is read on by a consumer %s', async (name, group) => {
    const topic = `again-${name.replaceAll(' ', '-')}`
    await run(['topics', 'create', topic])
    await run(['produce', topic], { input: 'first\n' })
    const args = ['consume', topic, '--from', 'beginning', ...group, '-b', broker.bootstrapServers]
    const consumer = new RookeryProcess(args)
    await consumer.untilSays('first')
    await withAdmin(async (admin) => {
      await admin.deleteTopics({ topics: [topic] })
      await admin.createTopics({ topics: [{ topic }] })
    })
    await run(['produce', topic], { input: 'second\n' })
    await consumer.untilSays('second')
    expect((await consumer.signal('SIGINT')).code).toBe(0)
  })
})

/** In this process: a command takes more than the second between two commits of a group. */
async function withAdmin(work: (admin: Admin) => Promise<unknown>): Promise<void> {
  const admin = new Kafka({ brokers: [broker.bootstrapServers], logLevel: logLevel.NOTHING }).admin()
  await admin.connect()
  await work(admin)
  await admin.disconnect()
}
