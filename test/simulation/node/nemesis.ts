import type { DiskFault } from '../../../src/platform/simulated/index.ts'
import { PropertyViolation } from '../checkers/checker.ts'
import { listTopics } from './admin.ts'
import { Client } from './client.ts'
import type { FaultKind } from './scenario.ts'
import { serverName } from './server.ts'
import { sleep, type World } from './world.ts'

const fileCalls = ['rename', 'syncDirectory', 'remove', 'openSync'] as const
/** A trigger that nothing pulls is pulled after this time. */
const longestTriggerMs = 1500
/** Within this time a disk that has room again is in use again: the logs, and the metadata log, look for it every few seconds. */
const timeToResumeMs = 6000
/** A whole start of a node is about this many events. */
const eventsOfStart = 250

/**
 * Makes the faults: one after the other, each undone before the next, and the node started again where it ended.
 *
 * A power loss comes at a moment that tells: after some number of events (a uniform one within a start), right when a client
 * has got an acknowledgement (above all when the answer to a copy overtakes the answer to the batch), or at a call that changes names on the disk.
 */
export class Nemesis {
  readonly #world: World
  readonly #clientHosts: readonly string[]
  #pull: (() => void) | undefined
  #eventsLeft = 0
  #acksLeft = 0
  #overtakingLeft = 0
  #callsLeft = 0
  #callName: string | undefined
  #isDue = false
  powerLosses = 0

  /** `clientHosts`: machines whose links may be cut. */
  constructor(world: World, clientHosts: readonly string[]) {
    this.#world = world
    this.#clientHosts = clientHosts
    world.server.onFileCall = (name) => this.#onFileCall(name)
  }

