import { type MessageType, request, response } from '../message.ts'
import { array, arrayOf, int16, int32, string } from '../schema.ts'

export const AlterReplicaLogDirsRequest = request({
  apiKey: 34,
  name: 'AlterReplicaLogDirs',
  versions: '1-2',
  flexible: '2+',
  fields: {
    dirs: array({
      path: string(),
      topics: array({
        name: string(),
        partitions: arrayOf(int32()),
      }),
    }),
  },
})
export type AlterReplicaLogDirsRequest = MessageType<typeof AlterReplicaLogDirsRequest>

export const AlterReplicaLogDirsResponse = response({
  apiKey: 34,
  name: 'AlterReplicaLogDirs',
  versions: '1-2',
  flexible: '2+',
  fields: {
    throttleTimeMs: int32({ default: 0 }),
    results: array({
      topicName: string(),
      partitions: array({
        partitionIndex: int32(),
        errorCode: int16(),
      }),
    }),
  },
})
export type AlterReplicaLogDirsResponse = MessageType<typeof AlterReplicaLogDirsResponse>
