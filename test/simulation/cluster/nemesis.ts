import type { Server } from '../node/server.ts'
import { sleep } from '../node/world.ts'
import type { Operator } from './operator.ts'
import type { ClusterFault } from './scenario.ts'
import type { ClusterWorld } from './world.ts'

/** How long it waits for a cluster that gets no peace. */
const longestRecoveryMs = 15_000
const lookMs = 50
/** They choose what comes with them. */
const alone: ReadonlySet<ClusterFault | undefined> = new Set(['wipe', 'revote-wipe'])
const disturbances: readonly ClusterFault[] = ['isolate', 'isolate', 'cut-both-ways', 'cut-one-way', 'pause', 'delay']
/**
 * What else happens when a disk is wiped. 'relay': another node is cut off before, and when it comes back the third is, so that what only
 * the wiped one and the third had is known to nobody who is there.
 */
const wipePlans = ['alone', 'disturbed', 'relay', 'relay'] as const
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
      const mayOverlap = random.float() < scenario.overlap && !alone.has(first)
      const drawn = mayOverlap ? this.#draw() : undefined
      const second = alone.has(drawn) ? undefined : drawn
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
        this.#setIsolated(server, true)
        await this.#pass(50, 6000)
        this.#setIsolated(server, false)
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
        if (!operator.looksAfter(server)) break
        operator.takeVote(server)
        await this.#pass(50, 4000)
        operator.giveVote(server)
        break
      case 'wipe':
      case 'revote-wipe':
        await this.#wipe(kind, server)
        break
    }
  }

  /**
   * A machine gets an empty disk. What was on the old one has to be somewhere else: it goes only when the cluster is whole, and until the
   * cluster has learned of it nothing happens that makes another disk doubtful: links fail and nodes are paused. From then on anything
   * may happen, but for another disk.
   */
  async #wipe(kind: ClusterFault, server: Server): Promise<void> {
    const { watch, servers, random, history, timers } = this.#world
    const operator = this.#operator
    const isController = operator.looksAfter(server)
    if (kind === 'revote-wipe' && isController) operator.takeVote(server)
    const isReady = await this.#untilReadyToWipe(server)
    const [one, other] = this.#shuffled(
      servers.filter((each) => each !== server && (isController || operator.looksAfter(each))),
    )
    const plan =
      !isReady || one === undefined || other === undefined ? 'alone' : wipePlans[random.int(wipePlans.length)]
    let disturbance: Promise<void> | undefined
    if (plan === 'disturbed') {
      disturbance = this.#make(disturbances[random.int(disturbances.length)], one!)
      await this.#pass(0, 1500)
    } else if (plan === 'relay') {
      this.#setIsolated(one!, true)
      await this.#pass(100, 2000)
    }
    const isSpare = isReady && watch.isSpare(server.host.name)
    server.end(random.float() < 0.5)
    if (isSpare) {
      this.wipes++
      server.host.disk.wipe()
      watch.onWiped(server.host.name)
      this.#world.quorumWatch.onWiped(server.host.name)
      operator.onWiped()
    }
    if (plan === 'relay') {
      this.#setIsolated(other!, true)
      this.#setIsolated(one!, false)
      disturbance = this.#pass(500, 5000).then(() => this.#setIsolated(other!, false))
    }
    await Promise.all([disturbance, this.#downFor(server)])
    while (!watch.knowsOfWipe(server.host.name) && history.violation === undefined) await sleep(timers, lookMs)
    operator.giveVote(server)
  }

  /** Cuts a node off from the others, or heals that; clients reach it. */
  #setIsolated({ host }: Server, isIsolated: boolean): void {
    const { servers, simulation } = this.#world
    const { network } = simulation
    const others = servers.map((each) => each.host.name).filter((name) => name !== host.name)
    if (isIsolated) network.partition([host.name], others)
    else {
      for (const other of others) {
        network.heal(host.name, other)
        network.heal(other, host.name)
      }
    }
  }

  async #untilReadyToWipe(server: Server): Promise<boolean> {
    const { watch, servers, simulation, history, timers } = this.#world
    const isReady = () =>
      servers.every(({ isUp }) => isUp) &&
      watch.isWhole &&
      this.#operator.isSettledBut(server) &&
      watch.isSpare(server.host.name)
    const startedMs = simulation.nowMs
    while (!isReady() && history.violation === undefined && simulation.nowMs - startedMs < longestRecoveryMs) {
      await sleep(timers, lookMs)
    }
    return isReady()
  }

  #shuffled(servers: readonly Server[]): Server[] {
    const left = [...servers]
    return servers.map(() => left.splice(this.#world.random.int(left.length), 1)[0]!)
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
