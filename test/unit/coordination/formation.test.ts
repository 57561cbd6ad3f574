import { describe, expect, test } from 'vitest'
import type { Uuid } from '../../../src/base/index.ts'
import { type Formation, formQuorum, type Place } from '../../../src/coordination/raft/formation.ts'
import { createSimulation, type SimulatedHost, type Simulation } from '../../../src/platform/simulated/index.ts'
import { loadNodeMessages, type NodeDescription, type RpcTarget } from '../../../src/rpc/index.ts'
import { silentLogger } from '../../../src/telemetry/index.ts'
import { createSocketRpc } from '../../support/socket-rpc.ts'

const messages = await loadNodeMessages()
const port = 9093
const three: ReadonlyMap<number, RpcTarget> = new Map([1, 2, 3].map((id) => [id, { host: `n${id}`, port }]))

const directoryOf = (id: number) => `AAAAAAAAAAAAAAAAAAAAA${'QgwA'[id - 1]}` as Uuid

/** One node before its first boot: it tells of itself, and forms as soon as it may. */
class NewNode {
  readonly host: SimulatedHost
  readonly stopping = new AbortController()
  formation: Formation | undefined
  fault: unknown
  readonly #id: number
  readonly #directoryId: Uuid
  readonly #voters: ReadonlyMap<number, RpcTarget>

  readonly #incarnationId: Uuid
  readonly #clusterId: string | undefined
  readonly #options: {
    readonly servers?: readonly string[]
    readonly isController?: boolean
    readonly calledBy?: { readonly nodeId: number; readonly clusterId: string }
  }

  constructor(
    simulation: Simulation,
    id: number,
    options: {
      voters?: typeof three
      /** `controller.quorum.bootstrap.servers`, in place of voters. */
      servers?: readonly string[]
      isController?: boolean
      calledBy?: { nodeId: number; clusterId: string }
      directoryId?: Uuid
      host?: string
      clusterId?: string
    } = {},
  ) {
    this.#options = options
    this.host = simulation.host(options.host ?? `n${id}`)
    this.#id = id
    this.#incarnationId = this.host.platform.random.uuid()
    this.#clusterId = options.clusterId
    this.#directoryId = options.directoryId ?? directoryOf(id)
    this.#voters = options.servers === undefined ? (options.voters ?? three) : new Map()
  }

  get #places(): readonly Place[] {
    const { servers } = this.#options
    if (servers === undefined) return [...this.#voters].map(([id, target]) => ({ id, target }))
    return servers.map((host) => ({ id: undefined, target: { host, port } }))
  }

  async start(): Promise<void> {
    const { platform } = this.host
    const network = createSocketRpc(platform)
    await network.listen(
      { host: '0.0.0.0', port },
      {
        call: async () => messages.nodeDescription.encode(this.#describe()),
        stream: () => ({ onMessage() {}, onClose() {} }),
      },
    )
    formQuorum({
      network,
      messages,
      timers: platform.timers,
      logger: silentLogger,
      nodeId: this.#id,
      directoryId: this.#directoryId,
      isController: this.#options.isController ?? true,
      places: this.#places,
      calledBy: () => this.#options.calledBy,
      incarnationId: this.#incarnationId,
      newClusterId: this.#clusterId ?? `cluster-of-${this.#id}`,
      isClusterIdGiven: this.#clusterId !== undefined,
      signal: this.stopping.signal,
    }).then(
      (formation) => {
        this.formation = formation
      },
      (error: unknown) => {
        this.fault = error
      },
    )
  }

  #describe(): NodeDescription {
    const voters = this.formation?.voters ?? []
    return {
      protocolVersion: 1,
      clusterId: this.formation?.clusterId ?? '',
      nodeId: this.#id,
      directoryId: this.#directoryId,
      incarnationId: this.#incarnationId,
      configuredVoters: [...this.#voters].map(([id, target]) => ({
        id,
        directoryId: '',
        endpoint: `${target.host}:${port}`,
      })),
      bootstrapServers: (this.#options.servers ?? []).map((host) => `${host}:${port}`),
      voters: voters.map((voter) => ({ ...voter, endpoint: voter.endpoint ?? '' })),
      term: 0,
    }
  }
}

const formedByOne = {
  clusterId: 'cluster-of-1',
  voters: [1, 2, 3].map((id) => ({ id, directoryId: directoryOf(id), endpoint: `n${id}:${port}` })),
}

function within(body: (simulation: Simulation) => Promise<void>): Promise<void>[] {
  return [1, 2, 3].map((seed) => {
    const simulation = createSimulation({ seed })
    return simulation.run(body(simulation), { maxVirtualMs: 600_000 })
  })
}

function pass({ platform }: SimulatedHost, ms: number): Promise<void> {
  return new Promise((resolve) => platform.timers.set(ms, resolve))
}

