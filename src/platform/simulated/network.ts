import { NetworkError } from '../errors.ts'
import type { Listener, ListenOptions, Network, Socket } from '../ports.ts'
import type { Prng } from './prng.ts'
import type { Process } from './process.ts'
import type { Scheduler } from './scheduler.ts'
import { connectPair, type SimulatedSocket } from './socket.ts'

/** A lost connection request is sent again after this long. */
const connectRetryUs = 1_000_000
const firstEphemeralPort = 32_768
const lastEphemeralPort = 60_999

/** What a host is to the network. */
export interface NetworkHost {
  readonly name: string
  readonly address: string
  /** The process that runs on the host; undefined while it is down. */
  readonly process: Process | undefined
}

/** The hosts' network, and the faults of its links. A link is one direction between two hosts. */
export class SimulatedNetwork {
  /** One way between two hosts, drawn uniformly for each piece of data; its order within a connection stays. */
  latencyUs: readonly [least: number, most: number] = [50, 500]
  /** The same within one host. */
  localLatencyUs: readonly [least: number, most: number] = [5, 30]
  readonly #scheduler: Scheduler
  readonly #random: Prng
  readonly #hosts = new Map<string, NetworkHost>()
  readonly #listeners = new Map<string, SimulatedListener>()
  readonly #sockets = new Set<SimulatedSocket>()
  /** Sockets with data on a cut link; a closed one may be among them. */
  readonly #stalled = new Set<SimulatedSocket>()
  readonly #cutLinks = new Set<string>()
  readonly #delaysUs = new Map<string, number>()
  #nextPort = firstEphemeralPort

  constructor(scheduler: Scheduler, random: Prng) {
    this.#scheduler = scheduler
    this.#random = random
  }

  /** Nothing gets from `from` to `to` any more; connections stall. */
  cut(from: string, to: string): void {
    this.#cutLinks.add(linkName(from, to))
  }

