import { data, type MessageType, recordKey } from '../message.ts'
import { int32, int64, string, uuid } from '../schema.ts'

/** Record type 0, which old brokers wrote, has the same fields. */
export const OffsetCommitKey = recordKey({
  recordType: 1,
  name: 'OffsetCommitKey',
  fields: {
    group: string(),
    topic: string(),
    partition: int32(),
  },
})
export type OffsetCommitKey = MessageType<typeof OffsetCommitKey>

export const OffsetCommitValue = data({
  name: 'OffsetCommitValue',
  versions: '0-4',
  flexible: '4+',
  fields: {
    offset: int64(),
    leaderEpoch: int32({ versions: '3+', default: -1, ignorable: true }),
    metadata: string(),
    commitTimestamp: int64(),
    expireTimestamp: int64({ versions: '1', default: -1, ignorable: true }),
    topicId: uuid({ versions: '4+', ignorable: true, tag: 0 }),
  },
})
export type OffsetCommitValue = MessageType<typeof OffsetCommitValue>
