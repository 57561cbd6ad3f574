import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { apis } from '../../src/protocol/index.ts'
import { ClusterProcesses } from '../support/cluster-processes.ts'
import { until } from '../support/condition.ts'
import { readPartition } from '../support/kafka-connection.ts'
import { produceBatch } from '../support/producing.ts'
import { rookery } from '../support/rookery-process.ts'

/** `rookery reassign` and `rookery leaders` against three nodes. The tests build on each other. */
let cluster: ClusterProcesses
beforeAll(async () => {
  cluster = await ClusterProcesses.start({ config: { 'num.partitions': 3, 'default.replication.factor': 1 } })
})
afterAll(async () => {
  await cluster[Symbol.asyncDispose]()
})

const run = (...args: string[]) => rookery([...args, '--bootstrap-server', cluster.bootstrapServers])
async function json<Result>(...args: string[]): Promise<Result> {
  const { code, stdout, stderr } = await run(...args, '--json')
  expect(code, stderr).toBe(0)
  return JSON.parse(stdout) as Result
}
/** Another node than the one that makes the topic may be asked for it next. */
async function create(topic: string, ...args: string[]): Promise<void> {
  expect((await run('topics', 'create', topic, ...args)).code).toBe(0)
  for (const id of [1, 2]) {
    const isKnown = async () => (await cluster.partitions(id, topic).catch(() => [])).length > 0
    await until(isKnown, `node ${id} knows ${topic}`)
  }
}
async function replicasOf(topic: string): Promise<number[][]> {
  const [described] = await json<{ partitions: { replicas: number[]; isr: number[] }[] }[]>('topics', 'describe', topic)
  return described!.partitions.map(({ replicas }) => replicas)
}
/** Of the first node that is there, which may hear of the end of a reassignment a moment after others. */
async function untilReplicas(topic: string, of: (all: number[][]) => unknown, expected: unknown): Promise<void> {
  await expect.poll(async () => of(await replicasOf(topic)), { timeout: 60_000, interval: 100 }).toEqual(expected)
}
const sorted = (all: number[][]) => all.map((replicas) => [...replicas].sort())
async function planned(name: string, ...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await run('reassign', 'plan', ...args)
  expect(code, stderr).toBe(0)
  const path = join(cluster.folder, name)
  await writeFile(path, stdout)
  return path
}

test('a plan that was made is carried out, and the command stays until it is', async () => {
  await create('orders')
  const plan = await planned('grow.json', 'orders', '--replication-factor', '3')
  const { code, stdout, stderr } = await run('reassign', 'start', plan, '--wait')
  expect([code, stderr.trim()]).toEqual([0, '3 partitions reassigned'])
  expect(stdout).toMatch(/^(Partition orders-\d: reassignment begun\n){3}$/)
  await untilReplicas('orders', sorted, [
    [1, 2, 3],
    [1, 2, 3],
    [1, 2, 3],
  ])
  expect(new Set((await replicasOf('orders')).map(([first]) => first)).size).toBe(3)
  expect((await run('reassign')).stdout).toBe('No reassignments\n')
  const again = await run('reassign', 'plan', 'orders')
  expect([again.stderr.trim(), again.stdout]).toEqual([
    '0 of 3 partitions would change',
    '{"version":1,"partitions":[]}\n',
  ])
})

test('replicas leave a broker', async () => {
  const plan = await planned('leave.json', 'orders', '--to', '1', '--to', '2')
  expect((await run('reassign', 'start', plan, '-w')).code).toBe(0)
  await untilReplicas('orders', sorted, [
    [1, 2],
    [1, 2],
    [1, 2],
  ])
})

test('leaders are elected where they have to be, and one that is asked for is told of', async () => {
  await cluster.node(1).kill()
  await until(async () => (await cluster.partitions(2, 'orders')).every(({ leader }) => leader === 2), 'node 2 leads')
  await cluster.launch(1).whenServing()
  await until(
    async () => (await cluster.partitions(2, 'orders')).every(({ isr }) => isr.length === 2),
    'node 1 is in sync',
  )
  const elected = await run('leaders', 'elect', 'ord*')
  expect([elected.code, elected.stderr]).toEqual([0, ''])
  expect(elected.stdout).toMatch(/^(Partition orders-\d: leader elected\n)+$/)
  expect((await run('leaders', 'elect')).stderr).toBe('No election was needed\n')
  const needless = await run('leaders', 'elect', 'orders', '-p', '0')
  expect([needless.code, needless.stderr]).toEqual([1, expect.stringContaining('ELECTION_NOT_NEEDED')])
  const unknown = await run('leaders', 'elect', 'orders', '-p', '9')
  expect([unknown.code, unknown.stderr]).toEqual([1, expect.stringContaining('UNKNOWN_TOPIC_OR_PARTITION')])
  expect((await run('leaders', 'elect', 'orders', '--unclean', '--yes')).stderr).toBe('No election was needed\n')
})

