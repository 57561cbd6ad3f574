import { KafkaClient } from '../../network/index.ts'
import type { Platform } from '../../platform/index.ts'
import {
  type Api,
  type ApiMessage,
  apis,
  type MessageInput,
  type MessageType,
  type VersionRange,
} from '../../protocol/index.ts'
import { ClusterUnreachableError, expectNoError } from './errors.ts'

export interface ConnectionOptions {
  readonly platform: Pick<Platform, 'network' | 'timers'>
  readonly host: string
  readonly port: number
  readonly timeoutMs: number
}

/**
 * The newest versions that the command line speaks, where it is not the newest that is declared: later ones name topics by id,
 * or ask in batches, which would be a second way to say the same.
 */
const newestVersions: Readonly<Record<number, number>> = {
  [apis.Produce.key]: 11,
  [apis.Fetch.key]: 12,
  [apis.OffsetCommit.key]: 9,
  [apis.OffsetFetch.key]: 7,
  [apis.FindCoordinator.key]: 3,
  [apis.LeaveGroup.key]: 2,
  [apis.DeleteTopics.key]: 5,
}

/** A connection to one broker that asks in the newest version that both sides know. */
export class BrokerConnection {
  readonly #client: KafkaClient
  readonly #served: ReadonlyMap<number, VersionRange>
  readonly #address: string

  /** Throws `NetworkError`, `KafkaClientError`. */
  static async connect(options: ConnectionOptions): Promise<BrokerConnection> {
    const client = await KafkaClient.connect({ ...options, clientId: 'rookery-cli' })
    try {
      // Version 0: the only one that every broker understands, and all that is asked is in it.
      const { errorCode, apiKeys } = await client.request(apis.ApiVersions, 0, {})
      const address = `${options.host}:${options.port}`
      expectNoError(`${address} does not tell its versions`, errorCode)
      const served = new Map(apiKeys.map((each) => [each.apiKey, { min: each.minVersion, max: each.maxVersion }]))
      return new BrokerConnection(client, served, address)
    } catch (error) {
      client.close()
      throw error
    }
  }

  private constructor(client: KafkaClient, served: ReadonlyMap<number, VersionRange>, address: string) {
    this.#client = client
    this.#served = served
    this.#address = address
  }

  get isOpen(): boolean {
    return this.#client.isOpen
  }

  /** By API key. */
  get served(): ReadonlyMap<number, VersionRange> {
    return this.#served
  }

  /** Whether a request of this API can be understood at all. */
  serves(api: Api): boolean {
    return this.#newestShared(api) !== undefined
  }

  /** Throws `KafkaClientError`; `ClusterUnreachableError` when broker and command line share no version. */
  async call<Request extends ApiMessage, Response extends ApiMessage>(
    api: Api<Request, Response>,
    body: MessageInput<Request>,
    options?: { readonly timeoutMs: number },
  ): Promise<MessageType<Response>> {
    return await this.#client.request(api, this.#version(api as Api), body, options)
  }

  /** A request without an answer. */
  send<Request extends ApiMessage>(api: Api<Request>, body: MessageInput<Request>): void {
    this.#client.send(api, this.#version(api as Api), body)
  }

  close(): void {
    this.#client.close()
  }

  #version(api: Api): number {
    const version = this.#newestShared(api)
    if (version !== undefined) return version
    throw new ClusterUnreachableError(
      `The broker at ${this.#address} serves no version of ${api.name} that is known here`,
      { retriable: false },
    )
  }

  #newestShared(api: Api): number | undefined {
    const theirs = this.#served.get(api.key)
    if (theirs === undefined) return undefined
    const ours = api.request.versions
    const newest = Math.min(ours.max, newestVersions[api.key] ?? ours.max, theirs.max)
    return newest >= Math.max(ours.min, theirs.min) ? newest : undefined
  }
}