describe('the first boot of a quorum', () => {
  test('waits for every voter, whatever their order, and all agree on the cluster and on the disks', async () => {
    for (const order of [
      [1, 2, 3],
      [3, 1, 2],
      [2, 3, 1],
    ]) {
      await Promise.all(
        within(async (simulation) => {
          const nodes = order.map((id) => new NewNode(simulation, id))
          for (const node of nodes.slice(0, -1)) await node.start()
          await pass(nodes[0]!.host, 20_000)
          expect(nodes.map(({ formation }) => formation)).toEqual([undefined, undefined, undefined])
          await nodes.at(-1)!.start()
          await pass(nodes[0]!.host, 3000)
          expect(nodes.map(({ formation }) => formation)).toEqual([formedByOne, formedByOne, formedByOne])
        }),
      )
    }
  })

  test('one that comes late to a cluster of which its disk is a voter joins it, also without the first voter', async () => {
    await Promise.all(
      within(async (simulation) => {
        const [one, two, three] = [1, 2, 3].map((id) => new NewNode(simulation, id))
        await Promise.all([one!.start(), two!.start(), three!.start()])
        await pass(two!.host, 3000)
        one!.host.kill()
        three!.host.kill()
        three!.host.restart()
        const again = new NewNode(simulation, 3)
        await again.start()
        await pass(two!.host, 3000)
        expect(again.formation).toEqual(formedByOne)
      }),
    )
  })

  test('one whose disk was wiped follows without a vote', async () => {
    await Promise.all(
      within(async (simulation) => {
        const nodes = [1, 2, 3].map((id) => new NewNode(simulation, id))
        await Promise.all(nodes.map((node) => node.start()))
        await pass(nodes[0]!.host, 3000)
        nodes[1]!.host.kill()
        nodes[1]!.host.restart()
        const wiped = new NewNode(simulation, 2, { directoryId: directoryOf(4) })
        await wiped.start()
        await pass(nodes[0]!.host, 3000)
        expect(wiped.formation).toEqual({ clusterId: 'cluster-of-1', voters: [] })
      }),
    )
  })

  test('does not take the word of one that follows a cluster and knows none of its voters', async () => {
    await Promise.all(
      within(async (simulation) => {
        const nodes = [1, 2, 3].map((id) => new NewNode(simulation, id))
        await nodes[2]!.start()
        nodes[2]!.formation = { clusterId: 'cluster-of-1', voters: [] }
        await nodes[0]!.start()
        await nodes[1]!.start()
        await pass(nodes[0]!.host, 3000)
        expect(nodes.slice(0, 2).map(({ formation }) => formation)).toEqual([undefined, undefined])
        nodes[2]!.formation = formedByOne as unknown as Formation
        await pass(nodes[0]!.host, 3000)
        expect(nodes.slice(0, 2).map(({ formation }) => formation)).toEqual([formedByOne, formedByOne])
      }),
    )
  })

  test('nodes that mean different quorums refuse each other, and say what differs', async () => {
    await Promise.all(
      within(async (simulation) => {
        const other = new Map([...three, [3, { host: 'elsewhere', port }]] as const)
        const nodes = [new NewNode(simulation, 1), new NewNode(simulation, 2, { voters: other })]
        await Promise.all(nodes.map((node) => node.start()))
        await pass(nodes[0]!.host, 3000)
        for (const { fault } of nodes) {
          expect(fault).toMatchObject({ reason: 'wrong-cluster' })
          expect(String(fault)).toContain('3@n3:9093')
          expect(String(fault)).toContain('3@elsewhere:9093')
        }
      }),
    )
  })

  test('a second process with the id of another refuses to go on, and the first is not disturbed', async () => {
    await Promise.all(
      within(async (simulation) => {
        const nodes = [1, 2, 3].map((id) => new NewNode(simulation, id))
        const second = new NewNode(simulation, 2, { host: 'elsewhere', directoryId: directoryOf(4) })
        await second.start()
        await Promise.all(nodes.map((node) => node.start()))
        await pass(nodes[0]!.host, 5000)
        expect(nodes.map(({ formation }) => formation)).toEqual([formedByOne, formedByOne, formedByOne])
        expect(String(second.fault)).toContain('Two nodes have node.id 2: another process answers at n2:9093')
      }),
    )
  })

  test('a node that is to be of another cluster refuses to join', async () => {
    await Promise.all(
      within(async (simulation) => {
        const nodes = [1, 2, 3].map((id) => new NewNode(simulation, id))
        await Promise.all(nodes.map((node) => node.start()))
        await pass(nodes[0]!.host, 3000)
        nodes[2]!.host.kill()
        nodes[2]!.host.restart()
        const stranger = new NewNode(simulation, 3, { clusterId: 'another' })
        await stranger.start()
        await pass(nodes[0]!.host, 3000)
        expect(stranger.formation).toBeUndefined()
        expect(String(stranger.fault)).toContain('These nodes are not of one cluster: node 3 of cluster another')
      }),
    )
  })

  test('ends at once when the node stops', async () => {
    await Promise.all(
      within(async (simulation) => {
        const node = new NewNode(simulation, 1)
        await node.start()
        await pass(node.host, 5000)
        node.stopping.abort()
        await pass(node.host, 5)
        expect(node.fault).toMatchObject({ reason: 'stopped' })
      }),
    )
  })
})

