import { connect, createServer, type Server, Socket } from 'node:net'

/** One way between two nodes: `'1>2'` is what node 1 sends and node 2 is to receive. */
export type Way = `${number}>${number}`

/** What a way does with bytes. 'held': they wait, as in TCP whose packets are lost, and go on when it is open again. */
interface WayState {
  isHeld: boolean
  delayMs: number
}

/** The local address from which node `id` connects to others, so that a proxy knows who it is. All of 127/8 is this machine (Linux). */
export function addressOfNode(id: number): string {
  return `127.0.1.${id}`
}

const addressPattern = /^127\.0\.1\.(\d+)$/
/** How often a proxy looks whether a target that was gone is back. */
const lookAgainMs = 20

/**
 * The network between nodes of one machine: TCP proxies, one before each port of a node, through which the others have to go. Each
 * way between two nodes can be held and delayed by itself, so there are one-way cuts and partial partitions without any right
 * of root. Who connects is told by its local address (`addressOfNode`); what doesn't come from a node passes.
 *
 * While nobody listens behind a proxy, it doesn't listen either: a dead process is refused, as without a proxy. A connection over a way that is held
 * is made as soon as it is open.
 */
export class Links implements AsyncDisposable {
  readonly #ways = new Map<Way, WayState>()
  readonly #proxies: LinkProxy[] = []

  /** Resolves with the port of a proxy before `port` of node `target`. */
  async add(target: number, port: number): Promise<number> {
    const proxy = new LinkProxy(this, target, port)
    this.#proxies.push(proxy)
    return await proxy.start()
  }

  state(way: Way): Readonly<WayState> {
    return this.#state(way)
  }

  hold(ways: readonly Way[]): void {
    for (const way of ways) this.#state(way).isHeld = true
  }

  delay(ways: readonly Way[], delayMs: number): void {
    for (const way of ways) this.#state(way).delayMs = delayMs
  }

  /** Ends every connection between the two nodes, with a reset. */
  reset(a: number, b: number): void {
    for (const proxy of this.#proxies) proxy.reset(a, b)
  }

  /** Every way is open and without delay. */
  heal(): void {
    this.#ways.clear()
    for (const proxy of this.#proxies) proxy.flow()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#proxies.map((proxy) => proxy.stop()))
  }

  #state(way: Way): WayState {
    let state = this.#ways.get(way)
    if (state === undefined) {
      state = { isHeld: false, delayMs: 0 }
      this.#ways.set(way, state)
    }
    return state
  }
}

/** Every way between the nodes of one side and those of the other, both directions. */
export function waysBetween(side: readonly number[], other: readonly number[]): Way[] {
  return [...waysFrom(side, other), ...waysFrom(other, side)]
}

/** Every way from a node of `from` to one of `to`. */
export function waysFrom(from: readonly number[], to: readonly number[]): Way[] {
  return from.flatMap((a) => to.filter((b) => b !== a).map((b): Way => `${a}>${b}`))
}

class LinkProxy {
  readonly #links: Links
  readonly #target: number
  readonly #targetPort: number
  readonly #pairs = new Set<Pair>()
  #server: Server | undefined
  #port = 0
  #isStopped = false
  #looking: NodeJS.Timeout | undefined

  constructor(links: Links, target: number, targetPort: number) {
    this.#links = links
    this.#target = target
    this.#targetPort = targetPort
  }

  async start(): Promise<number> {
    await this.#listen()
    return this.#port
  }

  flow(): void {
    for (const pair of this.#pairs) pair.flow()
  }

  reset(a: number, b: number): void {
    for (const pair of this.#pairs) if (pair.isBetween(a, b)) pair.end()
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    clearTimeout(this.#looking)
    for (const pair of this.#pairs) pair.end()
    const server = this.#server
    if (server !== undefined) await new Promise((closed) => server.close(closed))
  }

  async #listen(): Promise<void> {
    const server = createServer({ noDelay: true, pauseOnConnect: true }, (socket) => this.#accept(socket))
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject)
      server.listen(this.#port, '127.0.0.1', resolve)
    })
    server.on('error', () => undefined)
    this.#port = (server.address() as { port: number }).port
    this.#server = server
  }

  #accept(near: Socket): void {
    const source = Number(addressPattern.exec(near.remoteAddress ?? '')?.[1] ?? 0)
    const pair = new Pair(this.#links, near, source, this.#target, this.#targetPort, {
      onRefused: () => this.#onGone(),
      onFarEnd: () => this.#probe(),
      onEnd: () => this.#pairs.delete(pair),
    })
    this.#pairs.add(pair)
    pair.flow()
  }

