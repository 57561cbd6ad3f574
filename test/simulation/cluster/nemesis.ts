import type { Server } from '../node/server.ts'
import { sleep } from '../node/world.ts'
import type { Operator } from './operator.ts'
import type { ClusterFault } from './scenario.ts'
import type { ClusterWorld } from './world.ts'

/** How long it waits for a cluster that gets no peace. */
const longestRecoveryMs = 15_000
const lookMs = 50
/** They come alone. */
const wiping: ReadonlySet<ClusterFault | undefined> = new Set(['wipe', 'revote-wipe'])
/** Within this time logs that went offline on a full disk have tried again. */
const roomCheckMs = 6000

/**
 * Makes the faults: one after the other, or two at once on different nodes. After most of them the cluster may become whole
 * again; after the others the next comes while it is at it.
 */
export class ClusterNemesis {
  readonly #world: ClusterWorld
  readonly #operator: Operator
  readonly #clientHosts: readonly string[]
  /** Faults that are made now. */
  #underWay = 0
  faults = 0
  /** Disks that were wiped. */
  wipes = 0

  /** `clientHosts`: machines whose links may be cut. */
  constructor(world: ClusterWorld, operator: Operator, clientHosts: readonly string[]) {
    this.#world = world
    this.#operator = operator
    this.#clientHosts = clientHosts
  }

  /** Starts the nodes, and makes all rounds of the scenario. Nobody is down on purpose when it resolves. */
  async run(): Promise<void> {
    const { scenario, servers, random, history } = this.#world
    for (const server of servers) {
      server.host.disk.syncUs = scenario.syncUs
      if (random.float() < 0.5) await this.#pass(0, 800)
      server.start()
    }
    await this.#untilWhole()
    for (let round = 0; round < scenario.rounds; round++) {
      if (history.violation !== undefined) return
      if (scenario.isVolatile) await this.#untilWhole(Number.POSITIVE_INFINITY)
      await this.#pass(20, 800)
      const [one, other] = this.#pickServers()
      const first = this.#draw()
      const second = random.float() < scenario.overlap && !wiping.has(first) ? this.#draw() : undefined
      await Promise.all([
        this.#make(first, one),
        second === undefined ? undefined : this.#pass(0, 500).then(() => this.#make(second, other)),
      ])
      for (const server of servers) if (!server.host.isUp) server.start()
      if (random.float() < 0.6) await this.#untilWhole()
    }
  }

