import {
  createApiServices,
  Dispatcher,
  type GroupService,
  type LogDirectories,
  servedApis,
} from '../../../src/api/index.ts'
import type {
  BrokerEpoch,
  BrokerId,
  ControllerEpoch,
  LeaderEpoch,
  PartitionEpoch,
  ProducerId,
  Uuid,
} from '../../../src/base/index.ts'
import { DynamicConfig, parseConfig } from '../../../src/config/index.ts'
import type {
  Admin,
  AdminOptions,
  AlterConfigRequest,
  AlterConfigResult,
  Coordination,
  CreatePartitionsRequest,
  CreatePartitionsResult,
  CreateTopicRequest,
  CreateTopicResult,
  DeleteTopicRequest,
  DeleteTopicResult,
  QuorumFacts,
} from '../../../src/coordination/index.ts'
import type { MoveAnswer } from '../../../src/log/index.ts'
import type {
  BrokerImage,
  ControllerImage,
  MetadataImage,
  PartitionImage,
  TopicImage,
} from '../../../src/metadata/index.ts'
import type { Answer, ConnectionFacts } from '../../../src/network/index.ts'
import {
  type Api,
  type ApiMessage,
  decodeMessage,
  encodeRequest,
  type MessageInput,
  type MessageType,
  Reader,
  readResponseHeader,
} from '../../../src/protocol/index.ts'
import type {
  ActiveProducersOutcome,
  AppendOutcome,
  AppendRequest,
  DeleteRecordsOutcome,
  DeleteRecordsRequest,
  EndOffsetOutcome,
  FetchAnswer,
  FetchRequest,
  ListOffsetOutcome,
  ListOffsetRequest,
  PartitionRef,
  ReplicaService,
} from '../../../src/replication/index.ts'

import { type LogFields, type Logger, Metrics } from '../../../src/telemetry/index.ts'
import { settledReplicas } from '../../support/partition-image.ts'
import { ManualTime } from '../network/memory-network.ts'

const brokerId = 1 as BrokerId
type LogDirectoryFacts = ReturnType<LogDirectories['all']>[number]

export function brokerImage(id: number, changes: Partial<BrokerImage> = {}): BrokerImage {
  return {
    brokerId: id as BrokerId,
    incarnationId: 'BBBBBBBBBBBBBBBBBBBBBQ' as Uuid,
    brokerEpoch: 1 as BrokerEpoch,
    endpoints: [{ name: 'PLAINTEXT', host: `broker${id}`, port: 9092, securityProtocol: 'PLAINTEXT' }],
    rack: null,
    logDirs: [],
    fenced: false,
    inControlledShutdown: false,
    features: [],
    ...changes,
  }
}

export function topicId(number: number): Uuid {
  const bytes = Buffer.alloc(16)
  bytes.writeUInt32BE(number + 1, 12)
  return bytes.toString('base64url') as Uuid
}

export function partitionImage(partition: number, changes: Partial<PartitionImage> = {}): PartitionImage {
  return {
    partition,
    replicas: [brokerId],
    isr: [brokerId],
    leader: brokerId,
    leaderEpoch: 0 as LeaderEpoch,
    partitionEpoch: 0 as PartitionEpoch,
    ...settledReplicas,
    ...changes,
  }
}

/** Requests that get what a test says, and otherwise that it is done. */
type FixedKind =
  | 'electLeaders'
  | 'alterPartitionReassignments'
  | 'listPartitionReassignments'
  | 'updateFeatures'
  | 'unregisterBroker'
  | 'addVoter'
  | 'removeVoter'
type Asked<Kind extends keyof Admin> = Parameters<Admin[Kind]>[0]