  /** What was sent over a cut link meanwhile arrives now, in its order. */
  heal(from: string, to: string): void {
    if (!this.#cutLinks.delete(linkName(from, to))) return
    for (const socket of this.#stalled) {
      if (socket.host !== from || socket.peerHost !== to) continue
      this.#stalled.delete(socket)
      socket.resend()
    }
  }

  /** Cuts each link, both ways, between hosts of different groups. A host in no group stays connected to all. */
  partition(...groups: readonly (readonly string[])[]): void {
    for (const group of groups) {
      for (const other of groups) {
        if (other === group) continue
        for (const from of group) for (const to of other) this.cut(from, to)
      }
    }
  }

  /** Adds `delayMs` to a link; 0 takes it away. */
  delay(from: string, to: string, delayMs: number): void {
    this.#delaysUs.set(linkName(from, to), Math.round(delayMs * 1000))
  }

  /** No cut and no delay is left. */
  healAll(): void {
    this.#delaysUs.clear()
    for (const link of [...this.#cutLinks]) {
      const [from, to] = link.split(linkSeparator)
      this.heal(from!, to!)
    }
  }

  // What follows is for the parts of the simulation.

  addHost(host: NetworkHost): void {
    this.#hosts.set(host.name, host)
  }

  /** The network as one process sees it. */
  portOf(host: NetworkHost, process: Process): Network {
    return {
      listen: (options, onConnection) => this.#listen(host, process, options, onConnection),
      connect: (options) => this.#connect(host, process, options),
    }
  }

  /** The peers of a dead process see their connections reset; its listeners are gone. */
  dropProcess(process: Process): void {
    for (const [key, listener] of this.#listeners) if (listener.process === process) this.#listeners.delete(key)
    for (const socket of [...this.#sockets]) if (socket.process === process) socket.abort()
  }

  isCut(from: string, to: string): boolean {
    return this.#cutLinks.size > 0 && this.#cutLinks.has(linkName(from, to))
  }

  drawLatencyUs(from: string, to: string): number {
    if (from === to) return this.#random.between(...this.localLatencyUs)
    return this.#random.between(...this.latencyUs) + (this.#delaysUs.get(linkName(from, to)) ?? 0)
  }

  addStalled(socket: SimulatedSocket): void {
    this.#stalled.add(socket)
  }

  forget(socket: SimulatedSocket): void {
    this.#sockets.delete(socket)
  }

  #listen(
    host: NetworkHost,
    process: Process,
    options: ListenOptions,
    onConnection: (socket: Socket) => void,
  ): Promise<Listener> {
    return process.perform(this.#random.between(5, 30), () => {
      this.#record(process, 'listen', options.host, options.port)
      const isLocal = this.#resolve(host, options.host) === host && isLoopback(options.host)
      if (!isWildcard(options.host) && this.#resolve(host, options.host) !== host) {
        throw new NetworkError('listen', options.host, options.port, 'EADDRNOTAVAIL')
      }
      let { port } = options
      while (port === 0 || (options.port === 0 && this.#listeners.has(listenerName(host, port))))
        port = this.#takePort()
      const key = listenerName(host, port)
      if (this.#listeners.has(key)) throw new NetworkError('listen', options.host, port, 'EADDRINUSE')
      const listener: SimulatedListener = {
        process,
        host: options.host,
        port,
        isLocal,
        onConnection,
        close: () =>
          process.perform(0, () => {
            if (this.#listeners.get(key) === listener) this.#listeners.delete(key)
          }),
      }
      this.#listeners.set(key, listener)
      return listener
    })
  }

  #connect(
    from: NetworkHost,
    process: Process,
    options: { host: string; port: number; timeoutMs: number },
  ): Promise<Socket> {
    const { host, port } = options
    return new Promise((resolve, reject) => {
      const settle = (delayUs: number, body: () => void): void => {
        this.#scheduler.cancel(timeout)
        this.#scheduler.schedule(delayUs, process, body)
      }
      const fail = (code: string): void => reject(new NetworkError('connect', host, port, code))
      let isTimedOut = false
      const timeout = this.#scheduler.schedule(Math.ceil(options.timeoutMs * 1000), process, () => {
        isTimedOut = true
        fail('ETIMEDOUT')
      })
      const to = this.#resolve(from, host)
      if (to === undefined) {
        settle(this.#random.between(5, 30), () => fail('ENOTFOUND'))
        return
      }
      // The peer's system answers, not its process: a paused one accepts, and takes the connection when it runs again.
      const arrive = (): void => {
        if (isTimedOut || process.isDead) return
        if (this.isCut(from.name, to.name) || this.isCut(to.name, from.name)) {
          this.#scheduler.schedule(connectRetryUs, undefined, arrive)
          return
        }
        const backUs = this.drawLatencyUs(to.name, from.name)
        const listener = this.#listeners.get(listenerName(to, port))
        if (listener === undefined || (listener.isLocal && from !== to)) {
          settle(backUs, () => fail('ECONNREFUSED'))
          return
        }
        this.#record(process, 'connected', to.name, port)
        const addresses =
          from === to && isLoopback(host)
            ? { client: '127.0.0.1', server: '127.0.0.1' }
            : { client: from.address, server: to.address }
        const { client, server } = connectPair(
          { host: from.name, process, address: addresses.client, port: this.#takePort() },
          { host: to.name, process: listener.process, address: addresses.server, port },
          { network: this, scheduler: this.#scheduler, random: this.#random },
        )
        this.#sockets.add(client)
        this.#sockets.add(server)
        this.#scheduler.schedule(0, listener.process, () => listener.onConnection(server))
        settle(backUs, () => resolve(client))
      }
      this.#scheduler.schedule(this.drawLatencyUs(from.name, to.name), undefined, arrive)
    })
  }

  #resolve(from: NetworkHost, name: string): NetworkHost | undefined {
    if (isLoopback(name)) return from
    const host = this.#hosts.get(name)
    if (host !== undefined) return host
    for (const other of this.#hosts.values()) if (other.address === name) return other
    return undefined
  }

  #takePort(): number {
    const port = this.#nextPort++
    if (this.#nextPort > lastEphemeralPort) this.#nextPort = firstEphemeralPort
    return port
  }

  #record(process: Process, operation: string, subject: string, port: number): void {
    this.#scheduler.trace.record(this.#scheduler.nowUs, process.host, operation, subject, port, 0)
  }
}

interface SimulatedListener extends Listener {
  readonly process: Process
  /** Only its own host reaches it. */
  readonly isLocal: boolean
  readonly onConnection: (socket: Socket) => void
}

const linkSeparator = '\u0000'

function linkName(from: string, to: string): string {
  return from + linkSeparator + to
}

function listenerName(host: NetworkHost, port: number): string {
  return `${host.name}:${port}`
}

function isLoopback(name: string): boolean {
  return name === 'localhost' || name === '127.0.0.1' || name === '::1'
}

function isWildcard(name: string): boolean {
  return name === '0.0.0.0' || name === '::'
}
