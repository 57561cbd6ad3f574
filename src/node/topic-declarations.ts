import { ConfigError, type ConfigProblem, nearestOf, shortened, validateTopicOverrides } from '../config/index.ts'
import type { Admin, CreateTopicRequest } from '../coordination/index.ts'
import type { Logger } from '../telemetry/index.ts'

/** A topic that is to be there when the node serves: its name alone, or with what differs from the broker's defaults. */
export type TopicDeclaration =
  | string
  | {
      readonly name: string
      /** `num.partitions` when left out. */
      readonly partitions?: number
      /** `default.replication.factor` when left out. */
      readonly replicationFactor?: number
      /** Topic configs under Kafka's keys. */
      readonly configs?: Readonly<Record<string, string | number | boolean>>
    }

/** How long the declared topics may take to be created. */
const createTimeoutMs = 30_000

/**
 * The topics of a text such as `orders:3,payments,audit:1:cleanup.policy=compact;retention.ms=-1`: names, each with an optional
 * number of partitions and configs. `place` names the text in errors: `ROOKERY_TOPICS`, `--topic`. Throws `ConfigError`.
 */
export function parseTopicList(text: string, place: string): CreateTopicRequest[] {
  const declarations: TopicDeclaration[] = []
  const problems: ConfigProblem[] = []
  for (const part of text.split(',').map((part) => part.trim())) {
    if (part === '') continue
    const [name = '', partitions = '', ...rest] = part.split(':')
    const configs = parseConfigs(rest.join(':'), part, place, problems)
    if (partitions !== '' && !/^\d{1,6}$/.test(partitions)) {
      problems.push({ key: undefined, message: `${place}: ${part}: partitions are a number, as in ${name}:3` })
    }
    declarations.push({ name, ...(partitions === '' ? {} : { partitions: Number(partitions) }), configs })
  }
  if (problems.length > 0) throw new ConfigError(problems)
  return topicRequests(declarations, place)
}

/** The topics of a JSON file: a list of names, or of objects with `name`, `partitions` and `configs`. Throws `ConfigError`. */
export function parseTopicsFile(text: string, fileName: string): CreateTopicRequest[] {
  let content: unknown
  try {
    content = JSON.parse(text)
  } catch (error) {
    throw new ConfigError([{ key: undefined, message: `${fileName} is not JSON: ${(error as Error).message}` }])
  }
  if (!Array.isArray(content)) {
    const message = `${fileName}: allowed is a list of names, or of objects with name, partitions and configs`
    throw new ConfigError([{ key: undefined, message }])
  }
  return topicRequests(content, fileName)
}

/** Requests for what is declared, which may come from JavaScript or a file. Throws one ConfigError that names every fault. */
export function topicRequests(declarations: readonly TopicDeclaration[], place: string): CreateTopicRequest[] {
  const problems: ConfigProblem[] = []
  const requests = declarations.flatMap((declaration): CreateTopicRequest[] => {
    if (!isDeclaration(declaration, place, problems)) return []
    const {
      name,
      partitions = -1,
      replicationFactor = -1,
      configs = {},
    } = typeof declaration === 'string' ? { name: declaration } : declaration
    const texts = new Map(Object.entries(configs).map(([key, value]) => [key, String(value)]))
    const fault = validateTopicOverrides(texts)
    if (fault !== undefined) problems.push({ key: fault.key, message: `${place}: topic ${name}: ${fault.message}` })
    if (partitions !== -1 && (!Number.isInteger(partitions) || partitions < 1)) {
      problems.push({
        key: undefined,
        message: `${place}: topic ${name}: ${JSON.stringify(partitions)} partitions: allowed is 1 or more`,
      })
    }
    if (replicationFactor !== -1 && !(Number.isInteger(replicationFactor) && replicationFactor >= 1)) {
      const message = `${place}: topic ${name}: ${JSON.stringify(replicationFactor)} replicas: allowed is 1 or more`
      problems.push({ key: undefined, message })
    }
    return [{ name, partitionCount: partitions, replicationFactor, configs: texts }]
  })
  const names = requests.map(({ name }) => name)
  for (const name of new Set(names.filter((each, index) => names.indexOf(each) < index))) {
    problems.push({ key: undefined, message: `${place}: topic ${name} is declared twice` })
  }
  if (problems.length > 0) throw new ConfigError(problems)
  return requests
}

/** Creates what isn't there yet; a topic that is there stays as it is. Throws `ConfigError` when one can't be created. */
export async function createDeclaredTopics(
  admin: Admin,
  requests: readonly CreateTopicRequest[],
  logger: Logger,
): Promise<void> {
  if (requests.length === 0) return
  const problems: ConfigProblem[] = []
  for (const result of await admin.createTopics(requests, { timeoutMs: createTimeoutMs })) {
    if (result.ok) logger.info({ topic: result.name, partitions: result.partitionCount }, 'declared topic created')
    else if (result.reason !== 'topic-exists') {
      problems.push({ key: undefined, message: `Declared topic ${result.name}: ${result.message}` })
    }
  }
  if (problems.length > 0) throw new ConfigError(problems)
}

function parseConfigs(text: string, part: string, place: string, problems: ConfigProblem[]): Record<string, string> {
  const configs: Record<string, string> = {}
  for (const setting of text.split(';').map((setting) => setting.trim())) {
    if (setting === '') continue
    const equals = setting.indexOf('=')
    if (equals < 1) {
      problems.push({ key: undefined, message: `${place}: ${part}: configs are key=value, separated by semicolons` })
    } else {
      configs[setting.slice(0, equals)] = setting.slice(equals + 1)
    }
  }
  return configs
}

const fieldNames: ReadonlySet<string> = new Set(['name', 'partitions', 'replicationFactor', 'configs'])

/** Whether it can be read as one; why not, and each field that nobody would read, goes to `problems`. */
function isDeclaration(value: unknown, place: string, problems: ConfigProblem[]): value is TopicDeclaration {
  if (typeof value === 'string') return true
  const report = (message: string) => problems.push({ key: undefined, message: `${place}: ${message}` })
  const allowed = [...fieldNames].join(', ')
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    report(`${shortened(JSON.stringify(value) ?? String(value))}: allowed is a name, or an object with ${allowed}`)
    return false
  }
  const { name, configs } = value as Readonly<Record<string, unknown>>
  const title = typeof name === 'string' ? `topic ${name}` : shortened(JSON.stringify(value))
  for (const field of Object.keys(value)) {
    if (fieldNames.has(field)) continue
    const nearest = nearestOf(field, fieldNames)
    const help = nearest === undefined ? `allowed are ${allowed}` : `did you mean ${nearest}?`
    report(`${title}: ${shortened(field)} is no field of a topic: ${help}`)
  }
  const hasConfigs =
    configs === undefined || (typeof configs === 'object' && configs !== null && !Array.isArray(configs))
  if (typeof name !== 'string') report(`${title}: name: allowed is a text`)
  if (!hasConfigs) report(`${title}: configs: allowed is an object such as {"retention.ms": 60000}`)
  return typeof name === 'string' && hasConfigs
}