/** One broker's view of a cluster, changed in place. Topics that are created get one partition here and their leader. */
class FakeCoordination implements Coordination {
  readonly brokers: BrokerImage[] = [brokerImage(1)]
  controllers: ControllerImage[] = []
  readonly topics = new Map<string, TopicImage>()
  readonly topicConfigs = new Map<string, Map<string, string>>()
  /** By broker id, and '' for all. */
  readonly brokerConfigs = new Map<string, Map<string, string>>()
  readonly features = new Map<string, number>()
  readonly created: CreateTopicRequest[] = []
  /** Requests to create topics. */
  creations = 0
  readonly deleted: DeleteTopicRequest[] = []
  /** Answers instead of creating. */
  refuseCreation: ((request: CreateTopicRequest) => CreateTopicResult | undefined) | undefined
  readonly partitionsAsked: CreatePartitionsRequest[] = []
  /** Answers instead of adding partitions. */
  refusePartitions: ((request: CreatePartitionsRequest) => CreatePartitionsResult | undefined) | undefined
  readonly alterations: AlterConfigRequest[] = []
  /** Answers instead of altering. */
  refuseAlteration: ((request: AlterConfigRequest) => AlterConfigResult | undefined) | undefined
  /** Of the last request for a change that can be tried. */
  validateOnly: boolean | undefined
  fault: Error | undefined
  readonly brokerEpoch = 1 as BrokerEpoch
  state = { mode: 'raft', controllerId: brokerId, controllerEpoch: 1 as ControllerEpoch, appliedIndex: 7 } as const
  #nextProducerId = 1000

  addTopic(name: string, partitions: readonly PartitionImage[] = [partitionImage(0)]): TopicImage {
    const topic = { name, topicId: topicId(this.topics.size), partitions }
    this.topics.set(name, topic)
    return topic
  }

  async startWithoutBroker(): Promise<void> {}

  async handOver(): Promise<void> {}

  giveUp(): void {}

  assignReplicas(): Promise<never> {
    throw new Error('not asked by the APIs')
  }

  alterPartitions(): Promise<never> {
    throw new Error('No API changes ISRs')
  }

  get image(): MetadataImage {
    const { brokers, controllers, topics, topicConfigs, brokerConfigs, features } = this
    return {
      index: 7,
      term: 1,
      clusterId: 'test-cluster',
      cluster: {
        size: brokers.length,
        broker: (id) => brokers.find((each) => each.brokerId === id),
        brokers: () => brokers,
        controllers: () => controllers,
      },
      topics: {
        size: topics.size,
        byName: (name) => topics.get(name),
        byId: (id) => [...topics.values()].find((each) => each.topicId === id),
        all: () => topics.values(),
        onBroker: () => topics.values(),
        ledBy: () => [],
        collidingWith: () => undefined,
      },
      configs: { of: (type, name) => (type === 'topic' ? topicConfigs : brokerConfigs).get(name) ?? new Map() },
      features,
      nextProducerId: this.#nextProducerId as ProducerId,
    }
  }

  readonly admin = {
    createTopics: async (requests: readonly CreateTopicRequest[]): Promise<readonly CreateTopicResult[]> => {
      this.creations++
      await Promise.resolve()
      if (this.fault !== undefined) throw this.fault
      return requests.map((request) => {
        this.created.push(request)
        const refused = this.refuseCreation?.(request)
        if (refused !== undefined) return refused
        const { name, partitionCount } = request
        const count = partitionCount === -1 ? 1 : partitionCount
        const topic = this.addTopic(
          name,
          Array.from({ length: count }, (_, i) => partitionImage(i)),
        )
        return { ok: true, name, topicId: topic.topicId, partitionCount: count, replicationFactor: 1 }
      })
    },
    deleteTopics: async (requests: readonly DeleteTopicRequest[]): Promise<readonly DeleteTopicResult[]> => {
      await Promise.resolve()
      return requests.map((request) => {
        this.deleted.push(request)
        const { topics } = this.image
        const topic = 'name' in request ? topics.byName(request.name) : topics.byId(request.topicId)
        if (topic === undefined) {
          return { ok: false, reason: 'name' in request ? 'unknown-topic' : 'unknown-topic-id', message: 'Not there' }
        }
        this.topics.delete(topic.name)
        return { ok: true, name: topic.name, topicId: topic.topicId }
      })
    },
    createPartitions: async (
      requests: readonly CreatePartitionsRequest[],
      options: AdminOptions,
    ): Promise<readonly CreatePartitionsResult[]> => {
      await Promise.resolve()
      if (this.fault !== undefined) throw this.fault
      this.validateOnly = options.validateOnly
      this.partitionsAsked.push(...requests)
      return requests.map((request) => this.refusePartitions?.(request) ?? { ok: true, name: request.name })
    },
    alterConfigs: async (
      requests: readonly AlterConfigRequest[],
      options: AdminOptions,
    ): Promise<readonly AlterConfigResult[]> => {
      await Promise.resolve()
      if (this.fault !== undefined) throw this.fault
      this.validateOnly = options.validateOnly
      this.alterations.push(...requests)
      return requests.map((request) => this.refuseAlteration?.(request) ?? { ok: true })
    },
    electLeaders: (request: Asked<'electLeaders'>) => this.#answer('electLeaders', request),
    alterPartitionReassignments: (request: Asked<'alterPartitionReassignments'>) =>
      this.#answer('alterPartitionReassignments', request),
    listPartitionReassignments: (request: Asked<'listPartitionReassignments'>) =>
      this.#answer('listPartitionReassignments', request),
    updateFeatures: (request: Asked<'updateFeatures'>, options: AdminOptions) => {
      this.validateOnly = options.validateOnly
      return this.#answer('updateFeatures', request)
    },
    unregisterBroker: (request: BrokerId) => this.#answer('unregisterBroker', request),
    describeQuorum: async () => {
      await Promise.resolve()
      if (this.fault !== undefined) throw this.fault
      return this.quorumFacts
    },
    addVoter: (request: Asked<'addVoter'>) => this.#answer('addVoter', request),
    removeVoter: (request: Asked<'removeVoter'>) => this.#answer('removeVoter', request),
  }

