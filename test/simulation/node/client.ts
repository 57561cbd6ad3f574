import { KafkaClient, KafkaClientError } from '../../../src/network/index.ts'
import { NetworkError, type Platform } from '../../../src/platform/index.ts'
import type { Api, ApiMessage, MessageInput, MessageType } from '../../../src/protocol/index.ts'
import { PropertyViolation } from '../checkers/checker.ts'
import { serverName, serverPort } from './server.ts'
import { sleep, type World } from './world.ts'

/** No fault lasts so long: a request that is not answered in this time never is. */
const longestPatienceMs = 60_000
const reconnectDelayMs = 30
/** Bounds the pauses when the faults are over: what is left to do comes to its end. */
const mostSlowness = 10

/** A machine with one connection to the node, made anew after each fault. */
export class Client {
  readonly world: World
  readonly name: string
  readonly platform: Platform
  readonly #patienceMs: number
  #connection: KafkaClient | undefined
  #connecting: Promise<KafkaClient> | undefined
  #connectionCount = 0

  /** `host`: the machine; several clients may share one. */
  constructor(world: World, name: string, patienceMs = longestPatienceMs, host = name) {
    this.world = world
    this.name = name
    this.platform = world.simulation.host(host).platform
    this.#patienceMs = patienceMs
  }

  /** Counts the connections that were made: the number of the newest. */
  get connectionCount(): number {
    return this.#connectionCount
  }

  sleep(delayMs: number): Promise<void> {
    return sleep(this.platform.timers, delayMs)
  }

  /** Up to `most` milliseconds, longer where nothing has happened for some time. */
  think(most: number): Promise<void> {
    const slowness = Math.min(this.world.pace.step(), this.world.isDraining ? mostSlowness : Infinity)
    return this.sleep((this.platform.random.int(Math.max(1, most * 1000)) / 1000) * slowness)
  }

  chance(share: number): boolean {
    return this.platform.random.float() < share
  }

  /** A connection that was open a moment ago. */
  connection(): Promise<KafkaClient> {
    if (this.#connection?.isOpen === true) return Promise.resolve(this.#connection)
    this.#connecting ??= this.#connect()
    return this.#connecting
  }

  async #connect(): Promise<KafkaClient> {
    for (;;) {
      try {
        this.#connection = await KafkaClient.connect({
          platform: this.platform,
          host: serverName,
          port: serverPort,
          clientId: this.name,
          timeoutMs: this.#patienceMs,
        })
        this.#connectionCount++
        this.#connecting = undefined
        return this.#connection
      } catch (error) {
        if (!(error instanceof NetworkError)) throw error
        await this.sleep(reconnectDelayMs)
      }
    }
  }

  /** The answer, or undefined when none came: whether the request was carried out is unknown then. */
  async request<Request extends ApiMessage, Response extends ApiMessage>(
    api: Api<Request, Response>,
    version: number,
    body: MessageInput<Request>,
  ): Promise<MessageType<Response> | undefined> {
    return this.requestOn(await this.connection(), api, version, body)
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
      if (waitedMs >= longestPatienceMs) {
        const message = `${api.name} of ${this.name} was not answered in ${waitedMs} ms, nor its connection closed`
        this.world.history.fail(new PropertyViolation('every request is answered', message))
      } else if (error.cause !== undefined && !(error.cause instanceof NetworkError)) {
        this.world.history.fail(error) // an answer that can't be decoded
      }
      return undefined
    }
  }

  /** Ends the connection; the next request makes another. */
  disconnect(): void {
    this.#connection?.close()
    this.#connection = undefined
  }
}