describe('the first boot of controllers that are found by their places', () => {
  const servers = ['n1', 'n2', 'n3']

  test('waits for all of them, and forms a cluster of all', async () => {
    await Promise.all(
      within(async (simulation) => {
        const nodes = [1, 2, 3].map((id) => new NewNode(simulation, id, { servers }))
        await Promise.all([nodes[2]!.start(), nodes[0]!.start()])
        await pass(nodes[0]!.host, 20_000)
        expect(nodes.map(({ formation }) => formation)).toEqual([undefined, undefined, undefined])
        await nodes[1]!.start()
        await pass(nodes[0]!.host, 3000)
        expect(nodes.map(({ formation }) => formation)).toEqual([formedByOne, formedByOne, formedByOne])
      }),
    )
  })

  test('waits as long as one of them has other places in its settings', async () => {
    await Promise.all(
      within(async (simulation) => {
        const nodes = [
          new NewNode(simulation, 1, { servers: ['n1', 'n2'] }),
          new NewNode(simulation, 2, { servers: ['n2', 'n1', 'n3'] }),
        ]
        await Promise.all(nodes.map((node) => node.start()))
        await pass(nodes[0]!.host, 20_000)
        expect(nodes.map(({ formation, fault }) => [formation, fault])).toEqual([
          [undefined, undefined],
          [undefined, undefined],
        ])
      }),
    )
  })

  test('one place that is its own makes a quorum of one, which the others follow, be they controllers or not', async () => {
    await Promise.all(
      within(async (simulation) => {
        const [one, two, broker] = [
          new NewNode(simulation, 1, { servers: ['n1'] }),
          new NewNode(simulation, 2, { servers: ['n1'] }),
          new NewNode(simulation, 3, { servers: ['n1'], isController: false }),
        ]
        await two!.start()
        await broker!.start()
        await pass(two!.host, 3000)
        await one!.start()
        await pass(two!.host, 3000)
        const voters = [{ id: 1, directoryId: directoryOf(1), endpoint: `n1:${port}` }]
        expect(one!.formation).toEqual({ clusterId: 'cluster-of-1', voters })
        expect(two!.formation).toEqual({ clusterId: 'cluster-of-1', voters: [] })
        expect(broker!.formation).toEqual({ clusterId: 'cluster-of-1', voters: [] })
      }),
    )
  })

  test('one that a cluster calls does not begin another, though its folder is empty', async () => {
    await Promise.all(
      within(async (simulation) => {
        const wiped = new NewNode(simulation, 1, { servers: ['n1'], calledBy: { nodeId: 2, clusterId: 'theirs' } })
        await wiped.start()
        await pass(wiped.host, 3000)
        expect(wiped.formation).toBeUndefined()
        expect(String(wiped.fault)).toContain('Node 2 of cluster theirs knows this node, whose folder is empty')
      }),
    )
  })

  test('two with one id refuse each other', async () => {
    await Promise.all(
      within(async (simulation) => {
        const nodes = [
          new NewNode(simulation, 1, { servers: ['n1', 'n2'] }),
          new NewNode(simulation, 1, { servers: ['n1', 'n2'], host: 'n2' }),
        ]
        await Promise.all(nodes.map((node) => node.start()))
        await pass(nodes[0]!.host, 3000)
        for (const { fault } of nodes) expect(String(fault)).toContain('Two nodes have node.id 1')
      }),
    )
  })
})

describe('a broker that is no voter', () => {
  test('waits for the voters of its settings to form a cluster, and refuses one with others', async () => {
    await Promise.all(
      within(async (simulation) => {
        const two = new Map([...three].slice(0, 2))
        const broker = new NewNode(simulation, 9, { isController: false, directoryId: directoryOf(4) })
        const stranger = new NewNode(simulation, 8, { isController: false, voters: two, directoryId: directoryOf(4) })
        await broker.start()
        await pass(broker.host, 3000)
        expect(broker.formation).toBeUndefined()
        await Promise.all([1, 2, 3].map((id) => new NewNode(simulation, id).start()))
        await pass(broker.host, 3000)
        expect(broker.formation).toEqual({ clusterId: 'cluster-of-1', voters: [] })
        await stranger.start()
        await pass(broker.host, 3000)
        expect(String(stranger.fault)).toContain('controller.quorum.voters differs: node 8 has 1@n1:9093,2@n2:9093')
      }),
    )
  })
})
