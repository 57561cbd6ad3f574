import { data, type MessageType, recordKey } from '../message.ts'
import { array, bytes, int32, int64, string } from '../schema.ts'

export const GroupMetadataKey = recordKey({
  recordType: 2,
  name: 'GroupMetadataKey',
  fields: {
    group: string(),
  },
})
export type GroupMetadataKey = MessageType<typeof GroupMetadataKey>

export const GroupMetadataValue = data({
  name: 'GroupMetadataValue',
  versions: '0-4',
  flexible: '4+',
  fields: {
    protocolType: string(),
    generation: int32(),
    protocol: string({ nullable: true }),
    leader: string({ nullable: true }),
    currentStateTimestamp: int64({ versions: '2+', default: -1, ignorable: true }),
    members: array({
      memberId: string(),
      groupInstanceId: string({ versions: '3+', nullable: true, default: null, ignorable: true }),
      clientId: string(),
      clientHost: string(),
      rebalanceTimeout: int32({ versions: '1+', default: -1, ignorable: true }),
      sessionTimeout: int32(),
      subscription: bytes(),
      assignment: bytes(),
    }),
  },
})
export type GroupMetadataValue = MessageType<typeof GroupMetadataValue>