  /** What the controller says to each kind of request. */
  readonly answers: { [Kind in FixedKind]: (request: Asked<Kind>) => Awaited<ReturnType<Admin[Kind]>> } = {
    electLeaders: ({ partitions }) => (partitions ?? []).map((each) => ({ ...each, ok: true })),
    alterPartitionReassignments: ({ requests }) => requests.map(() => ({ ok: true })),
    listPartitionReassignments: () => [],
    updateFeatures: () => ({ ok: true }),
    unregisterBroker: () => ({ ok: true }),
    addVoter: () => ({ ok: true }),
    removeVoter: () => ({ ok: true }),
  }
  /** Of the kinds in `answers`, what was asked last. */
  lastAsked: unknown

  async #answer<Kind extends FixedKind>(kind: Kind, request: Asked<Kind>): Promise<Awaited<ReturnType<Admin[Kind]>>> {
    await Promise.resolve()
    if (this.fault !== undefined) throw this.fault
    this.lastAsked = request
    return this.answers[kind](request)
  }

  allocateProducerIds(): Promise<{ firstProducerId: ProducerId; count: number }> {
    if (this.fault !== undefined) return Promise.reject(this.fault)
    const firstProducerId = this.#nextProducerId as ProducerId
    this.#nextProducerId += 3
    return Promise.resolve({ firstProducerId, count: 3 })
  }

  quorumFacts: QuorumFacts = {
    leaderId: brokerId,
    term: 4,
    voters: [
      {
        id: brokerId,
        directoryId: topicId(70),
        endpoint: null,
        logEndOffset: 9,
        lastContactMs: 0,
        lastCaughtUpMs: 0,
      },
    ],
    observers: [],
    highWatermark: 8,
  }

  start = () => Promise.reject(new Error('Not asked for'))
  stop = () => Promise.resolve()
  onMetadata = () => {}
  onFault = () => {}
}

/** Records what it was asked and gives what the test set. */
class FakeReplicas implements ReplicaService {
  readonly appends: AppendRequest[] = []
  readonly fetches: FetchRequest[] = []
  readonly listings: ListOffsetRequest[] = []
  readonly epochs: object[] = []
  endOutcome: EndOffsetOutcome = { ok: true, leaderEpoch: 3 as LeaderEpoch, endOffset: 9 }
  /** By partition; others are unknown. */
  readonly producers = new Map<string, ActiveProducersOutcome>()
  readonly deletions: DeleteRecordsRequest[] = []
  deleteOutcome: (request: DeleteRecordsRequest) => DeleteRecordsOutcome = () => ({ ok: true, lowWatermark: 9 })
  released = 0
  appendOutcome: (request: AppendRequest) => AppendOutcome | Promise<AppendOutcome> = () => ({
    ok: true,
    baseOffset: 40,
    lastOffset: 41,
    logAppendTimeMs: -1,
    logStartOffset: 3,
  })
  fetchAnswer: (request: FetchRequest) => FetchAnswer['partitions'] = ({ partitions }) =>
    partitions.map(() => ({
      outcome: { ok: true },
      highWatermark: 10,
      lastStableOffset: 10,
      logStartOffset: 0,
      chunks: [],
      sizeBytes: 0,
    }))
  listOutcome: (request: ListOffsetRequest) => ListOffsetOutcome = () => ({
    ok: true,
    offset: 12,
    timestampMs: 5000,
    leaderEpoch: 2 as LeaderEpoch,
  })

