import { data, type MessageType } from '../message.ts'
import { array, arrayOf, bytes, int32, string } from '../schema.ts'

export const ConsumerProtocolSubscription = data({
  name: 'ConsumerProtocolSubscription',
  versions: '0-3',
  fields: {
    topics: arrayOf(string()),
    userData: bytes({ nullable: true, default: null }),
    ownedPartitions: array(
      {
        topic: string(),
        partitions: arrayOf(int32()),
      },
      { versions: '1+', ignorable: true },
    ),
    generationId: int32({ versions: '2+', default: -1, ignorable: true }),
    rackId: string({ versions: '3+', nullable: true, default: null, ignorable: true }),
  },
})
export type ConsumerProtocolSubscription = MessageType<typeof ConsumerProtocolSubscription>

export const ConsumerProtocolAssignment = data({
  name: 'ConsumerProtocolAssignment',
  versions: '0-3',
  fields: {
    assignedPartitions: array({
      topic: string(),
      partitions: arrayOf(int32()),
    }),
    userData: bytes({ nullable: true, default: null }),
  },
})
export type ConsumerProtocolAssignment = MessageType<typeof ConsumerProtocolAssignment>
