import { type MessageType, request, response } from '../message.ts'
import { array, arrayOf, int8, int16, int32, int64, int64Wide, records, string, struct, uuid } from '../schema.ts'

export const FetchRequest = request({
  apiKey: 1,
  name: 'Fetch',
  versions: '4-18',
  flexible: '12+',
  fields: {
    clusterId: string({ versions: '12+', nullable: true, default: null, ignorable: true, tag: 0 }),
    replicaId: int32({ versions: '4-14', default: -1 }),
    replicaState: struct(
      {
        replicaId: int32({ default: -1 }),
        replicaEpoch: int64({ default: -1 }),
      },
      { versions: '15+', tag: 1 },
    ),
    maxWaitMs: int32(),
    minBytes: int32(),
    maxBytes: int32({ default: 2147483647 }),
    isolationLevel: int8({ default: 0 }),
    sessionId: int32({ versions: '7+', ignorable: true }),
    sessionEpoch: int32({ versions: '7+', default: -1, ignorable: true }),
    topics: array({
      topic: string({ versions: '4-12', ignorable: true }),
      topicId: uuid({ versions: '13+', ignorable: true }),
      partitions: array({
        partition: int32(),
        currentLeaderEpoch: int32({ versions: '9+', default: -1, ignorable: true }),
        fetchOffset: int64(),
        lastFetchedEpoch: int32({ versions: '12+', default: -1 }),
        logStartOffset: int64({ versions: '5+', default: -1, ignorable: true }),
        partitionMaxBytes: int32(),
        replicaDirectoryId: uuid({ versions: '17+', ignorable: true, tag: 0 }),
        highWatermark: int64Wide({ versions: '18+', default: 9223372036854775807n, ignorable: true, tag: 1 }),
      }),
    }),
    forgottenTopicsData: array(
      {
        topic: string({ versions: '7-12', ignorable: true }),
        topicId: uuid({ versions: '13+', ignorable: true }),
        partitions: arrayOf(int32()),
      },
      { versions: '7+' },
    ),
    rackId: string({ versions: '11+', ignorable: true }),
  },
})
export type FetchRequest = MessageType<typeof FetchRequest>

export const FetchResponse = response({
  apiKey: 1,
  name: 'Fetch',
  versions: '4-18',
  flexible: '12+',
  fields: {
    throttleTimeMs: int32({ default: 0 }),
    errorCode: int16({ versions: '7+', ignorable: true }),
    sessionId: int32({ versions: '7+' }),
    responses: array({
      topic: string({ versions: '4-12', ignorable: true }),
      topicId: uuid({ versions: '13+', ignorable: true }),
      partitions: array({
        partitionIndex: int32(),
        errorCode: int16(),
        highWatermark: int64(),
        lastStableOffset: int64({ default: -1 }),
        logStartOffset: int64({ versions: '5+', default: -1, ignorable: true }),
        divergingEpoch: struct(
          {
            epoch: int32({ default: -1 }),
            endOffset: int64({ default: -1 }),
          },
          { versions: '12+', tag: 0 },
        ),
        currentLeader: struct(
          {
            leaderId: int32({ default: -1 }),
            leaderEpoch: int32({ default: -1 }),
          },
          { versions: '12+', tag: 1 },
        ),
        snapshotId: struct(
          {
            endOffset: int64({ default: -1 }),
            epoch: int32({ default: -1 }),
          },
          { versions: '12+', tag: 2 },
        ),
        abortedTransactions: array(
          {
            producerId: int64(),
            firstOffset: int64(),
          },
          { nullable: true },
        ),
        preferredReadReplica: int32({ versions: '11+', default: -1 }),
        records: records(),
      }),
    }),
    nodeEndpoints: array(
      {
        nodeId: int32(),
        host: string(),
        port: int32(),
        rack: string({ nullable: true, default: null }),
      },
      { versions: '16+', tag: 0 },
    ),
  },
})
export type FetchResponse = MessageType<typeof FetchResponse>