  /** So that who connects again is refused at once, as without a proxy. */
  #probe(): void {
    if (this.#server === undefined || this.#isStopped) return
    const probe = connect({ host: '127.0.0.1', port: this.#targetPort })
    probe.once('error', () => this.#onGone())
    probe.once('connect', () => probe.destroy())
  }

  /** Nobody listens behind it. */
  #onGone(): void {
    if (this.#server === undefined || this.#isStopped) return
    this.#server.close()
    this.#server = undefined
    this.#lookAgain()
  }

  #lookAgain(): void {
    if (this.#isStopped) return
    this.#looking = setTimeout(() => {
      const probe = connect({ host: '127.0.0.1', port: this.#targetPort })
      probe.once('error', () => this.#lookAgain())
      probe.once('connect', () => {
        probe.destroy()
        if (!this.#isStopped) this.#listen().catch(() => this.#lookAgain())
      })
    }, lookAgainMs)
  }
}

interface PairEvents {
  /** The node behind the proxy refused it, or ended it: it may be gone. */
  onRefused(): void
  onFarEnd(): void
  onEnd(): void
}

/** A connection of a node to the proxy, and the proxy's own to the node behind it. */
class Pair {
  readonly #links: Links
  readonly #near: Socket
  readonly #far = new Socket()
  readonly #source: number
  readonly #target: number
  readonly #targetPort: number
  readonly #events: PairEvents
  readonly #pipes: readonly [Pipe, Pipe]
  #isConnecting = false
  #isEnded = false

  constructor(links: Links, near: Socket, source: number, target: number, targetPort: number, events: PairEvents) {
    this.#links = links
    this.#near = near
    this.#source = source
    this.#target = target
    this.#targetPort = targetPort
    this.#events = events
    this.#far.setNoDelay(true)
    const outward = () => links.state(`${source}>${target}`)
    const back = () => links.state(`${target}>${source}`)
    this.#pipes = [new Pipe(near, this.#far, outward), new Pipe(this.#far, near, back)]
    near.on('error', () => this.end())
    near.on('close', () => this.#closeSoon())
    this.#far.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'ECONNREFUSED') events.onRefused()
      this.end()
    })
    this.#far.on('close', () => {
      if (!this.#isEnded) events.onFarEnd()
      this.#closeSoon()
    })
    this.#far.on('connect', () => near.resume())
  }

  isBetween(a: number, b: number): boolean {
    return (this.#source === a && this.#target === b) || (this.#source === b && this.#target === a)
  }

  /** Goes on where nothing holds it up. */
  flow(): void {
    const isHeld =
      this.#links.state(`${this.#source}>${this.#target}`).isHeld ||
      this.#links.state(`${this.#target}>${this.#source}`).isHeld
    if (!this.#isConnecting && !isHeld && !this.#isEnded) {
      this.#isConnecting = true
      this.#far.connect({ host: '127.0.0.1', port: this.#targetPort })
    }
    for (const pipe of this.#pipes) pipe.flow()
    if (this.#near.destroyed || this.#far.destroyed) this.#closeSoon()
  }

  /** At once, with a reset. */
  end(): void {
    if (this.#isEnded) return
    this.#isEnded = true
    for (const pipe of this.#pipes) pipe.end()
    // A reset while the end is being sent leaves Node with a socket that is never closed, so that the process doesn't end.
    if (this.#near.writableEnded) this.#near.destroy()
    else if (!this.#near.destroyed) this.#near.resetAndDestroy()
    if (!this.#far.destroyed) this.#far.destroy()
    this.#events.onEnd()
  }

  /** One side is closed: the other side is too, when what holds its bytes lets the end pass. */
  #closeSoon(): void {
    const isHeld = this.#pipes.some((pipe) => pipe.isHeld)
    if (!isHeld) this.end()
  }
}

/** Bytes from one socket to another, along one way. */
class Pipe {
  readonly #from: Socket
  readonly #to: Socket
  readonly #way: () => Readonly<WayState>
  readonly #waiting: { readonly bytes: Buffer | undefined; readonly dueMs: number }[] = []
  #timer: NodeJS.Timeout | undefined
  #isEnded = false

  constructor(from: Socket, to: Socket, way: () => Readonly<WayState>) {
    this.#from = from
    this.#to = to
    this.#way = way
    from.on('data', (bytes: Buffer) => this.#push(bytes))
    from.on('end', () => this.#push(undefined))
    to.on('drain', () => from.resume())
  }

  get isHeld(): boolean {
    return this.#way().isHeld || this.#waiting.length > 0
  }

  flow(): void {
    if (this.#isEnded) return
    clearTimeout(this.#timer)
    while (this.#waiting.length > 0 && !this.#way().isHeld) {
      const waitMs = this.#waiting[0]!.dueMs - performance.now()
      if (waitMs > 0) {
        this.#timer = setTimeout(() => this.flow(), waitMs)
        return
      }
      const { bytes } = this.#waiting.shift()!
      if (bytes === undefined) this.#to.end()
      else if (!this.#to.destroyed && !this.#to.write(bytes)) this.#from.pause()
    }
  }

  end(): void {
    this.#isEnded = true
    clearTimeout(this.#timer)
  }

  /** Undefined: the end. */
  #push(bytes: Buffer | undefined): void {
    this.#waiting.push({ bytes, dueMs: performance.now() + this.#way().delayMs })
    if (this.#waiting.length === 1 || this.#way().delayMs === 0) this.flow()
  }
}
