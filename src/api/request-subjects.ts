import type { Uuid } from '../base/index.ts'
import { zeroUuid } from '../base/index.ts'

/**
 * Which topics and groups a request is about, wherever its API says so, and the part of a request that is about one of them. For
 * whoever treats requests alike whatever their API: messages are plain objects here.
 */
export type Fields = Readonly<Record<string, unknown>>

/** Undefined: there is no topic with that id. */
export type TopicNames = (topicId: Uuid) => string | undefined

/** Whom to look for; what is left out is not looked at. */
export interface Wanted {
  readonly topic?: string
  readonly group?: string
}

/** A request in two: what is about the one wanted, and the others. `rest` is undefined when nothing is left. */
export interface Split {
  readonly part: Fields
  readonly rest: Fields | undefined
}

/** A list in a request, each of whose elements is answered by one in a list of the response. */
interface SubjectList {
  readonly kind: 'topic' | 'group'
  /** The field of the request; two where it depends on the version, and the other is empty then. */
  readonly asked: readonly string[]
  readonly answered: string
  /** The answer has no errors of single elements: an error about one is about all. */
  readonly failsWhole?: true
}

const topics = (answered: string, ...asked: string[]): SubjectList => ({ kind: 'topic', asked, answered })
const groups = (answered: string, ...asked: string[]): SubjectList => ({ kind: 'group', asked, answered })

const lists: Readonly<Record<string, SubjectList>> = {
  Produce: topics('responses', 'topicData'),
  Fetch: topics('responses', 'topics'),
  ListOffsets: topics('topics', 'topics'),
  Metadata: topics('topics', 'topics'),
  OffsetCommit: topics('topics', 'topics'),
  OffsetFetch: groups('groups', 'groups'),
  FindCoordinator: groups('coordinators', 'coordinatorKeys'),
  DescribeGroups: groups('groups', 'groups'),
  CreateTopics: topics('topics', 'topics'),
  DeleteTopics: topics('responses', 'topics', 'topicNames'),
  DeleteRecords: topics('topics', 'topics'),
  OffsetForLeaderEpoch: topics('topics', 'topics'),
  DescribeConfigs: topics('results', 'resources'),
  AlterConfigs: topics('responses', 'resources'),
  IncrementalAlterConfigs: topics('responses', 'resources'),
  DescribeLogDirs: { ...topics('results', 'topics'), failsWhole: true },
  CreatePartitions: topics('results', 'topics'),
  DeleteGroups: groups('results', 'groupsNames'),
  OffsetDelete: topics('topics', 'topics'),
  DescribeQuorum: { ...topics('topics', 'topics'), failsWhole: true },
  DescribeProducers: topics('topics', 'topics'),
  DescribeTopicPartitions: topics('topics', 'topics'),
}

/** Kafka's number for a topic among resources that have configs, and for a group among keys of coordinators. */
const topicResource = 2
const groupKey = 0

/** The part of a request that is about what is wanted; undefined when it doesn't name it. Asking for all topics names none. */
export function splitRequest(api: string, request: Fields, wanted: Wanted, nameOf: TopicNames): Split | undefined {
  const whole = { part: request, rest: undefined }
  const list = lists[api]
  const elements = list === undefined ? [] : elementsOf(request, list)
  if (wanted.group !== undefined && !(list?.kind === 'group' && elements.length > 0)) {
    if (singleGroupOf(api, request) !== wanted.group) return undefined
  }
  const isWanted = (element: unknown): boolean =>
    list?.kind === 'topic'
      ? wanted.topic === undefined || topicOf(element, nameOf) === wanted.topic
      : (wanted.group === undefined || groupOf(api, request, element) === wanted.group) &&
        (wanted.topic === undefined || namesTopic(element, wanted.topic, nameOf))
  if (elements.length > 0) return narrowed(request, list!, elements, isWanted)
  if (wanted.topic === undefined) return whole
  // Up to version 7 OffsetFetch is about one group.
  return api === 'OffsetFetch' && namesTopic(request, wanted.topic, nameOf) ? whole : undefined
}

function narrowed(
  request: Fields,
  list: SubjectList,
  elements: readonly unknown[],
  isWanted: (element: unknown) => boolean,
): Split | undefined {
  const field = fieldOf(request, list)
  const part = elements.filter(isWanted)
  if (part.length === 0) return undefined
  if (part.length === elements.length || list.failsWhole === true) return { part: request, rest: undefined }
  const rest = elements.filter((element) => !isWanted(element))
  return { part: { ...request, [field]: part }, rest: { ...request, [field]: rest } }
}

/** An answer to a whole request, of answers to its parts: the first one's, with the elements of the others. */
export function joinAnswers(api: string, answers: readonly Fields[]): Fields {
  const [first = {}] = answers
  const answered = lists[api]?.answered
  if (answers.length < 2 || answered === undefined) return first
  return {
    ...first,
    [answered]: answers.flatMap((answer) => (answer[answered] as readonly unknown[] | undefined) ?? []),
  }
}

/** Whether an element of a list, or anything with a list of `topics`, is about a topic. */
function namesTopic(holder: unknown, topic: string, nameOf: TopicNames): boolean {
  const { topics: listed } = holder as Fields
  return Array.isArray(listed) && listed.some((each) => topicOf(each, nameOf) === topic)
}

/** The topic that an element of a list is about; undefined for a resource of another type, or an id that nobody knows. */
export function topicOf(element: unknown, nameOf: TopicNames): string | undefined {
  if (typeof element === 'string') return element
  const { topicId, resourceType, resourceName, name, topic, topicName } = element as Fields
  if (resourceType !== undefined) return resourceType === topicResource ? (resourceName as string) : undefined
  if (topicId !== undefined && topicId !== zeroUuid) return nameOf(topicId as Uuid)
  return (name ?? topic ?? topicName) as string | undefined
}

function groupOf(api: string, request: Fields, element: unknown): string | undefined {
  if (api === 'FindCoordinator' && request.keyType !== groupKey) return undefined
  return typeof element === 'string' ? element : ((element as Fields).groupId as string)
}

/** The group that all of the request is about. */
function singleGroupOf(api: string, request: Fields): string | undefined {
  if (api === 'FindCoordinator') return request.keyType === groupKey ? (request.key as string) : undefined
  return request.groupId as string | undefined
}

function fieldOf(request: Fields, { asked }: SubjectList): string {
  return asked.find((field) => ((request[field] as readonly unknown[] | null)?.length ?? 0) > 0) ?? asked[0]!
}

function elementsOf(request: Fields, list: SubjectList): readonly unknown[] {
  return (request[fieldOf(request, list)] as readonly unknown[] | null) ?? []
}