  #draw(): ClusterFault | undefined {
    const { scenario, random } = this.#world
    return scenario.faults[random.int(Math.max(1, scenario.faults.length))]
  }

  /** Two nodes; the first leads more often than others would. */
  #pickServers(): readonly [Server, Server] {
    const { servers, random } = this.#world
    const i = random.int(servers.length)
    const j = (i + 1 + random.int(servers.length - 1)) % servers.length
    return [servers[i]!, servers[j]!]
  }

  async #make(kind: ClusterFault | undefined, server: Server): Promise<void> {
    if (kind === undefined) return
    this.#underWay++
    try {
      await this.#makeOne(kind, server)
    } finally {
      this.#underWay--
    }
  }

  async #makeOne(kind: ClusterFault, server: Server): Promise<void> {
    this.faults++
    this.#world.pace.refresh()
    const { random, servers, scenario, simulation } = this.#world
    const operator = this.#operator
    const { network } = simulation
    const { host } = server
    const others = servers.map((each) => each.host.name).filter((name) => name !== host.name)
    switch (kind) {
      case 'kill':
      case 'power-loss':
        server.end(kind === 'power-loss')
        await this.#downFor(server)
        break
      case 'power-loss-of-all':
        for (const each of servers) each.end(true)
        for (const each of servers) {
          await this.#pass(0, 300)
          if (!each.host.isUp) each.start()
        }
        break
      case 'kill-two': {
        const second = this.#serverAt(others[random.int(others.length)]!)
        server.end(random.float() < 0.5)
        await this.#pass(0, 200)
        second.end(random.float() < 0.5)
        await Promise.all([this.#downFor(server), this.#downFor(second)])
        break
      }
      case 'stop':
        await server.stop()
        await this.#downFor(server)
        break
      case 'pause':
        host.pause()
        await this.#pass(1, 6000)
        host.resume()
        break
      case 'cut-one-way':
      case 'cut-both-ways': {
        const other = others[random.int(others.length)]!
        network.cut(host.name, other)
        if (kind === 'cut-both-ways') network.cut(other, host.name)
        await this.#pass(50, 6000)
        network.heal(host.name, other)
        network.heal(other, host.name)
        break
      }
      case 'isolate': {
        // From the other nodes, not from clients.
        network.partition([host.name], others)
        await this.#pass(50, 6000)
        for (const other of others) {
          network.heal(host.name, other)
          network.heal(other, host.name)
        }
        break
      }
      case 'cut-client': {
        const client = this.#clientHosts[random.int(this.#clientHosts.length)]!
        const [from, to] = random.float() < 0.5 ? [client, host.name] : [host.name, client]
        network.cut(from, to)
        await this.#pass(50, 5000)
        network.heal(from, to)
        break
      }
      case 'delay': {
        const other = others[random.int(others.length)]!
        network.delay(host.name, other, 1 + random.int(400))
        await this.#pass(50, 3000)
        network.delay(host.name, other, 0)
        break
      }
      case 'slow-disk':
        host.disk.syncUs = [5000, 5000 + random.int(200_000)]
        await this.#pass(50, 2000)
        if (random.float() < 0.5) {
          server.end(true)
          await this.#downFor(server)
        }
        host.disk.syncUs = scenario.syncUs
        break
      case 'clock-jump':
        host.jumpClock((random.float() < 0.5 ? -1 : 1) * random.int(20 * 60_000))
        break
      case 'disk-full':
        server.isExcused = true
        host.disk.capacityBytes = host.disk.usedBytes + random.int(20_000)
        await this.#pass(100, 3000)
        host.disk.capacityBytes = 2 ** 40
        if (random.float() < 0.5) server.end(false)
        // It comes back by itself: the logs look for room, and a node that ended is started by its service manager.
        await this.#downFor(server)
        await this.#untilUp(server)
        server.isExcused = false
        break
      case 'write-error':
      case 'sync-error': {
        const isSync = kind === 'sync-error'
        server.isExcused = true
        server.mustLosePower = isSync
        const takeBack = host.disk.failNext({
          operation: isSync ? 'sync' : 'write',
          code: 'EIO',
          skip: random.int(20),
          path: /^\/data/,
          times: 1 + random.int(2),
        })
        await this.#pass(20, 1500)
        takeBack()
        server.end(isSync || random.float() < 0.5)
        await this.#downFor(server)
        server.isExcused = false
        break
      }
      case 'revote':
        operator.takeVote(server)
        await this.#pass(50, 4000)
        operator.giveVote(server)
        break
      case 'wipe':
        await this.#wipe(server)
        break
      case 'revote-wipe':
        operator.takeVote(server)
        await this.#wipe(server)
        operator.giveVote(server)
        break
    }
  }

  /**
   * What is on a disk that goes has to be somewhere else: one goes only when the cluster is whole, and nobody else is down by a
   * fault. Nothing else happens until the cluster has learned of it (to whom it is in sync till then, the next to fail may be the only
   * other one that was); from then on anything may, but for another disk.
   */
  async #wipe(server: Server): Promise<void> {
    const { watch, servers, simulation, history, random } = this.#world
    const operator = this.#operator
    const isReady = () =>
      servers.every(({ isUp }) => isUp) &&
      watch.isWhole &&
      operator.isSettledBut(server) &&
      watch.isSpare(server.host.name)
    const startedMs = simulation.nowMs
    while (!isReady() && history.violation === undefined && simulation.nowMs - startedMs < longestRecoveryMs) {
      await sleep(this.#world.timers, lookMs)
    }
    const wipes = isReady() && this.#underWay === 1
    server.end(random.float() < 0.5)
    if (wipes) {
      this.wipes++
      server.host.disk.wipe()
      watch.onWiped(server.host.name)
      operator.onWiped()
    }
    await this.#downFor(server)
    while (!watch.knowsOfWipe(server.host.name) && history.violation === undefined) {
      await sleep(this.#world.timers, lookMs)
    }
  }

  #serverAt(name: string): Server {
    return this.#world.servers.find(({ host }) => host.name === name)!
  }

  /** Starts it after some time, unless somebody did. */
  async #downFor(server: Server): Promise<void> {
    const { random } = this.#world
    // Shorter and longer than what it takes the others to notice by silence.
    await this.#pass(1, random.float() < 0.7 ? 400 : 5000)
    if (!server.host.isUp) server.start()
  }

  async #untilUp(server: Server): Promise<void> {
    const { simulation, history, timers } = this.#world
    const startedMs = simulation.nowMs
    while (!server.isUp && history.violation === undefined && simulation.nowMs - startedMs < longestRecoveryMs) {
      await sleep(timers, lookMs)
    }
    await sleep(timers, roomCheckMs)
  }

  async #untilWhole(mostMs = longestRecoveryMs): Promise<void> {
    const { simulation, watch, history, timers } = this.#world
    const startedMs = simulation.nowMs
    while (!watch.isWhole && history.violation === undefined && simulation.nowMs - startedMs < mostMs) {
      await sleep(timers, lookMs)
    }
  }

  async #pass(leastMs: number, mostMs: number): Promise<void> {
    const { random, timers } = this.#world
    await sleep(timers, leastMs + random.int(mostMs - leastMs + 1))
  }
}
