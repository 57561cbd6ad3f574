import { type MessageType, request, response } from '../message.ts'
import { array, arrayOf, boolean, int16, int32, int64, string } from '../schema.ts'

export const DescribeLogDirsRequest = request({
  apiKey: 35,
  name: 'DescribeLogDirs',
  versions: '1-5',
  flexible: '2+',
  fields: {
    topics: array(
      {
        topic: string(),
        partitions: arrayOf(int32()),
      },
      { nullable: true },
    ),
  },
})
export type DescribeLogDirsRequest = MessageType<typeof DescribeLogDirsRequest>

export const DescribeLogDirsResponse = response({
  apiKey: 35,
  name: 'DescribeLogDirs',
  versions: '1-5',
  flexible: '2+',
  fields: {
    throttleTimeMs: int32({ default: 0 }),
    errorCode: int16({ versions: '3+', ignorable: true }),
    results: array({
      errorCode: int16(),
      logDir: string(),
      topics: array({
        name: string(),
        partitions: array({
          partitionIndex: int32(),
          partitionSize: int64(),
          offsetLag: int64(),
          isFutureKey: boolean(),
        }),
      }),
      totalBytes: int64({ versions: '4+', default: -1, ignorable: true }),
      usableBytes: int64({ versions: '4+', default: -1, ignorable: true }),
      isCordoned: boolean({ versions: '5+', default: false, ignorable: true }),
    }),
  },
})
export type DescribeLogDirsResponse = MessageType<typeof DescribeLogDirsResponse>
