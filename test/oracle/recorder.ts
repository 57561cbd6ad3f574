import { connect as connectSocket } from 'node:net'
import type { Uuid } from '../../src/base/index.ts'
import { KafkaClient, KafkaClientError } from '../../src/network/index.ts'
import { createRealPlatform } from '../../src/platform/index.ts'
import { type Api, type ApiMessage, apis, type MessageInput, type MessageType } from '../../src/protocol/index.ts'
import { until } from '../support/condition.ts'
import { fitToVersion } from './versions.ts'

/** One request and what came back. */
export interface Exchange {
  /** `Produce v9` */
  readonly name: string
  readonly api: string
  readonly version: number
  /** The connection's client id. */
  readonly client: string
  readonly request: unknown
  /** The response; or what happened instead of one. */
  answer: unknown
}

/** What stands for a response where there is none. */
const closed = 'the connection was closed'
const silence = 'no answer'

interface AskOptions {
  /** The connection, which is opened when it is first used; its name is the client id. */
  readonly client?: string
  readonly timeoutMs?: number
}

/** A scenario's requests to one broker, on connections of its own, all of them kept with their answers. */
export class Recorder implements AsyncDisposable {
  /** In the order in which requests were sent. */
  readonly exchanges: Exchange[] = []
  /** Ids of topics by name: made with `createTopic`. */
  readonly topicIds = new Map<string, Uuid>()
  /** Begins the name of everything that the scenario makes, so that scenarios share a broker and nothing else. */
  readonly prefix: string
  readonly #port: number
  readonly #connections = new Map<string, Promise<KafkaClient>>()

  constructor(port: number, prefix: string) {
    this.#port = port
    this.prefix = prefix
  }

  /** A name of the scenario's own. */
  named(text: string): string {
    return `${this.prefix}${text}`
  }

  /** Fields of `body` that `version` lacks are left out. Throws when the connection is closed instead of an answer. */
  async ask<Request extends ApiMessage, Response extends ApiMessage>(
    api: Api<Request, Response>,
    version: number,
    body: MessageInput<Request>,
    options: AskOptions = {},
  ): Promise<MessageType<Response>> {
    const answer = await this.attempt(api, version, body, options)
    if (answer === undefined) throw new KafkaClientError(`${api.name} v${version} was not answered`)
    return answer
  }

  /** As `ask`; undefined when there is no answer. */
  async attempt<Request extends ApiMessage, Response extends ApiMessage>(
    api: Api<Request, Response>,
    version: number,
    body: MessageInput<Request>,
    { client = 'oracle', timeoutMs = 10_000 }: AskOptions = {},
  ): Promise<MessageType<Response> | undefined> {
    const request = fitToVersion(api.request, version, body) as MessageInput<Request>
    const name = `${api.name} v${version}`
    const exchange: Exchange = { name, api: api.name, version, client, request, answer: undefined }
    this.exchanges.push(exchange)
    const connection = await this.#connection(client)
    try {
      const answer = await connection.request(api, version, request, { timeoutMs })
      exchange.answer = answer
      return answer
    } catch (error) {
      if (!(error instanceof KafkaClientError)) throw error
      this.#connections.delete(client)
      const { message } = error
      exchange.answer = message.includes('No answer to')
        ? silence
        : message.includes('can not be read')
          ? message
          : closed
      return undefined
    }
  }

  /** Sends a request that has no response, then an ApiVersions whose answer shows whether the connection lives. */
  async tell<Request extends ApiMessage>(
    api: Api<Request>,
    version: number,
    body: MessageInput<Request>,
    { client = 'oracle' }: AskOptions = {},
  ): Promise<void> {
    const request = fitToVersion(api.request, version, body) as MessageInput<Request>
    const name = `${api.name} v${version}`
    const exchange: Exchange = { name, api: api.name, version, client, request, answer: undefined }
    this.exchanges.push(exchange)
    const connection = await this.#connection(client)
    connection.send(api, version, request)
    try {
      await connection.request(apis.ApiVersions, 0, {})
      exchange.answer = 'none, and the connection lives'
    } catch {
      this.#connections.delete(client)
      exchange.answer = closed
    }
  }

