import { apis, ErrorCode } from '../../../src/protocol/index.ts'
import type { Client } from './client.ts'
import type { ListedTopic, SimulatedTopic } from './history.ts'
import type { TopicPlan } from './scenario.ts'

/** Creates a topic, whatever it takes. */
export async function createTopic(client: Client, plan: TopicPlan): Promise<SimulatedTopic> {
  const { name, partitionCount, isDurable, hasRetention, isCompacted, configs } = plan
  const replicationFactor = plan.replicationFactor ?? client.world.replicationFactor
  for (;;) {
    const answer = await client.request(apis.CreateTopics, 7, {
      topics: [
        {
          name,
          numPartitions: partitionCount,
          replicationFactor,
          assignments: [],
          configs: Object.entries(configs).map(([key, value]) => ({ name: key, value })),
        },
      ],
      timeoutMs: 5000,
      validateOnly: false,
    })
    const created = answer?.topics[0]
    let topicId: string | undefined = created?.topicId
    if (created === undefined || created.errorCode !== ErrorCode.NONE) {
      // An earlier request may have been carried out without an answer.
      topicId = (await listTopics(client))?.find((topic) => topic.name === name)?.topicId
    }
    if (created?.errorCode === ErrorCode.INVALID_CONFIG)
      client.world.history.fail(new Error(created.errorMessage ?? ''))
    if (topicId !== undefined) {
      client.world.history.add({ kind: 'topic-created', name, topicId })
      return { name, topicId, partitionCount, isDurable, hasRetention, isCompacted }
    }
    await client.think(50)
  }
}

/** Deletes a topic by its id, whatever it takes. */
export async function deleteTopic(client: Client, topicId: string): Promise<void> {
  const { history } = client.world
  for (;;) {
    const connection = await client.connection()
    history.add({ kind: 'topic-deletion-sent', topicId })
    const answer = await client.requestOn(connection, apis.DeleteTopics, 6, {
      topics: [{ name: null, topicId: topicId as never }],
      timeoutMs: 5000,
    })
    const code = answer?.responses[0]?.errorCode
    if (code === ErrorCode.NONE || code === ErrorCode.UNKNOWN_TOPIC_ID) {
      history.add({ kind: 'topic-deleted', topicId })
      return
    }
    await client.think(50)
  }
}

/** All topics, those of the node itself too; undefined when no answer came. */
export async function listTopics(client: Client): Promise<readonly ListedTopic[] | undefined> {
  const { world } = client
  const { history } = world
  const connection = await client.connection()
  const sentAt = history.now
  const { incarnation } = world
  const answer = await client.requestOn(connection, apis.Metadata, 12, {
    topics: null,
    allowAutoTopicCreation: false,
    includeTopicAuthorizedOperations: false,
  })
  if (answer === undefined) return undefined
  const topics = answer.topics.map(({ name, topicId, partitions }) => ({
    name: name ?? '',
    topicId,
    leaderEpochs: partitions
      .toSorted((a, b) => a.partitionIndex - b.partitionIndex)
      .map(({ leaderEpoch }) => leaderEpoch),
  }))
  history.add({ kind: 'topics-listed', topics, sentAt, incarnation })
  return topics
}
