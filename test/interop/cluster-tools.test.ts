import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { apis, ErrorCode } from '../../src/protocol/index.ts'
import { ClusterProcesses } from '../support/cluster-processes.ts'
import { until } from '../support/condition.ts'
import { describeWithPeer } from '../support/peers.ts'
import { ToolHost } from './java/tool-host.ts'

/** A look is a call of a tool. */
const patient = { timeout: 60_000, interval: 100 }

interface Move {
  readonly topic: string
  readonly partition: number
  readonly replicas: readonly number[]
}

/** Kafka's tools for clusters against three Rookery nodes in processes of their own. The tests build on each other. */
describeWithPeer('kafka-compiled', "Apache Kafka's tools for several nodes", (peer) => {
  let cluster: ClusterProcesses
  let host: ToolHost
  let folder: string
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'rookery-cluster-tools-'))
    host = new ToolHost(peer)
    cluster = await ClusterProcesses.start()
  })
  afterAll(async () => {
    await host[Symbol.asyncDispose]()
    await cluster[Symbol.asyncDispose]()
    await rm(folder, { recursive: true })
  })

  const attempt = (tool: string, ...args: string[]) =>
    host.run(`org.apache.kafka.tools.${tool}`, ['--bootstrap-server', cluster.bootstrapServers, ...args])
  const run = async (tool: string, ...args: string[]): Promise<string> => {
    const { exitCode, stdout, output } = await attempt(tool, ...args)
    expect(exitCode, output).toBe(0)
    return stdout
  }
  const file = async (name: string, content: string): Promise<string> => {
    await writeFile(join(folder, name), content)
    return join(folder, name)
  }
  const plan = (name: string, ...partitions: readonly Move[]) => file(name, JSON.stringify({ version: 1, partitions }))
  const reassign = (...args: string[]) => run('reassign.ReassignPartitionsCommand', ...args)
  const elect = (...args: string[]) => attempt('LeaderElectionCommand', '--election-type', ...args)
  /** `1 [1,2] 1,2`: leader, replicas and ISR of each partition, in order. */
  const partitionsOf = async (topic: string): Promise<string[]> => {
    const described = await run('TopicCommand', '--describe', '--topic', topic)
    return [...described.matchAll(/Leader: (\S+)\tReplicas: (\S+)\tIsr: (\S+)/g)].map(
      ([, leader, replicas, isr = '']) => `${leader} [${replicas}] ${isr.split(',').sort().join()}`,
    )
  }
  /** Of a topic, which any node may be asked for: one hears of a change a moment after another. */
  const expectPartitions = (topic: string, of: (all: string[]) => unknown = (all) => all) =>
    expect.poll(async () => of(await partitionsOf(topic)), patient)
  const quorum = async (): Promise<string[]> => {
    const replicas = await run('MetadataQuorumCommand', 'describe', '--replication')
    return [...replicas.matchAll(/^(\d)\s+(\S{22})\t.*\t(\w+)\s*$/gm)].map((line) => line.slice(1).join(' '))
  }

  test('topics are placed as they are asked to be, and described by any node', async () => {
    await run('TopicCommand', '--create', '--topic', 'orders', '--replica-assignment', '1:2,2:3,3:1')
    await expectPartitions('orders').toEqual(['1 [1,2] 1,2', '2 [2,3] 2,3', '3 [3,1] 1,3'])
    await run(
      'TopicCommand',
      '--alter',
      '--topic',
      'orders',
      '--partitions',
      '4',
      '--replica-assignment',
      '1:2,2:3,3:1,2:1',
    )
    await expectPartitions('orders', (all) => all[3]).toBe('2 [2,1] 1,2')
    const refused = await attempt('TopicCommand', '--create', '--topic', 'far', '--replica-assignment', '1:7')
    expect([refused.exitCode, refused.output]).toEqual([1, expect.stringContaining('InvalidReplicaAssignment')])
  })

  test('the quorum is described with its leader, its lag and where each voter listens', async () => {
    const status = await run('MetadataQuorumCommand', 'describe', '--status')
    expect(status).toMatch(/^LeaderId: +[123]$/m)
    expect(status).toMatch(/^CurrentObservers: +\[\]$/m)
    for (const { controller } of cluster.ports) expect(status).toContain(`CONTROLLER://127.0.0.1:${controller}`)
    const members = (await quorum()).map((line) => line.split(' ')[2]).sort()
    expect(members).toEqual(['Follower', 'Follower', 'Leader'])
  })

  test('each broker is asked for its own settings', async () => {
    const config = (...args: string[]) =>
      host.run('org.apache.kafka.tools.ConfigCommand', ['--bootstrap-server', cluster.address(1), ...args])
    for (const id of ['2', '3']) {
      const altered = await config(
        '--alter',
        '--entity-type',
        'brokers',
        '--entity-name',
        id,
        '--add-config',
        'message.max.bytes=2000000',
      )
      expect(altered.exitCode, altered.output).toBe(0)
      const { stdout } = await config('--describe', '--entity-type', 'brokers', '--entity-name', id)
      expect(stdout).toContain('message.max.bytes=2000000')
    }
    const { stdout } = await config('--describe', '--entity-type', 'brokers', '--entity-name', '1')
    expect(stdout).not.toContain('message.max.bytes=2000000')
  })

  test('partitions are moved, and back with the plan that the tool kept', async () => {
    const moves = await plan(
      'moves.json',
      { topic: 'orders', partition: 0, replicas: [3, 2] },
      { topic: 'orders', partition: 1, replicas: [2, 3, 1] },
    )
    const executed = await reassign('--execute', '--reassignment-json-file', moves)
    const [kept = ''] = /^\{.*\}$/m.exec(executed) ?? []
    expect(JSON.parse(kept).partitions[0].replicas).toEqual([1, 2])
    const untilDone = (name: string) =>
      until(
        async () => !/still in progress/.test(await reassign('--verify', '--reassignment-json-file', name)),
        'the reassignment is done',
      )
    await untilDone(moves)
    expect(await reassign('--list')).toContain('No partition reassignments found')
    await expectPartitions('orders', (all) => all.slice(0, 2)).toEqual(['3 [3,2] 2,3', '2 [2,3,1] 1,2,3'])
    const back = await file('back.json', kept)
    await reassign('--execute', '--reassignment-json-file', back)
    await untilDone(back)
    await expectPartitions('orders', (all) => all.slice(0, 2)).toEqual(['1 [1,2] 1,2', '2 [2,3] 2,3'])
  })

  test('a move that would change the number of replicas is refused where the client says so', async () => {
    for (const replicas of [[1], [1, 2, 3]]) {
      const topics = [{ name: 'orders', partitions: [{ partitionIndex: 0, replicas }] }]
      const request = { topics, allowReplicationFactorChange: false }
      const answer = await cluster.with(2, (client) => client.request(apis.AlterPartitionReassignments, 1, request))
      expect(answer.responses[0]?.partitions[0]?.errorCode).toBe(ErrorCode.INVALID_REPLICATION_FACTOR)
    }
  })

  test('leaders are elected: the preferred one, who is there, and who is not', async () => {
    const partition = ['--topic', 'orders', '--partition', '0']
    expect((await elect('preferred', ...partition)).stdout).toContain('Valid replica already elected')
    expect((await elect('unclean', ...partition)).stdout).toContain('Valid replica already elected')
    await cluster.node(1).kill()
    await expectPartitions('orders', (all) => all[0]).toMatch(/^2 /)
    const refused = await elect('preferred', ...partition)
    expect([refused.exitCode, refused.output]).toEqual([1, expect.stringContaining('PreferredLeaderNotAvailable')])
    await cluster.launch(1).whenServing()
    await expectPartitions('orders', (all) => all[0]).toBe('2 [1,2] 1,2')
    expect((await elect('preferred', ...partition)).stdout).toContain('Successfully completed leader election')
    expect((await elect('preferred', '--all-topic-partitions')).exitCode).toBe(0)
    await expectPartitions('orders', (all) => all[0]).toBe('1 [1,2] 1,2')
  })

  test('a reassignment to a node that is away is listed, and cancelled', async () => {
    await cluster.node(3).kill()
    const moves = await plan('away.json', { topic: 'orders', partition: 0, replicas: [1, 3] })
    // The tool begins nothing to a broker that it knows to be away.
    const topics = [{ name: 'orders', partitions: [{ partitionIndex: 0, replicas: [1, 3] }] }]
    const begun = await cluster.with(1, (client) => client.request(apis.AlterPartitionReassignments, 1, { topics }))
    expect(begun.responses[0]?.partitions[0]?.errorCode).toBe(0)
    expect(await reassign('--list')).toMatch(/orders-0: replicas: 1,3,2\. adding: 3\. removing: 2\./)
    expect(await reassign('--verify', '--reassignment-json-file', moves)).toContain('still in progress')
    // Otherwise the tool waits for node 3, to clear its throttles.
    const cancel = ['--cancel', '--preserve-throttles', '--reassignment-json-file', moves]
    expect(await reassign(...cancel)).toContain('Successfully cancelled')
    await expectPartitions('orders', (all) => all[0]).toBe('1 [1,2] 1,2')
    // With node 3 away, which shows after a moment, nothing could be committed without another voter.
    const isAway = async () => {
      const replicas = await run('MetadataQuorumCommand', 'describe', '--replication')
      // -1 when it wasn't heard since the leader was elected.
      const heardMs = (line: RegExp) => Number(line.exec(replicas)?.[1])
      const leaderMs = heardMs(/^\d .*\t(\d{13}) *\t\d+ *\tLeader/m)
      return leaderMs - heardMs(/^3 .*\t(-?\d+) *\t-?\d+ *\tFollower/m) > 1000
    }
    await until(isAway, 'node 3 is not heard')
    const [id, directory] = (await quorum()).find((line) => line.endsWith('Leader'))!.split(' ') as [string, string]
    const voter = ['--controller-id', id, '--controller-directory-id', directory]
    const refused = await attempt('MetadataQuorumCommand', 'remove-controller', ...voter)
    expect([refused.exitCode, refused.output]).toEqual([1, expect.stringContaining('only 1 are heard')])
    await cluster.launch(3).whenServing()
    await expectPartitions('orders', (all) => all[1]).toBe('2 [2,3] 2,3')
  })

  test('features are described, taken back and brought again', async () => {
    const level = async () =>
      /eligible\S+ .*FinalizedVersionLevel: (\d)/.exec(await run('FeatureCommand', 'describe'))?.[1]
    expect(await level()).toBe('1')
    await run('FeatureCommand', 'downgrade', '--feature', 'eligible.leader.replicas.version=0')
    await expect.poll(level, patient).toBe('0')
    await run('FeatureCommand', 'upgrade', '--feature', 'eligible.leader.replicas.version=1')
    const refused = await attempt('FeatureCommand', 'upgrade', '--feature', 'metadata.version=99')
    expect([refused.exitCode, refused.output]).toEqual([1, expect.stringContaining('Could not upgrade')])
  })

  test('the voter that leads is removed, follows as an observer, and is added again', async () => {
    const [id, directory] = (await quorum()).find((line) => line.endsWith('Leader'))!.split(' ') as [string, string]
    const voter = ['--controller-id', id, '--controller-directory-id', directory]
    await run('MetadataQuorumCommand', 'remove-controller', ...voter)
    await until(async () => (await quorum()).includes(`${id} ${directory} Observer`), `node ${id} observes`)
    const again = await attempt('MetadataQuorumCommand', 'remove-controller', ...voter)
    expect([again.exitCode, again.output]).toEqual([1, expect.stringContaining('VoterNotFound')])
    const { client, controller } = cluster.ports[Number(id) - 1]!
    const settings = await file(
      'node.properties',
      `process.roles=broker,controller
node.id=${id}
listeners=PLAINTEXT://127.0.0.1:${client},CONTROLLER://127.0.0.1:${controller}
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
controller.quorum.bootstrap.servers=127.0.0.1:${controller}
log.dirs=${join(cluster.folder, `node-${id}`)}
`,
    )
    await run('MetadataQuorumCommand', '--command-config', settings, 'add-controller')
    expect(await quorum()).toContain(`${id} ${directory} Follower`)
    const twice = await attempt('MetadataQuorumCommand', '--command-config', settings, 'add-controller')
    expect([twice.exitCode, twice.output]).toEqual([1, expect.stringContaining('DuplicateVoter')])
  })

  test('a node that is gone is unregistered', async () => {
    await cluster.node(3).kill()
    const unregister = (id: string) =>
      host.run('org.apache.kafka.tools.ClusterTool', [
        'unregister',
        '--bootstrap-server',
        cluster.address(1),
        '--id',
        id,
      ])
    expect((await unregister('3')).output).toContain('Broker 3 is no longer registered')
    expect((await unregister('3')).output).toMatch(/not registered/)
    await expectPartitions('orders', (all) => all[1]).toBe('2 [2,3] 2')
    await cluster.launch(3).whenServing()
    await expectPartitions('orders', (all) => all[1]).toBe('2 [2,3] 2,3')
  })
})
