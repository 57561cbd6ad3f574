import type { BrokerId } from '../base/index.ts'
import type { CreatePartitionsRequest as Asked } from '../coordination/index.ts'
import {
  apis,
  type CreatePartitionsRequest,
  type CreatePartitionsResponse,
  ErrorCode,
  type MessageInput,
} from '../protocol/index.ts'
import { defineApi } from './api.ts'
import { errorCodeOf, errorMessageOf } from './errors.ts'

/**
 * CreatePartitions, 0 to 3.
 *
 *   2  flexible
 *
 * Any broker takes it. `count` is what a topic has afterwards, not what it gets. Every topic of the request is in the
 * answer, those that stand twice once, first, and refused. Unlike in Kafka, __consumer_offsets gets no further partitions:
 * groups are placed by their number, so that each would be looked for where its offsets are not.
 */
export const createPartitions = defineApi({
  api: apis.CreatePartitions,
  versions: { min: 0, max: 3 },
  async handle(request, context) {
    const times = new Map<string, number>()
    for (const { name } of request.topics) times.set(name, (times.get(name) ?? 0) + 1)
    const answers: TopicAnswer[] = []
    for (const [name, count] of times) if (count > 1) answers.push(twice(name))
    const wanted = request.topics.filter(({ name }) => times.get(name) === 1).map(askedOf)
    const options = { timeoutMs: Math.max(0, request.timeoutMs), validateOnly: request.validateOnly }
    const results =
      wanted.length === 0 ? [] : await context.services.coordination.admin.createPartitions(wanted, options)
    for (const result of results) {
      const { name } = result
      if (result.ok) answers.push({ name, errorCode: ErrorCode.NONE, errorMessage: null })
      else answers.push({ name, errorCode: errorCodeOf(result.reason), errorMessage: result.message })
    }
    return { body: { results: answers } }
  },
  fault: (request, errorCode) => ({
    results: request.topics.map(({ name }) => ({ name, errorCode, errorMessage: errorMessageOf(errorCode) })),
  }),
})

type TopicAnswer = MessageInput<typeof CreatePartitionsResponse>['results'][number]

function askedOf({ name, count, assignments }: CreatePartitionsRequest['topics'][number]): Asked {
  if (assignments === null) return { name, totalCount: count }
  return {
    name,
    totalCount: count,
    assignments: assignments.map(({ brokerIds }) => brokerIds as readonly BrokerId[]),
  }
}

function twice(name: string): TopicAnswer {
  return { name, errorCode: ErrorCode.INVALID_REQUEST, errorMessage: 'The topic stands twice in the request' }
}
