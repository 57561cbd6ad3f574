/**
 * config: the settings of a node and of its topics, under Kafka's own keys. Text comes in, typed frozen values go out; no
 * code elsewhere reads an environment variable or parses a setting.
 *
 * In reading order: `declareKeys` and the builders (`keys.ts`) say what a key is; `brokerKeys` and `topicKeys` are those
 * that a node has; `parseConfig` reads file, environment and overrides into a `ParsedConfig`; `validateTopicOverrides` and
 * `resolveTopicConfig` do the same for what a topic sets for itself; `describe...Config` lists both as a client may ask.
 *
 * Which source wins, from the weakest:
 *
 * | source                     | example                                    |
 * |----------------------------|--------------------------------------------|
 * | the key's default          | `singleNodeDefault` where it has one and the quorum has one voter |
 * | `defaults` of the caller   | the data folder that the command line picks |
 * | the file                   | `log.dirs=/var/lib/rookery`                |
 * | environment                | `ROOKERY_LOG_DIRS=/var/lib/rookery`        |
 * | overrides                  | `--override log.dirs=/var/lib/rookery`     |
 * | cluster default, dynamic   | AlterConfigs of broker ''                  |
 * | this broker's, dynamic     | AlterConfigs of broker '1'                 |
 *
 * The last two come from the cluster's metadata while the node runs (`DynamicConfig`), for the keys that are `dynamic`.
 *
 * What holds:
 * - A key that Kafka knows and Rookery doesn't use is accepted (`unused`), so that Kafka's files work; any other is refused,
 *   so that no typing error goes unnoticed. A setting of Kafka that would weaken security when ignored is refused.
 * - Every problem is found in one go and is a `ConfigError`; no text makes the parser throw anything else, or take long.
 * - Every key keeps its text beside its value: a LONG past 2^53 (Kafka's 9223372036854775807) is Infinity as a value, so
 *   that comparing with it means "no limit", and has all its digits when a client asks.
 *
 * Runs once at start, per topic when its settings change, and when dynamic settings of brokers change. Pure: no clock, no
 * file, no environment of its own.
 */
export { type ConfigEntry, type ParsedConfig, parseConfig } from './broker-config.ts'
export { type BrokerValues, brokerKeys, rackAwareSelector } from './broker-keys.ts'
export { ConfigError, type ConfigProblem, shortened } from './config-error.ts'
export {
  type ConfigSource,
  type ConfigSynonym,
  type ConfigType,
  configSource,
  configType,
  type DescribedConfig,
  describeBrokerConfig,
  describeClusterDefaults,
  describeTopicConfig,
} from './describe.ts'
export { type BrokerConfigTexts, DynamicConfig, listDefaultOf, validateDynamicConfig } from './dynamic-config.ts'
export {
  type AnyKey,
  boolean,
  declareKeys,
  double,
  enumOf,
  int,
  type Key,
  list,
  long,
  password,
  string,
  type ValuesOf,
} from './keys.ts'
export type { ListenerConfig, Roles } from './listeners.ts'
export { nearestOf } from './nearest.ts'
export type { QuorumVoter, ServerAddress } from './quorum.ts'
export type { ConfigInput, SettingSource, SettingValue } from './sources.ts'
export type { KeyStoreConfig, NamedText, TlsConfig, TlsVersion } from './tls.ts'
export {
  resolveTopicConfig,
  type TopicConfig,
  type TopicConfigFault,
  type TopicDefaults,
  type TopicOverrides,
  validateTopicOverrides,
} from './topic-config.ts'
export { isThrottledReplica, topicKeys } from './topic-keys.ts'
