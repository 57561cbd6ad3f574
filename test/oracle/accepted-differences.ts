import type { AcceptedDifference } from './differences.ts'

/**
 * Where Rookery's answer is not Apache Kafka's, on purpose. An entry is taken only when no record and no offset differs
 * for it and no client behaves differently; one that no longer occurs fails the run.
 */
export const acceptedDifferences: readonly AcceptedDifference[] = [
  {
    title: 'topic configs of Kafka 4.4 are not listed',
    reason:
      'Rookery has the topic configs of Kafka 4.3. The four that 4.4 added set up tiered storage, dead letter queues of share groups and recompression, none of which Rookery has',
    covers: ({ path }) => configsOf44.some((name) => path.endsWith(`.configs.${name}`)),
  },
  {
    title: 'fewer versions are advertised',
    reason:
      "Every range lies within Kafka's: a client takes the highest version that both have, as with an older Kafka",
    covers: ({ exchange, path, kafka, rookery }) =>
      exchange.api === 'ApiVersions' && /^apiKeys.*maxVersion$/.test(path) && Number(rookery) < Number(kafka),
  },
  {
    title: 'features that are not there are not listed',
    reason:
      "A client uses a feature when it has a finalized level, and the same features have none in both; metadata.version is for brokers and controllers, and its levels are Rookery's own",
    covers: ({ exchange, path }) => exchange.api === 'ApiVersions' && /^(supported|finalized)Features/.test(path),
  },
  {
    title: 'a client id of length -2 is malformed',
    reason: 'Kafka reads every negative length as null. Null is -1 in the protocol, and no client sends another',
    covers: ({ exchange }) => exchange.name === 'client id -2',
  },
  {
    title: 'Metadata for the id of zeros',
    reason:
      'Kafka fails with UNKNOWN_SERVER_ERROR, Rookery says INVALID_REQUEST. The id stands for "none"; no client asks for it',
    covers: ({ exchange }) =>
      exchange.api === 'Metadata' && JSON.stringify(exchange.request).includes('[{"topicId":"no topic","name":null}]'),
  },
]

const configsOf44 = [
  'errors.deadletterqueue.group.enable',
  'max.decompressed.message.bytes',
  'remote.copy.lag.bytes',
  'remote.copy.lag.ms',
]
