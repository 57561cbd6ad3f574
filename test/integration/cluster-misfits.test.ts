import { mkdir, writeFile } from 'node:fs/promises'
import { createConnection, createServer, type Server } from 'node:net'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { BrokerProcess } from '../support/broker-process.ts'
import { ClusterProcesses, portsOfNodes, votersOf } from '../support/cluster-processes.ts'
import { until } from '../support/condition.ts'
import { msOf, shortestMs } from '../support/timing.ts'

/** A signal has to end a process that waits for others within this time. */
const promptMs = 3000

/** Waits for a line of the node's log that says `text`. */
async function untilLogs(node: BrokerProcess, text: string): Promise<void> {
  await until(() => node.logLines().some((line) => JSON.stringify(line).includes(text)), `${text} in the log`).catch(
    (error: unknown) => {
      throw new Error(`${(error as Error).message}:\n${node.program.stdout}\n${node.program.stderr}`)
    },
  )
}

/** How long a stop takes, by `signal` or by SIGTERM; it has to be a clean one. */
function stopMs(node: BrokerProcess, signal: NodeJS.Signals = 'SIGTERM'): Promise<number> {
  return msOf(async () => {
    node.program.kill(signal)
    const { exitCode, output } = await node.program.ended()
    expect(exitCode, output).toBe(0)
  })
}

/** A port that accepts connections and says nothing that makes sense. */
async function garbageServer(port: number): Promise<Server> {
  const server = createServer((socket) => {
    socket.on('error', () => undefined)
    socket.on('data', () => socket.write('HTTP/1.1 400 Bad Request\r\n\r\n'))
  })
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
  return server
}

describe('a cluster that is not formed yet', () => {
  test.each(['SIGTERM', 'SIGINT'] as const)('ends at once at %s, and says before for whom it waits', async (signal) => {
    await using cluster = await ClusterProcesses.prepare()
    const endMs = async () => {
      const node = cluster.launch(1)
      await untilLogs(node, 'new cluster waits for voters')
      const [line] = node.logLines().filter(({ msg }) => msg === 'new cluster waits for voters')
      expect(line!.waitsFor).toEqual(
        [2, 3].map((id) => `${id}@127.0.0.1:${cluster.ports[id - 1]!.controller} (nothing listens there)`),
      )
      return await stopMs(node, signal)
    }
    expect(await shortestMs(promptMs, endMs)).toBeLessThan(promptMs)
  })

  test('forms itself when those that it waited for come, one after the other', async () => {
    await using cluster = await ClusterProcesses.prepare()
    cluster.launch(3)
    await untilLogs(cluster.node(3), 'new cluster waits for voters')
    cluster.launch(1)
    cluster.launch(2)
    await Promise.all(cluster.ids.map((id) => cluster.node(id).whenServing()))
  })

  test('refuses voters that differ from node to node, saying at both what differs', async () => {
    await using cluster = await ClusterProcesses.prepare()
    const [other] = await portsOfNodes(1)
    const differing = votersOf([cluster.ports[0]!, cluster.ports[1]!, other!])
    cluster.launch(1)
    cluster.launch(2, { 'controller.quorum.voters': differing })
    for (const id of [1, 2]) {
      const { exitCode, output } = await cluster.node(id).program.ended()
      expect(exitCode, output).toBe(1)
      expect(output).toContain('controller.quorum.voters differs')
      expect(output).toContain(differing)
    }
  })

  test('refuses a second process with the id of another', async () => {
    await using cluster = await ClusterProcesses.prepare()
    const [other] = await portsOfNodes(1)
    cluster.launch(1)
    await using second = cluster.launchBeside(1, other!)
    const { exitCode, output } = await second.program.ended()
    expect(exitCode, output).toBe(1)
    expect(output).toContain('Two nodes have node.id 1')
  })

  test('says which node answers where another should', async () => {
    await using cluster = await ClusterProcesses.prepare()
    cluster.launch(1)
    const [, second, third] = cluster.ports
    cluster.launch(2, {
      listeners: `PLAINTEXT://127.0.0.1:${second!.client},CONTROLLER://127.0.0.1:${third!.controller}`,
    })
    await untilLogs(cluster.node(1), 'node 2 answers there')
    await untilLogs(cluster.node(2), 'node 2 answers there')
  })

  test('waits for the node behind a port that speaks something else', async () => {
    await using cluster = await ClusterProcesses.prepare()
    const garbage = await garbageServer(cluster.ports[1]!.controller)
    cluster.launch(1)
    cluster.launch(3)
    await untilLogs(cluster.node(1), 'new cluster waits for voters')
    await new Promise((closed) => garbage.close(closed))
    cluster.launch(2)
    await Promise.all(cluster.ids.map((id) => cluster.node(id).whenServing()))
  })
})

