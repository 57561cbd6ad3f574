import type { Uuid } from '../base/index.ts'
import type { MetadataImage, MetadataRecord, TopicImage } from '../metadata/index.ts'
import type { ControllerSettings, Decision } from './decision.ts'
import type { DeleteTopicRequest, DeleteTopicResult } from './requests.ts'

/** Each topic by itself. One that is named twice, also once by name and once by id, is deleted once: the second is refused. */
export function deleteTopics(
  image: MetadataImage,
  requests: readonly DeleteTopicRequest[],
  context: { readonly settings: ControllerSettings; readonly validateOnly: boolean },
): Decision<readonly DeleteTopicResult[]> {
  const deleted = new Set<Uuid>()
  const response = requests.map((request): DeleteTopicResult => {
    if (!context.settings.topicDeletionEnabled) {
      return { ok: false, reason: 'topic-deletion-disabled', message: 'delete.topic.enable is false' }
    }
    const topic = find(image, request)
    if (topic === undefined) return unknown(request)
    if (deleted.has(topic.topicId)) {
      return { ok: false, reason: 'invalid-request', message: `Topic ${topic.name} is in the request twice` }
    }
    deleted.add(topic.topicId)
    return { ok: true, name: topic.name, topicId: topic.topicId }
  })
  const records = [...deleted].map((topicId): MetadataRecord => ({ type: 'RemoveTopic', topicId }))
  return { records: context.validateOnly ? [] : records, response }
}

function find(image: MetadataImage, request: DeleteTopicRequest): TopicImage | undefined {
  return 'name' in request ? image.topics.byName(request.name) : image.topics.byId(request.topicId)
}

function unknown(request: DeleteTopicRequest): DeleteTopicResult {
  if ('name' in request) {
    return { ok: false, reason: 'unknown-topic', message: `Topic ${JSON.stringify(request.name)} does not exist` }
  }
  return { ok: false, reason: 'unknown-topic-id', message: `Topic id ${request.topicId} does not exist` }
}
