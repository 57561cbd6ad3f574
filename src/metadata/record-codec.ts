import { Packr, Unpackr } from 'msgpackr'
import { type BrokerEpoch, type BrokerId, isUuid, messageOf, ownCopy, RookeryError, type Uuid } from '../base/index.ts'
import type { Endpoint, LeaderRecoveryState, MetadataRecord, SupportedFeature } from './records.ts'

/** Bytes that are no metadata records, or records of a newer Rookery than this one. */
export class MetadataFormatError extends RookeryError {
  override readonly code = 'METADATA_FORMAT'
}

/** First byte of every payload: how the rest is laid out. */
const payloadFormat = 1

// Plain mode only: msgpackr's shared structures depend on what was packed before, so nobody else could read them.
const packr = new Packr({ useRecords: false, variableMapSize: true })
const unpackr = new Unpackr({ useRecords: false, mapsAsObjects: true })

/** The payload of one log entry, or of one chunk of a snapshot: a format byte and a msgpack array of records. Entries stay in memory. */
export function encodeRecords(records: readonly MetadataRecord[]): Buffer {
  return ownCopy(Buffer.of(payloadFormat), packr.pack(records.map(encodeRecord)))
}

/** Throws `MetadataFormatError` for anything that `encodeRecords` of this version doesn't write. */
export function decodeRecords(payload: Uint8Array): MetadataRecord[] {
  if (payload[0] !== payloadFormat) {
    throw new MetadataFormatError(
      `Metadata format ${payload[0] ?? 'of an empty payload'} is not known; this version reads ${payloadFormat}`,
    )
  }
  return new Fields('Payload', [unpack(payload.subarray(1))]).lists(decodeRecord)
}

function unpack(bytes: Uint8Array): unknown {
  try {
    return unpackr.unpack(bytes)
  } catch (error) {
    throw new MetadataFormatError(`Metadata records can't be read: ${messageOf(error)}`, { cause: error })
  }
}

/** Kafka's numbers where Kafka has the record; Rookery's own begin at 1000. */
const typeNumbers = {
  RegisterBroker: 0,
  UnregisterBroker: 1,
  Topic: 2,
  Partition: 3,
  Config: 4,
  PartitionChange: 5,
  RemoveTopic: 9,
  FeatureLevel: 12,
  ProducerIds: 15,
  BrokerRegistrationChange: 17,
  NoOp: 20,
  RegisterController: 27,
  ClusterId: 1000,
} as const satisfies Record<MetadataRecord['type'], number>

const typeNames = new Map<number, MetadataRecord['type']>(
  Object.entries(typeNumbers).map(([name, number]) => [number, name as MetadataRecord['type']]),
)

/** Kafka's numbers for security protocols and config resources. */
const securityProtocols = ['PLAINTEXT', 'SSL', 'SASL_PLAINTEXT', 'SASL_SSL'] as const
const resourceTypes = { topic: 2, broker: 4 } as const
const recoveryStates = ['recovered', 'recovering'] as const satisfies readonly LeaderRecoveryState[]

/**
 * The latest version of each record, 0 where it isn't here. A field is added at the end, in a new version, and is optional:
 * absent from every record of a version before. A record is written in the lowest version that holds what it says, so that
 * one that needs nothing new has the bytes it always had. An optional field that is absent is null.
 */
const latestVersions: Partial<Record<MetadataRecord['type'], number>> = {
  RegisterBroker: 1,
  BrokerRegistrationChange: 1,
  Partition: 1,
  PartitionChange: 1,
}

function encodeRecord(record: MetadataRecord): unknown[] {
  const added = addedFields(record)
  const fields = encodeFields(record)
  return added === undefined
    ? [typeNumbers[record.type], 0, ...fields]
    : [typeNumbers[record.type], 1, ...fields, ...added]
}

/** The fields that version 1 added; undefined when the record has none of them. */
function addedFields(record: MetadataRecord): unknown[] | undefined {
  switch (record.type) {
    case 'RegisterBroker':
      return record.features === undefined ? undefined : [record.features.map(encodeFeature)]
    case 'BrokerRegistrationChange':
      return record.logDirs === undefined ? undefined : [record.logDirs]
    case 'Partition':
    case 'PartitionChange': {
      const { addingReplicas, removingReplicas, elr, lastKnownElr, leaderRecoveryState, directories } = record
      const recovery = leaderRecoveryState === undefined ? undefined : recoveryStates.indexOf(leaderRecoveryState)
      const fields = [addingReplicas, removingReplicas, elr, lastKnownElr, recovery, directories]
      return fields.every((field) => field === undefined) ? undefined : fields.map((field) => field ?? null)
    }
    default:
      return undefined
  }
}

