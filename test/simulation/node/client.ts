import { KafkaClient, KafkaClientError } from '../../../src/network/index.ts'
import { NetworkError, type Platform } from '../../../src/platform/index.ts'
import type { Api, ApiMessage, MessageInput, MessageType } from '../../../src/protocol/index.ts'
import { getOrMake, PropertyViolation } from '../checkers/checker.ts'
import { serverPort } from './server.ts'
import { type ClientWorld, type Router, type Subject, sleep } from './world.ts'

const reconnectDelayMs = 30
/** Bounds the pauses when the faults are over: what is left to do comes to its end. */
const mostSlowness = 10
/** A client that sleeps when the faults are over still has time to finish. */
const longestThinkMs = 20_000

interface Link {
  connection: KafkaClient | undefined
  connecting: Promise<KafkaClient | undefined> | undefined
}

/** A machine with one connection to each node that it needs, made anew after each fault. */
export class Client {
  readonly world: ClientWorld
  readonly name: string
  readonly platform: Platform
  readonly #router: Router
  readonly #patienceMs: number
  readonly #links = new Map<string, Link>()
  readonly #numbers = new WeakMap<KafkaClient, number>()
  #connectionCount = 0

  /** `host`: the machine; several clients may share one. */
  constructor(world: ClientWorld, name: string, patienceMs = world.patienceMs, host = name) {
    this.world = world
    this.name = name
    this.platform = world.simulation.host(host).platform
    this.#router = world.routerOf(host)
    this.#patienceMs = patienceMs
  }

  /** Counts the connections that this client made, from 1. */
  numberOf(connection: KafkaClient): number {
    return this.#numbers.get(connection) ?? 0
  }

  sleep(delayMs: number): Promise<void> {
    return sleep(this.platform.timers, delayMs)
  }

  /** Up to `most` milliseconds, longer where nothing has happened for some time. */
  think(most: number): Promise<void> {
    const slowness = Math.min(this.world.pace.step(), this.world.isDraining ? mostSlowness : Infinity)
    const delayMs = (this.platform.random.int(Math.max(1, most * 1000)) / 1000) * slowness
    return this.sleep(Math.min(delayMs, longestThinkMs))
  }

  chance(share: number): boolean {
    return this.platform.random.float() < share
  }

  /** A connection that was open a moment ago, to the node that `subject` asks for. */
  async connection(subject: Subject = 'anything'): Promise<KafkaClient> {
    for (;;) {
      const node = await this.#router.nodeFor(subject)
      const connection = await this.#connectionTo(node)
      if (connection !== undefined) return connection
      this.#router.onRefused(subject)
      await this.sleep(reconnectDelayMs)
    }
  }

  leaderEpochOf(subject: Subject): number {
    return this.#router.leaderEpochOf(subject)
  }

  /** What was asked about it was refused, or not answered: the next request may go elsewhere. */
  onRefused(subject: Subject): void {
    this.#router.onRefused(subject)
  }

  #connectionTo(node: string): KafkaClient | Promise<KafkaClient | undefined> {
    const link = getOrMake(this.#links, node, (): Link => ({ connection: undefined, connecting: undefined }))
    if (link.connection?.isOpen === true) return link.connection
    link.connecting ??= this.#connect(node, link)
    return link.connecting
  }

  /** Undefined when the node can't be reached. */
  async #connect(node: string, link: Link): Promise<KafkaClient | undefined> {
    try {
      const connection = await KafkaClient.connect({
        platform: this.platform,
        host: node,
        port: serverPort,
        clientId: this.name,
        timeoutMs: this.#patienceMs,
      })
      link.connection = connection
      this.#numbers.set(connection, ++this.#connectionCount)
      return connection
    } catch (error) {
      if (!(error instanceof NetworkError)) throw error
      return undefined
    } finally {
      link.connecting = undefined
    }
  }

  /** The answer, or undefined when none came: whether the request was carried out is unknown then. */
  async request<Request extends ApiMessage, Response extends ApiMessage>(
    api: Api<Request, Response>,
    version: number,
    body: MessageInput<Request>,
    subject: Subject = 'anything',
  ): Promise<MessageType<Response> | undefined> {
    const answer = await this.requestOn(await this.connection(subject), api, version, body)
    if (answer === undefined) this.onRefused(subject)
    return answer
  }

  /** `request` on a connection; requests are sent in the order of the calls. */
  async requestOn<Request extends ApiMessage, Response extends ApiMessage>(
    connection: KafkaClient,
    api: Api<Request, Response>,
    version: number,
    body: MessageInput<Request>,
  ): Promise<MessageType<Response> | undefined> {
    const sentMs = this.world.simulation.nowMs
    try {
      return await connection.request(api, version, body)
    } catch (error) {
      if (!(error instanceof KafkaClientError)) throw error
      const waitedMs = this.world.simulation.nowMs - sentMs
      if (waitedMs >= this.world.longestPatienceMs) {
        const message = `${api.name} of ${this.name} was not answered in ${waitedMs} ms, nor its connection closed`
        this.world.history.fail(new PropertyViolation('every request is answered', message))
      } else if (error.cause !== undefined && !(error.cause instanceof NetworkError)) {
        this.world.history.fail(error) // an answer that can't be decoded
      }
      return undefined
    }
  }
}