  /** After each event of the simulation: pulls the trigger when it is due. */
  afterEvent(): void {
    if (this.#pull === undefined) return
    if (this.#eventsLeft > 0 && --this.#eventsLeft === 0) this.#isDue = true
    if (!this.#isDue) return
    const pull = this.#pull
    this.#disarm()
    pull()
  }

  /** A client got an acknowledgement. `isOvertaking`: one that came by a second way, before that of the first. */
  onAck(isOvertaking: boolean): void {
    if (this.#acksLeft > 0 && --this.#acksLeft === 0) this.#isDue = true
    if (isOvertaking && this.#overtakingLeft > 0 && --this.#overtakingLeft === 0) this.#isDue = true
  }

  #onFileCall(name: string): void {
    if (name === this.#callName && this.#callsLeft > 0 && --this.#callsLeft === 0) this.#isDue = true
  }

  #disarm(): void {
    this.#pull = undefined
    this.#isDue = false
    this.#eventsLeft = 0
    this.#acksLeft = 0
    this.#overtakingLeft = 0
    this.#callsLeft = 0
  }

  /** Crashes within the first start, then all rounds of the scenario. The node is up when it resolves. */
  async run(): Promise<void> {
    const { scenario, server, random, pace } = this.#world
    const startCrashes = random.float() < 0.4 ? 1 + random.int(3) : 0
    server.host.disk.syncUs = scenario.syncUs
    server.start()
    for (let i = 0; i < startCrashes; i++) await this.#powerLossWithin(eventsOfStart)
    await server.whenUp()
    for (let round = 0; round < scenario.rounds; round++) {
      if (this.#world.history.violation !== undefined) return
      await this.#pass(20, 600)
      const kind = scenario.faults[random.int(Math.max(1, scenario.faults.length))]
      if (kind !== undefined) await this.#make(kind)
      await server.whenUp()
      pace.refresh()
    }
  }

  async #make(kind: FaultKind): Promise<void> {
    const { random, server, scenario, simulation } = this.#world
    const { host } = server
    switch (kind) {
      case 'power-loss':
        await this.#powerLoss()
        break
      case 'power-loss-at-start':
        await this.#powerLoss()
        for (let i = 1 + random.int(2); i > 0; i--) await this.#powerLossWithin(eventsOfStart)
        break
      case 'kill':
        server.end(false)
        await this.#pass(1, 50)
        server.start()
        break
      case 'stop':
        await server.stop()
        await this.#pass(1, 50)
        if (!host.isUp) server.start()
        break
      case 'pause':
        host.pause()
        await this.#pass(1, 4000)
        host.resume()
        break
      case 'clock-jump':
        host.jumpClock((random.float() < 0.5 ? -1 : 1) * random.int(20 * 60_000))
        break
      case 'slow-disk':
        host.disk.syncUs = [5000, 5000 + random.int(100_000)]
        await this.#pass(50, 800)
        if (random.float() < 0.5) await this.#powerLoss()
        host.disk.syncUs = scenario.syncUs
        break
      case 'write-error':
        await this.#diskFault({ operation: 'write', code: 'EIO', skip: random.int(30) }, false)
        break
      case 'sync-error':
        await this.#diskFault({ operation: 'sync', code: 'EIO', skip: random.int(10) }, true)
        break
      case 'name-error': {
        const operation = ['rename', 'open', 'remove', 'truncate', 'list'][random.int(5)]!
        await this.#diskFault({ operation, code: 'EIO', skip: random.int(4) }, false)
        break
      }
      case 'disk-full':
        await this.#diskFull()
        break
      case 'cut': {
        const [from, to] = this.#link()
        simulation.network.cut(from, to)
        await this.#pass(50, 5000)
        simulation.network.heal(from, to)
        break
      }
      case 'delay': {
        const [from, to] = this.#link()
        simulation.network.delay(from, to, 1 + random.int(400))
        await this.#pass(50, 2000)
        simulation.network.delay(from, to, 0)
        break
      }
    }
  }

  /** One direction between a client and the node. */
  #link(): readonly [from: string, to: string] {
    const { random } = this.#world
    const client = this.#clientHosts[random.int(this.#clientHosts.length)]!
    return random.float() < 0.5 ? [client, serverName] : [serverName, client]
  }

  /**
   * A call fails; later the node is started anew. After a failed sync the machine loses power, too: the system shows what
   * never reached the disk, and only a new start of the machine ends that.
   */
  async #diskFault(fault: DiskFault, mustLosePower: boolean): Promise<void> {
    const { random, server } = this.#world
    server.isExcused = true
    server.mustLosePower = mustLosePower
    const takeBack = server.host.disk.failNext({ ...fault, path: /^\/data/, times: 1 + random.int(2) })
    await this.#pass(20, 800)
    takeBack()
    server.end(mustLosePower || random.float() < 0.5)
    await this.#pass(1, 50)
    if (!server.host.isUp) server.start()
    server.isExcused = false
  }

  /**
   * Nothing more fits on the disk, the metadata log's one too, and then there is room again. A node that runs stays up and serves again by
   * itself. One that is started meanwhile may refuse to, and is started by its service manager until it does.
   */
  async #diskFull(): Promise<void> {
    const { random, server, timers, history } = this.#world
    const { disk } = server.host
    const room = random.float() < 0.3 ? 0 : random.int(20_000)
    disk.capacityBytes = disk.usedBytes + room
    await this.#pass(100, 3000)
    if ((await listTopics(new Client(this.#world, 'watcher'))) === undefined) {
      history.fail(
        new PropertyViolation('a node whose disk is full answers', 'It does not tell which topics there are'),
      )
    }
    const draw = random.float()
    if (draw < 0.4) {
      server.isExcused = true
      if (draw < 0.2) server.end(draw < 0.1)
      else await server.stop()
      await this.#pass(1, 50)
      if (!server.host.isUp) server.start()
      await this.#pass(100, 3000)
    }
    disk.capacityBytes = 2 ** 40
    await sleep(timers, timeToResumeMs)
    await server.whenUp()
    server.isExcused = false
  }

  /** Takes the power at a telling moment, and starts the node again. */
  async #powerLoss(): Promise<void> {
    const { random } = this.#world
    const draw = random.float()
    if (draw < 0.3) {
      await this.#powerLossWhen(() => {
        this.#acksLeft = 1 + random.int(60)
      })
    } else if (draw < 0.45) {
      await this.#powerLossWhen(() => {
        this.#overtakingLeft = 1 + random.int(3)
      })
    } else if (draw < 0.7) {
      await this.#powerLossWhen(() => {
        this.#callName = fileCalls[random.int(fileCalls.length)]!
        this.#callsLeft = 1 + random.int(6)
      })
    } else {
      await this.#powerLossWithin(3000)
    }
  }

  #powerLossWithin(events: number): Promise<void> {
    const { random } = this.#world
    return this.#powerLossWhen(() => {
      this.#eventsLeft = 1 + random.int(events)
    })
  }

  async #powerLossWhen(arm: () => void): Promise<void> {
    const { server, timers } = this.#world
    await new Promise<void>((resolve) => {
      this.#pull = resolve
      arm()
      const deadline = timers.set(longestTriggerMs, () => {
        this.#isDue = true
      })
      const pulled = this.#pull
      this.#pull = () => {
        deadline.cancel()
        server.end(true)
        pulled()
      }
    })
    this.powerLosses++
    if (!server.host.isUp) server.start()
  }

  async #pass(leastMs: number, mostMs: number): Promise<void> {
    const { random, timers } = this.#world
    this.#world.pace.refresh()
    await sleep(timers, leastMs + random.int(mostMs - leastMs + 1))
  }
}