  /**
   * Sends `bytes` on a new connection and records the first `compared` bytes of `frames` answers; fewer when the
   * connection is closed before. `answerOf`: whose answer it is, where an answer begins with an error code.
   */
  async raw(
    name: string,
    bytes: Buffer,
    { frames = 1, compared = 10_000, answerOf }: { frames?: number; compared?: number; answerOf?: Api } = {},
  ): Promise<void> {
    const request = bytes.length > 400 ? `${bytes.length} bytes` : bytes.toString('hex')
    const api = answerOf?.name ?? 'raw'
    const exchange: Exchange = { name, api, version: 0, client: 'raw', request, answer: undefined }
    this.exchanges.push(exchange)
    const { received, ending } = await exchangeBytes(this.#port, bytes, frames)
    const answer = { frames: received.map((frame) => frame.subarray(0, compared).toString('hex')), ending }
    const errorCode = answerOf && received[0]?.readInt16BE(4)
    exchange.answer = errorCode === undefined ? answer : { ...answer, errorCode }
  }

  /** Creates a topic, and waits until its partitions are served. Recorded. */
  async createTopic(
    name: string,
    { partitions = 1, configs = {} }: { partitions?: number; configs?: Readonly<Record<string, string>> } = {},
  ): Promise<Uuid> {
    const { topics } = await this.ask(apis.CreateTopics, 7, {
      topics: [
        {
          name,
          numPartitions: partitions,
          replicationFactor: 1,
          assignments: [],
          configs: Object.entries(configs).map(([key, value]) => ({ name: key, value })),
        },
      ],
      timeoutMs: 10_000,
    })
    const topicId = topics[0]?.topicId as Uuid
    this.topicIds.set(name, topicId)
    await this.untilServed(name, partitions)
    return topicId
  }

  /** Waits, unrecorded, until every partition of a topic has a leader that answers. */
  async untilServed(name: string, partitions = 1): Promise<void> {
    const connection = await this.#connection('unrecorded')
    const all = Array.from({ length: partitions }, (_, i) => ({ partitionIndex: i, timestamp: -1n }))
    const isServed = async () => {
      const topics = [{ name, partitions: all }]
      const answer = await connection.request(apis.ListOffsets, 1, { replicaId: -1, topics })
      return answer.topics[0]?.partitions.every(({ errorCode }) => errorCode === 0) === true
    }
    await until(isServed, `${name} is served`)
  }

  /**
   * Waits, unrecorded, until a topic is nowhere to be seen: Kafka takes a deleted topic out of its metadata first, and
   * stops its replicas after that, both some time after it has answered the deletion.
   */
  async untilGone(name: string): Promise<void> {
    const connection = await this.#connection('unrecorded')
    const unknown = 3
    const isGone = async () => {
      const asked = await connection.request(apis.Metadata, 4, { topics: [{ name }], allowAutoTopicCreation: false })
      if (asked.topics[0]?.errorCode !== unknown) return false
      const topics = [{ name, partitions: [{ partitionIndex: 0, timestamp: -1n }] }]
      const answer = await connection.request(apis.ListOffsets, 1, { replicaId: -1, topics })
      return answer.topics[0]?.partitions[0]?.errorCode === unknown
    }
    await until(isGone, `${name} is gone`)
  }

  /** A request that no comparison sees: to wait for something. */
  async unrecorded<Request extends ApiMessage, Response extends ApiMessage>(
    api: Api<Request, Response>,
    version: number,
    body: MessageInput<Request>,
  ): Promise<MessageType<Response>> {
    const connection = await this.#connection('unrecorded')
    return await connection.request(api, version, fitToVersion(api.request, version, body) as MessageInput<Request>)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const connection of this.#connections.values()) (await connection.catch(() => undefined))?.close()
  }

  #connection(clientId: string): Promise<KafkaClient> {
    let connection = this.#connections.get(clientId)
    if (connection === undefined) {
      const platform = createRealPlatform()
      connection = KafkaClient.connect({ platform, host: '127.0.0.1', port: this.#port, clientId, timeoutMs: 10_000 })
      this.#connections.set(clientId, connection)
    }
    return connection
  }
}

function exchangeBytes(port: number, bytes: Buffer, frames: number): Promise<{ received: Buffer[]; ending: string }> {
  return new Promise((resolve) => {
    const socket = connectSocket({ host: '127.0.0.1', port })
    const received: Buffer[] = []
    let pending = Buffer.alloc(0)
    const end = (ending: string) => {
      clearTimeout(timer)
      socket.destroy()
      resolve({ received, ending })
    }
    const timer = setTimeout(() => end(silence), 3000)
    socket.on('error', () => end(closed))
    socket.on('close', () => end(closed))
    socket.on('data', (chunk) => {
      pending = Buffer.concat([pending, chunk])
      while (pending.length >= 4 && pending.length >= 4 + pending.readInt32BE(0)) {
        const size = pending.readInt32BE(0)
        received.push(pending.subarray(4, 4 + size))
        pending = pending.subarray(4 + size)
        if (received.length === frames) return end('answered')
      }
    })
    socket.write(bytes)
  })
}