test('a reassignment that waits for a node is listed and cancelled', async () => {
  await cluster.node(3).kill()
  const plan = join(cluster.folder, 'away.json')
  await writeFile(
    plan,
    '{"version":1,"partitions":[{"topic":"orders","partition":0,"replicas":[1,3],"log_dirs":["any","any"]}]}',
  )
  const begun = await run('reassign', 'start', plan)
  expect(begun.code, begun.stderr).toBe(0) // it may say that it waits for an election
  expect(await json('reassign', 'list')).toEqual([
    { topic: 'orders', partition: 0, replicas: expect.arrayContaining([1, 2, 3]), adding: [3], removing: [2] },
  ])
  expect((await run('reassign', 'cancel', '--all')).stdout).toBe('Partition orders-0: reassignment cancelled\n')
  await untilReplicas('orders', (all) => sorted(all)[0], [1, 2])
  const none = await run('reassign', 'cancel', plan)
  expect([none.code, none.stderr]).toEqual([1, expect.stringContaining('NO_REASSIGNMENT_IN_PROGRESS')])
  expect((await run('reassign', 'cancel', '--all')).stderr).toBe('No reassignments\n')
})

test.each([
  ['{', 'JSON'],
  ['{"version":2}', 'version has to be 1'],
  ['{"version":1,"partitions":[]}', 'no list of partitions'],
  ['{"version":1,"partitions":[{"topic":"orders","partition":0,"replicas":[]}]}', 'a partition needs'],
  ['{"version":1,"partitions":[{"topic":"orders","partition":0,"replicas":["1"]}]}', 'a partition needs'],
])('a file %s is no plan', async (content, complaint) => {
  const path = join(cluster.folder, 'bad.json')
  await writeFile(path, content)
  const { code, stderr } = await run('reassign', 'start', path)
  expect([code, stderr]).toEqual([2, expect.stringContaining(complaint)])
})

test('brokers that are not there, and too few of them, are refused', async () => {
  const unknown = await run('reassign', 'plan', 'orders', '--to', '9')
  expect([unknown.code, unknown.stderr]).toEqual([2, expect.stringContaining('There is no broker 9')])
  const few = await run('reassign', 'plan', 'orders', '--replication-factor', '4')
  expect([few.code, few.stderr]).toEqual([2, expect.stringContaining('4 replicas')])
  expect((await run('reassign', 'cancel')).code).toBe(2)
})

test('a replica comes of a partition that begins within a batch, and a throttle is taken back', async () => {
  await create('cut', '-p', '1')
  const [[source = 0] = []] = await replicasOf('cut')
  await cluster.with(source, async (client) => {
    const record = (i: number) => ({ key: null, value: Buffer.from(`${i}`), timestamp: Date.now() })
    for (let batch = 0; batch < 3; batch++) {
      await produceBatch(client, 'cut', 0, { records: [0, 1, 2].map((i) => record(batch * 3 + i)) })
    }
    const partitions = [{ partitionIndex: 0, offset: 4 }]
    const deleted = await client.request(apis.DeleteRecords, 2, {
      topics: [{ name: 'cut', partitions }],
      timeoutMs: 10_000,
    })
    expect(deleted.topics[0]?.partitions[0]?.errorCode).toBe(0)
  })
  const other = cluster.ids.find((id) => id !== source)!
  const plan = join(cluster.folder, 'cut.json')
  const partitions = [{ topic: 'cut', partition: 0, replicas: [other], log_dirs: ['any'] }]
  await writeFile(plan, JSON.stringify({ version: 1, partitions }))
  const { code, stderr } = await run('reassign', 'start', plan, '--throttle', '1MiB')
  expect([code, stderr.trim()]).toEqual([0, '1 partition reassigned'])
  await untilReplicas('cut', (all) => all, [[other]])
  const described = await Promise.all([
    run('configs', 'describe', 'topic', 'cut'),
    run('configs', 'describe', 'broker', String(other)),
  ])
  for (const { stdout } of described) expect(stdout).not.toMatch(/throttled.*[0-9]/)
  const consumed = await cluster.with(other, (client) => readPartition(client, 'cut', 0, 4))
  expect(consumed.at(-1)!.baseOffset + consumed.at(-1)!.records.length).toBe(9)
  expect((await run('reassign', 'start', plan, '--throttle', 'much')).code).not.toBe(0)
})
