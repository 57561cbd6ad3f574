import type { Files, Listener, Network, Offload, Platform, Socket, SocketHandlers, Timer, Timers } from '../ports.ts'
import { Turnstile } from './turnstile.ts'

/** A platform whose user can be suspended, and ended, as the operating system does it to a process. */
export interface HaltingPlatform {
  readonly platform: Platform
  /** What is passed through it stops with the platform, too. */
  readonly turnstile: Turnstile
  /** `resource`, whose calls stop with the platform, too; it is closed at the end. */
  wrap<T extends { close(): Promise<unknown> }>(resource: T): T
  /** From now on nothing of the user runs: calls, timers and messages are kept. Its connections stay, and say nothing. */
  pause(): void
  resume(): void
  /**
   * Nothing of the user runs ever again. Its sockets and ports are closed as those of a process that was killed; what it
   * wrote stays. Resolves when calls to files that were under way are over, and its locks are released.
   */
  end(): Promise<void>
}

export function createHaltingPlatform(real: Platform): HaltingPlatform {
  const turnstile = new Turnstile()
  const timers = new HaltingTimers(real.timers, turnstile)
  const files = new HaltingCalls(turnstile)
  const network = new HaltingNetwork(real.network, turnstile)
  return {
    platform: {
      ...real,
      timers,
      files: files.wrap<Files>(real.files),
      offload: files.wrap<Offload>(real.offload),
      network,
    },
    turnstile,
    wrap: (resource) => files.adopt(resource),
    pause: () => {
      turnstile.hold()
      network.pause()
    },
    resume: () => {
      turnstile.letGo()
      network.resume()
    },
    end: async () => {
      turnstile.end()
      timers.end()
      await network.end()
      await files.end()
    },
  }
}

class HaltingTimers implements Timers {
  readonly #real: Timers
  readonly #turnstile: Turnstile
  readonly #pending = new Set<Timer>()

  constructor(real: Timers, turnstile: Turnstile) {
    this.#real = real
    this.#turnstile = turnstile
  }

  set(delayMs: number, callback: () => void): Timer {
    let isDone = false
    const timer = this.#real.set(delayMs, () => {
      this.#pending.delete(timer)
      this.#turnstile.pass(() => {
        if (isDone) return // cancelled while it was kept
        isDone = true
        callback()
      })
    })
    this.#pending.add(timer)
    return {
      cancel: () => {
        isDone = true
        this.#pending.delete(timer)
        timer.cancel()
      },
    }
  }

  defer(callback: () => void): void {
    this.#real.defer(() => this.#turnstile.pass(callback))
  }

  end(): void {
    for (const timer of this.#pending) timer.cancel()
    this.#pending.clear()
  }
}

/** Calls whose promises are kept from the user while it is halted, and awaited when it ends. */
class HaltingCalls {
  readonly #turnstile: Turnstile
  readonly #underWay = new Set<Promise<unknown>>()
  /** Releases of locks, and closes of handles, that the user did not get to. */
  readonly #open = new Map<object, () => Promise<unknown>>()

  constructor(turnstile: Turnstile) {
    this.#turnstile = turnstile
  }

  /** The same object, with the promises of its methods kept, and those of the handles and locks that they give. */
  wrap<T extends object>(target: T): T {
    return new Proxy(target, {
      get: (_target, property) => {
        const member: unknown = Reflect.get(target, property, target)
        if (typeof member !== 'function') return member
        return (...args: unknown[]): unknown => {
          if (property === 'close' || property === 'release') this.#open.delete(target)
          return this.#result(Reflect.apply(member, target, args))
        }
      },
    })
  }

  adopt<T extends { close(): Promise<unknown> }>(resource: T): T {
    this.#open.set(resource, () => resource.close())
    return this.wrap(resource)
  }