function encodeFields(record: MetadataRecord): unknown[] {
  switch (record.type) {
    case 'FeatureLevel':
      return [record.name, record.level]
    case 'ClusterId':
      return [record.clusterId]
    case 'RegisterBroker':
      return [
        record.brokerId,
        record.incarnationId,
        record.brokerEpoch,
        record.endpoints.map(encodeEndpoint),
        record.rack,
        record.logDirs,
        record.fenced,
      ]
    case 'RegisterController':
      return [
        record.controllerId,
        record.incarnationId,
        record.endpoints.map(encodeEndpoint),
        record.features.map(encodeFeature),
      ]
    case 'UnregisterBroker':
      return [record.brokerId, record.brokerEpoch]
    case 'BrokerRegistrationChange':
      return [record.brokerId, record.brokerEpoch, record.fenced ?? null, record.inControlledShutdown ?? null]
    case 'Topic':
      return [record.name, record.topicId]
    case 'Partition':
      return [
        record.topicId,
        record.partition,
        record.replicas,
        record.isr,
        record.leader,
        record.leaderEpoch,
        record.partitionEpoch,
      ]
    case 'PartitionChange':
      return [record.topicId, record.partition, record.replicas ?? null, record.isr ?? null, record.leader ?? null]
    case 'RemoveTopic':
      return [record.topicId]
    case 'Config':
      return [resourceTypes[record.resourceType], record.resourceName, record.key, record.value]
    case 'ProducerIds':
      return [record.brokerId, record.brokerEpoch, record.nextProducerId]
    case 'NoOp':
      return []
  }
}

function encodeEndpoint(endpoint: Endpoint): unknown[] {
  return [endpoint.name, endpoint.host, endpoint.port, securityProtocols.indexOf(endpoint.securityProtocol)]
}

function encodeFeature(feature: SupportedFeature): unknown[] {
  return [feature.name, feature.minLevel, feature.maxLevel]
}

function decodeRecord(all: Fields): MetadataRecord {
  const typeNumber = all.integer(0)
  const version = all.integer(0)
  const type = typeNames.get(typeNumber)
  if (type === undefined) throw new MetadataFormatError(`Metadata record type ${typeNumber} is not known`)
  const latest = latestVersions[type] ?? 0
  if (version > latest) {
    throw new MetadataFormatError(`${type} record version ${version} is not known; this version reads up to ${latest}`)
  }
  all.what = type
  const record = decodeFields(type, version, all)
  all.end()
  return record
}

function decodeFields(type: MetadataRecord['type'], version: number, fields: Fields): MetadataRecord {
  switch (type) {
    case 'FeatureLevel':
      return { type, name: fields.string(), level: fields.integer(0) }
    case 'ClusterId':
      return { type, clusterId: fields.string() }
    case 'RegisterBroker':
      return {
        type,
        brokerId: fields.integer(0),
        incarnationId: fields.uuid(),
        brokerEpoch: fields.integer(0),
        endpoints: fields.lists(decodeEndpoint),
        rack: fields.optional(() => fields.string()) ?? null,
        logDirs: fields.uuids(),
        fenced: fields.boolean(),
        ...(version === 0 ? {} : { features: fields.lists(decodeFeature) }),
      }
    case 'RegisterController':
      return {
        type,
        controllerId: fields.integer(0),
        incarnationId: fields.uuid(),
        endpoints: fields.lists(decodeEndpoint),
        features: fields.lists(decodeFeature),
      }
    case 'UnregisterBroker':
      return { type, brokerId: fields.integer(0), brokerEpoch: fields.integer(0) }
    case 'BrokerRegistrationChange': {
      const brokerId = fields.integer<BrokerId>(0)
      const brokerEpoch = fields.integer<BrokerEpoch>(0)
      const fenced = fields.optional(() => fields.boolean())
      const inControlledShutdown = fields.optional(() => fields.boolean())
      return {
        type,
        brokerId,
        brokerEpoch,
        ...(fenced === undefined ? {} : { fenced }),
        ...(inControlledShutdown === undefined ? {} : { inControlledShutdown }),
        ...(version === 0 ? {} : { logDirs: fields.uuids() }),
      }
    }
    case 'Topic':
      return { type, name: fields.string(), topicId: fields.uuid() }
    case 'Partition':
      return {
        type,
        topicId: fields.uuid(),
        partition: fields.integer(0),
        replicas: fields.integers(),
        isr: fields.integers(),
        leader: fields.integer(-1),
        leaderEpoch: fields.integer(0),
        partitionEpoch: fields.integer(0),
        ...(version === 0 ? {} : decodeReplicaFields(fields)),
      }
    case 'PartitionChange': {
      const topicId = fields.uuid()
      const partition = fields.integer(0)
      const replicas = fields.optional(() => fields.integers<BrokerId>())
      const isr = fields.optional(() => fields.integers<BrokerId>())
      const leader = fields.optional(() => fields.integer<BrokerId>(-1))
      return {
        type,
        topicId,
        partition,
        ...(replicas === undefined ? {} : { replicas }),
        ...(isr === undefined ? {} : { isr }),
        ...(leader === undefined ? {} : { leader }),
        ...(version === 0 ? {} : decodeReplicaFields(fields)),
      }
    }
    case 'RemoveTopic':
      return { type, topicId: fields.uuid() }
    case 'Config':
      return {
        type,
        resourceType: fields.resourceType(),
        resourceName: fields.string(),
        key: fields.string(),
        value: fields.optional(() => fields.string()) ?? null,
      }
    case 'ProducerIds':
      return {
        type,
        brokerId: fields.integer(-1),
        brokerEpoch: fields.integer(-1),
        nextProducerId: fields.integer(0),
      }
    case 'NoOp':
      return { type }
  }
}