  async append(request: AppendRequest): Promise<AppendOutcome> {
    this.appends.push(request)
    return await this.appendOutcome(request)
  }

  fetch(request: FetchRequest): Promise<FetchAnswer> {
    this.fetches.push(request)
    return Promise.resolve({ partitions: this.fetchAnswer(request), release: () => this.released++ })
  }

  listOffset(request: ListOffsetRequest): Promise<ListOffsetOutcome> {
    this.listings.push(request)
    return Promise.resolve(this.listOutcome(request))
  }

  async endOffsetForEpoch(partition: PartitionRef, currentLeaderEpoch: number, leaderEpoch: number) {
    this.epochs.push({ ...partition, currentLeaderEpoch, leaderEpoch })
    return await Promise.resolve(this.endOutcome)
  }

  async activeProducers({ topic, partition }: PartitionRef) {
    return await Promise.resolve(this.producers.get(`${topic}-${partition}`) ?? unknownPartition)
  }

  deleteRecords(request: DeleteRecordsRequest): Promise<DeleteRecordsOutcome> {
    this.deletions.push(request)
    return Promise.resolve(this.deleteOutcome(request))
  }
}

const unknownPartition = { ok: false, reason: 'unknown-topic-or-partition' } as const

type GroupMethod = keyof GroupService
type GroupAnswers = { [Method in GroupMethod]: Awaited<ReturnType<GroupService[Method]>> }

/** Folders for data, as the test sets them. */
class FakeLogDirectories implements LogDirectories {
  directories: LogDirectoryFacts[] = []
  fault: Error | undefined
  all = () => this.directories
  readonly moved: string[] = []
  moveAnswer: MoveAnswer = 'moving'
  async move(topic: string, partition: number, path: string): Promise<MoveAnswer> {
    this.moved.push(`${topic}-${partition} ${path}`)
    return this.moveAnswer
  }
  space(): Promise<{ freeBytes: number; totalBytes: number }> {
    return this.fault === undefined ? Promise.resolve({ freeBytes: 600, totalBytes: 1000 }) : Promise.reject(this.fault)
  }
}

/** Records what it was asked and gives what the test set; refuses like a broker that coordinates nothing. */
class FakeGroups implements GroupService {
  readonly asked: { readonly method: GroupMethod; readonly request: unknown }[] = []
  readonly answers: Partial<GroupAnswers> = {}

  joinGroup: GroupService['joinGroup'] = (request) =>
    this.#answer('joinGroup', request, { ok: false, reason: 'not-coordinator', memberId: request.memberId })
  syncGroup: GroupService['syncGroup'] = (request) =>
    this.#answer('syncGroup', request, { ok: false, reason: 'not-coordinator' })
  heartbeat: GroupService['heartbeat'] = (request) =>
    this.#answer('heartbeat', request, { ok: false, reason: 'not-coordinator' })
  leaveGroup: GroupService['leaveGroup'] = (request) =>
    this.#answer('leaveGroup', request, { ok: false, reason: 'not-coordinator' })
  offsetCommit: GroupService['offsetCommit'] = (request) =>
    this.#answer('offsetCommit', request, { ok: false, reason: 'not-coordinator' })
  offsetFetch: GroupService['offsetFetch'] = (requests) =>
    this.#answer(
      'offsetFetch',
      requests,
      requests.map(({ groupId }) => ({ ok: false, reason: 'not-coordinator', groupId })),
    )
  describeGroups: GroupService['describeGroups'] = async (groupIds) => {
    const described = await this.#answer('describeGroups', groupIds, [])
    return groupIds.map(
      (groupId) =>
        described.find((each) => each.groupId === groupId) ?? { ok: false, reason: 'group-id-not-found', groupId },
    )
  }
  listGroups: GroupService['listGroups'] = (request) => this.#answer('listGroups', request, { ok: true, groups: [] })

  deleteGroups: GroupService['deleteGroups'] = (groupIds) =>
    this.#answer(
      'deleteGroups',
      groupIds,
      groupIds.map((groupId) => ({ groupId, reason: 'not-coordinator' })),
    )
  offsetDelete: GroupService['offsetDelete'] = (request) =>
    this.#answer('offsetDelete', request, { ok: false, reason: 'not-coordinator' })

  #answer<Method extends GroupMethod>(
    method: Method,
    request: unknown,
    otherwise: GroupAnswers[Method],
  ): Promise<GroupAnswers[Method]> {
    this.asked.push({ method, request })
    return Promise.resolve(this.answers[method] ?? otherwise)
  }
}

