import { type MessageType, request, response } from '../message.ts'
import { array, arrayOf, int8, int16, int32, string } from '../schema.ts'

export const ElectLeadersRequest = request({
  apiKey: 43,
  name: 'ElectLeaders',
  versions: '0-2',
  flexible: '2+',
  fields: {
    electionType: int8({ versions: '1+' }),
    topicPartitions: array(
      {
        topic: string(),
        partitions: arrayOf(int32()),
      },
      { nullable: true },
    ),
    timeoutMs: int32({ default: 60_000 }),
  },
})
export type ElectLeadersRequest = MessageType<typeof ElectLeadersRequest>

export const ElectLeadersResponse = response({
  apiKey: 43,
  name: 'ElectLeaders',
  versions: '0-2',
  flexible: '2+',
  fields: {
    throttleTimeMs: int32({ default: 0 }),
    errorCode: int16({ versions: '1+' }),
    replicaElectionResults: array({
      topic: string(),
      partitionResult: array({
        partitionId: int32(),
        errorCode: int16(),
        errorMessage: string({ nullable: true }),
      }),
    }),
  },
})
export type ElectLeadersResponse = MessageType<typeof ElectLeadersResponse>