/** What version 1 added to Partition and PartitionChange. */
function decodeReplicaFields(fields: Fields) {
  const addingReplicas = fields.optional(() => fields.integers<BrokerId>())
  const removingReplicas = fields.optional(() => fields.integers<BrokerId>())
  const elr = fields.optional(() => fields.integers<BrokerId>())
  const lastKnownElr = fields.optional(() => fields.integers<BrokerId>())
  const leaderRecoveryState = fields.optional(() => fields.oneOf(recoveryStates))
  const directories = fields.optional(() => fields.uuids())
  return {
    ...(addingReplicas === undefined ? {} : { addingReplicas }),
    ...(removingReplicas === undefined ? {} : { removingReplicas }),
    ...(elr === undefined ? {} : { elr }),
    ...(lastKnownElr === undefined ? {} : { lastKnownElr }),
    ...(leaderRecoveryState === undefined ? {} : { leaderRecoveryState }),
    ...(directories === undefined ? {} : { directories }),
  }
}

function decodeFeature(fields: Fields): SupportedFeature {
  const feature = {
    name: fields.string(),
    minLevel: fields.integer<number>(0),
    maxLevel: fields.integer<number>(0),
  }
  fields.end()
  return feature
}

function decodeEndpoint(fields: Fields): Endpoint {
  const endpoint = {
    name: fields.string(),
    host: fields.string(),
    port: fields.integer<number>(0),
    securityProtocol: fields.oneOf(securityProtocols),
  }
  fields.end()
  return endpoint
}

/** Reads the elements of one array in turn, each checked: a file or a peer is never trusted to hold what it should. */
class Fields {
  /** Record type, for messages. */
  what: string
  readonly #values: readonly unknown[]
  #next = 0

  constructor(what: string, values: readonly unknown[]) {
    this.what = what
    this.#values = values
  }

  end(): void {
    if (this.#next !== this.#values.length) this.#refuse('has too many fields')
  }

  /** A whole number of `min` or more, that a double holds exactly. */
  integer<T extends number>(min: number): T {
    const value = this.#take()
    if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < min) this.#refuse('is no number in range')
    return value as T
  }

  string(): string {
    const value = this.#take()
    if (typeof value !== 'string') this.#refuse('is no text')
    return value
  }

  boolean(): boolean {
    const value = this.#take()
    if (typeof value !== 'boolean') this.#refuse('is no boolean')
    return value
  }

  uuid(): Uuid {
    const text = this.string()
    if (!isUuid(text)) this.#refuse('is no UUID')
    return text as Uuid
  }

  uuids(): Uuid[] {
    const fields = this.#array()
    const uuids: Uuid[] = []
    while (fields.#next < fields.#values.length) uuids.push(fields.uuid())
    return uuids
  }

  integers<T extends number>(): T[] {
    const fields = this.#array()
    const integers: T[] = []
    while (fields.#next < fields.#values.length) integers.push(fields.integer<T>(0))
    return integers
  }

  /** An array of arrays. */
  lists<T>(decode: (fields: Fields) => T): T[] {
    const fields = this.#array()
    const decoded: T[] = []
    while (fields.#next < fields.#values.length) decoded.push(decode(fields.#array()))
    return decoded
  }

  /** Undefined for null. */
  optional<T>(read: () => T): T | undefined {
    if (this.#values[this.#next] !== null) return read()
    this.#next++
    return undefined
  }

  /** The value whose index is written. */
  oneOf<T>(values: readonly T[]): T {
    const value = values[this.integer<number>(0)]
    if (value === undefined) this.#refuse('is none of the known values')
    return value
  }

  resourceType(): 'topic' | 'broker' {
    const number = this.integer<number>(0)
    if (number === resourceTypes.topic) return 'topic'
    if (number === resourceTypes.broker) return 'broker'
    return this.#refuse('is no known resource type')
  }

  #array(): Fields {
    const value = this.#take()
    if (!Array.isArray(value)) this.#refuse('is no list')
    return new Fields(this.what, value)
  }

  #take(): unknown {
    if (this.#next >= this.#values.length) this.#refuse('is missing')
    return this.#values[this.#next++]
  }

  #refuse(problem: string): never {
    throw new MetadataFormatError(`${this.what}: metadata field ${this.#next} ${problem}`)
  }
}