function loggerInto(lines: { level: string; fields: LogFields; message: string }[]): Logger {
  const add = (level: string) => (fields: LogFields, message: string) => void lines.push({ level, fields, message })
  const logger = { debug: add('debug'), info: add('info'), warn: add('warn'), error: add('error') }
  return { child: () => loggerInto(lines), ...logger }
}

export interface AskOptions {
  readonly clientId?: string | null
  readonly connection?: Partial<ConnectionFacts>
}

/** The APIs over fakes, asked in bytes. */
export function harness(options: { readonly overrides?: Readonly<Record<string, string>> } = {}) {
  const coordination = new FakeCoordination()
  const replicas = new FakeReplicas()
  const groups = new FakeGroups()
  const logDirectories = new FakeLogDirectories()
  const time = new ManualTime()
  const metrics = new Metrics()
  let nextRandom = 0
  const random = {
    float: () => 0,
    int: (end: number) => nextRandom++ % end,
    uuid: () => topicId(nextRandom++),
    bytes: (length: number) => Buffer.alloc(length, nextRandom++),
  }
  const logLines: { readonly level: string; readonly fields: LogFields; readonly message: string }[] = []
  const config = parseConfig({ overrides: options.overrides })
  const services = createApiServices({
    brokerId,
    clusterId: 'CLUSTERCLUSTERCLUSTERC',
    config,
    dynamicConfig: new DynamicConfig(config),
    replicas,
    logDirectories,
    coordination,
    groups,
    platform: { clock: time.clock, timers: time.timers, random },
    log: loggerInto(logLines),
    metrics,
  })
  const dispatcher = new Dispatcher(services, servedApis)

  /** The dispatcher's answer to bytes. */
  const handle = async (frame: Buffer, connection: Partial<ConnectionFacts> = {}): Promise<Answer> =>
    await dispatcher.handle(frame, {
      peer: '10.0.0.9:50000',
      remoteAddress: '10.0.0.9',
      localAddress: '192.168.1.5',
      localPort: 9092,
      listenerName: 'PLAINTEXT',
      signal: new AbortController().signal,
      lendResponseBytes: (maxBytes) => ({ bytes: maxBytes, giveBack: () => undefined }),
      ...connection,
    })

  const send = <Request extends ApiMessage>(
    api: Api<Request>,
    version: number,
    body: MessageInput<Request>,
    { clientId = 'test', connection }: AskOptions = {},
  ): Promise<Answer> => {
    const header = { correlationId: 77, clientId }
    const chunks = encodeRequest(api.request as ApiMessage, version, header, body as MessageInput<ApiMessage>)
    return handle(Buffer.concat(chunks).subarray(4), connection)
  }

  /** The response to one request; it must have one. */
  const ask = async <Request extends ApiMessage, Response extends ApiMessage>(
    api: Api<Request, Response>,
    version: number,
    body: MessageInput<Request>,
    askOptions: AskOptions = {},
  ): Promise<MessageType<Response>> => {
    const answer = await send(api, version, body, askOptions)
    if (answer === 'none' || 'close' in answer) throw new Error(`No response: ${JSON.stringify(answer)}`)
    const bytes = Buffer.concat(answer.chunks)
    answer.release?.()
    if (bytes.readInt32BE(0) !== bytes.length - 4) throw new Error('The frame has another length than it says')
    const reader = new Reader(bytes, 4)
    if (readResponseHeader(api, version, reader) !== 77) throw new Error('Another correlation id')
    const response = decodeMessage(api.response, version, reader)
    if (reader.remaining !== 0) throw new Error(`${reader.remaining} bytes too many`)
    return response as MessageType<Response>
  }

  return {
    coordination,
    replicas,
    groups,
    logDirectories,
    time,
    metrics,
    logLines,
    services,
    dispatcher,
    handle,
    send,
    ask,
  }
}