describe('a cluster that serves', () => {
  test('refuses a second process with the id of one that lives, at both sides, and goes on', async () => {
    await using cluster = await ClusterProcesses.start()
    const [other] = await portsOfNodes(1)
    await using second = cluster.launchBeside(2, other!)
    const { exitCode, output } = await second.program.ended()
    expect(exitCode, output).toBe(1)
    expect(output).toContain('Two nodes have node.id 2')
    expect(await cluster.controller(1)).toBeGreaterThan(0)
  })

  test('refuses a node of another cluster, at both sides, and takes the right one afterwards', async () => {
    await using cluster = await ClusterProcesses.start()
    await using strangers = await ClusterProcesses.start()
    const foreign = join(strangers.folder, 'node-3')
    await cluster.node(3).stop()
    await strangers.node(3).stop()
    const endMs = async () => {
      const intruder = cluster.launch(3, { 'log.dirs': foreign })
      await untilLogs(intruder, 'of cluster')
      await untilLogs(cluster.node(1), 'Node 3 is of cluster')
      return await stopMs(intruder)
    }
    expect(await shortestMs(promptMs, endMs)).toBeLessThan(promptMs)
    await cluster.launch(3).whenServing()
  })

  test('goes on when somebody sends garbage to a CONTROLLER listener', async () => {
    await using cluster = await ClusterProcesses.start()
    for (const bytes of [Buffer.from('GET / HTTP/1.1\r\n\r\n'), Buffer.alloc(100_000, 0xff)]) {
      for (const { controller } of cluster.ports) {
        const socket = createConnection({ host: '127.0.0.1', port: controller })
        socket.on('error', () => undefined)
        socket.resume()
        socket.end(bytes)
        await new Promise((closed) => socket.once('close', closed))
      }
    }
    expect(await cluster.controller(1)).toBeGreaterThan(0)
  })

  test('comes back when all its nodes were away, and ends within seconds when its quorum is gone', async () => {
    await using cluster = await ClusterProcesses.prepare()
    const startAll = async () => {
      for (const id of cluster.ids) cluster.launch(id)
      await Promise.all(cluster.ids.map((id) => cluster.node(id).whenServing()))
    }
    const lastEndMs = async () => {
      await startAll()
      await cluster.node(2).kill()
      await cluster.node(3).kill()
      return await stopMs(cluster.node(1))
    }
    expect(await shortestMs(9000, lastEndMs)).toBeLessThan(9000)

    const loneEndMs = async () => {
      const alone = cluster.launch(1)
      await untilLogs(alone, 'node waits for a controller')
      return await stopMs(alone)
    }
    expect(await shortestMs(promptMs, loneEndMs)).toBeLessThan(promptMs)
    await startAll()
  })

  test('refuses to start with other voters than the cluster was formed with', async () => {
    await using cluster = await ClusterProcesses.start()
    const [other] = await portsOfNodes(1)
    await cluster.node(3).stop()
    const changed = cluster.launch(3, { 'controller.quorum.voters': votersOf([...cluster.ports, other!]) })
    const { exitCode, output } = await changed.program.ended()
    expect(exitCode, output).toBe(1)
    expect(output).toContain('controller.quorum.voters')
    expect(output).toContain('1, 2, 3')
    await cluster.launch(3).whenServing()
  })

  test('refuses an empty folder in the place of one that was lost: it follows without a vote', async () => {
    await using cluster = await ClusterProcesses.start()
    await cluster.node(3).stop()
    const empty = join(cluster.folder, 'empty')
    await mkdir(empty)
    await writeFile(join(empty, '.keep'), '')
    const node = cluster.launch(3, { 'log.dirs': empty })
    await untilLogs(node, 'following without a vote')
    await node.whenServing()
  })
})