  async end(): Promise<void> {
    await Promise.allSettled(this.#underWay)
    for (const close of this.#open.values()) await close().catch(() => undefined)
    this.#open.clear()
  }

  #result(result: unknown): unknown {
    if (!(result instanceof Promise)) return this.#wrapped(result)
    const done = result.then((value: unknown) => this.#wrapped(value))
    this.#underWay.add(done)
    const forget = () => this.#underWay.delete(done)
    done.then(forget, forget)
    return this.#turnstile.settled(done)
  }

  #wrapped(value: unknown): unknown {
    if (typeof value !== 'object' || value === null) return value
    const close = 'release' in value ? value.release : 'sizeSync' in value && 'close' in value ? value.close : undefined
    if (typeof close !== 'function') return value
    this.#open.set(value, () => Reflect.apply(close, value, []) as Promise<unknown>)
    return this.wrap(value)
  }
}

class HaltingNetwork implements Network {
  readonly #real: Network
  readonly #turnstile: Turnstile
  readonly #sockets = new Set<HaltingSocket>()
  readonly #listeners = new Set<Listener>()

  constructor(real: Network, turnstile: Turnstile) {
    this.#real = real
    this.#turnstile = turnstile
  }

  async listen(options: Parameters<Network['listen']>[0], onConnection: (socket: Socket) => void): Promise<Listener> {
    const opened = this.#real.listen(options, (socket) => {
      const halting = this.#adopt(socket)
      if (this.#turnstile.hasEnded) halting.destroy()
      else this.#turnstile.pass(() => onConnection(halting))
    })
    const listener = await this.#turnstile.settled(opened)
    this.#listeners.add(listener)
    const { host, port } = listener
    const close = async () => {
      this.#listeners.delete(listener)
      await this.#turnstile.settled(listener.close())
    }
    return { host, port, close }
  }

  async connect(options: Parameters<Network['connect']>[0]): Promise<Socket> {
    const connected = this.#real.connect(options).then((socket) => this.#adopt(socket))
    return await this.#turnstile.settled(connected)
  }

  pause(): void {
    for (const socket of this.#sockets) socket.halt()
  }

  resume(): void {
    for (const socket of this.#sockets) socket.goOn()
  }

  async end(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy()
    await Promise.all([...this.#listeners].map((listener) => listener.close()))
  }

  #adopt(socket: Socket): HaltingSocket {
    const halting = new HaltingSocket(socket, this.#turnstile, () => this.#sockets.delete(halting))
    if (this.#turnstile.hasEnded) socket.destroy()
    else this.#sockets.add(halting)
    return halting
  }
}

class HaltingSocket implements Socket {
  readonly #real: Socket
  readonly #turnstile: Turnstile
  readonly #onClosed: () => void
  /** The user itself wants no data now. */
  #isPaused = false
  #isStarted = false

  constructor(real: Socket, turnstile: Turnstile, onClosed: () => void) {
    this.#real = real
    this.#turnstile = turnstile
    this.#onClosed = onClosed
  }

  get remoteAddress(): string {
    return this.#real.remoteAddress
  }

  get remotePort(): number {
    return this.#real.remotePort
  }

  get localAddress(): string {
    return this.#real.localAddress
  }

  get localPort(): number {
    return this.#real.localPort
  }

  get queuedBytes(): number {
    return this.#real.queuedBytes
  }

  start({ onData, onDrain, onClose }: SocketHandlers): void {
    this.#isStarted = true
    this.#real.start({
      // What is kept outlives the memory that it is lent in.
      onData: (chunk) => {
        const kept = this.#turnstile.isHeld ? Buffer.from(chunk) : chunk
        this.#turnstile.pass(() => onData(kept))
      },
      onDrain: () => this.#turnstile.pass(() => onDrain?.()),
      onClose: (error) => {
        this.#onClosed()
        this.#turnstile.pass(() => onClose(error))
      },
    })
  }

  write(chunks: readonly Uint8Array[], onWritten?: () => void): boolean {
    if (onWritten === undefined) return this.#real.write(chunks)
    return this.#real.write(chunks, () => this.#turnstile.pass(onWritten))
  }

  pause(): void {
    this.#isPaused = true
    this.#real.pause()
  }

  resume(): void {
    this.#isPaused = false
    if (!this.#turnstile.isHeld) this.#real.resume()
  }

  end(): void {
    this.#real.end()
  }

  destroy(): void {
    this.#real.destroy()
  }

  halt(): void {
    if (this.#isStarted) this.#real.pause()
  }

  goOn(): void {
    if (this.#isStarted && !this.#isPaused) this.#real.resume()
  }
}
