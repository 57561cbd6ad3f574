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
    title: 'Kafka fails with UNKNOWN_SERVER_ERROR',
    reason:
      'What no client sends (a codec or an operation that is none, packed records that are none, an isolation level or a limit that is none, the id of zeros) makes an exception in Kafka. Rookery refuses it with the code that says why; in Fetch and ListOffsets it reads the level as uncommitted and the limit as nothing',
    covers: ({ exchange, kafka, rookery, path }) =>
      (path.endsWith('errorCode') &&
        kafka === -1 &&
        (Number(rookery) > 0 || ['Fetch', 'ListOffsets'].includes(exchange.api))) ||
      (exchange.api === 'Metadata' &&
        JSON.stringify(exchange.request).includes('[{"topicId":"no topic","name":null}]')),
  },
  {
    title: 'refusals are explained',
    reason:
      'Kafka leaves the message of many refusals empty. The code is the same, and clients show the message as it is',
    covers: ({ path, kafka, rookery }) =>
      path.endsWith('rrorMessage') && typeof rookery === 'string' && (kafka === null || kafka === ''),
  },
  {
    title: 'answers to Fetch end with a whole batch',
    reason: 'Kafka cuts at the limit of bytes. Clients pass over a batch that is not whole',
    covers: ({ exchange, path, kafka, rookery }) =>
      exchange.api === 'Fetch' && path.endsWith('.records') && isCutBatch(kafka, rookery),
  },
  {
    title: 'broken batches that Kafka stores are refused',
    reason:
      'A delete horizon set by a producer, and offset deltas that do not count from 0, would be read wrongly by every consumer. No producer sends them',
    covers: ({ scenario, kafka, rookery }) => scenario.endsWith(onlyOneTakes) && kafka === 0 && rookery === 87,
  },
  {
    title: 'packed records are not looked into',
    reason:
      'Unpacking every batch would cost more than all else about it, so a batch is unpacked where a rule asks for it: on compacted topics, for illegal timestamps, to pack it anew. A packed batch whose inside contradicts its header, with a checksum that is right, is stored; no producer makes one',
    covers: ({ scenario, exchange, rookery }) =>
      scenario.endsWith(onlyOneTakes) && /^(gzip|snappy|lz4|zstd),/.test(exchange.client) && rookery === 0,
  },
  {
    title: 'defaults that differ on purpose are told',
    reason:
      'What counts is the same in both, as both are set; the synonyms also tell the built-in default, which is what is there',
    covers: ({ exchange, path }) =>
      exchange.api === 'DescribeConfigs' && /(flush\.messages|node\.id|rebalance\.delay\.ms)\.synonyms/.test(path),
  },
  {
    title: 'loggers, client metrics and groups have no settings',
    reason:
      'Rookery has neither loggers with levels of their own nor telemetry nor groups of the newer kinds, so they are described as having no settings, and none can be set. Clients show what is listed',
    covers: ({ exchange, path, kafka, rookery }) =>
      (exchange.api === 'DescribeConfigs' && path.includes('.configs.') && rookery === undefined) ||
      (exchange.api === 'IncrementalAlterConfigs' && kafka === 0 && rookery === 40)
        ? (exchange.request as { resources: { resourceType: number }[] }).resources.every(({ resourceType }) =>
            [8, 16, 32].includes(resourceType),
          )
        : false,
  },
  {
    title: 'settings of brokers that nobody knows are refused',
    reason:
      'Kafka keeps them for plugins, of which Rookery has none: nothing would read them. A name that is misspelt is told',
    covers: ({ exchange, kafka, rookery }) =>
      ['AlterConfigs', 'IncrementalAlterConfigs'].includes(exchange.api) &&
      kafka === 0 &&
      rookery === 42 &&
      /"resourceType":4.*"name":"(no.such.key|root)"/.test(JSON.stringify(exchange.request)),
  },
  {
    title: 'what is asked twice is told once',
    reason:
      'Otherwise a small request that names one thing often asks for more memory than there is. Clients ask once, and keep answers by name',
    covers: ({ scenario }) => scenario.endsWith('what is asked twice in one request'),
  },
  {
    title: 'a group that was never joined is not kept',
    reason:
      'Kafka keeps an empty group in memory after a join that it refused, until the coordinator moves. Neither has members or offsets',
    covers: ({ exchange, path, kafka, rookery }) =>
      exchange.api === 'DescribeGroups' && path.endsWith('.groupState') && kafka === 'Empty' && rookery === 'Dead',
  },
  {
    title: 'a group without offsets and members is not kept',
    reason:
      'Kafka keeps a group whose last offset was deleted in memory, until the coordinator moves. There is nothing more to delete in either',
    covers: ({ exchange, path, kafka, rookery }) =>
      exchange.api === 'OffsetDelete' && path.endsWith('errorCode') && kafka === 0 && rookery === 69,
  },
]

const onlyOneTakes = 'batches that only one of the two takes'

/** Kafka's batches are Rookery's and a part of one more. */
function isCutBatch(kafka: unknown, rookery: unknown): boolean {
  if (!Array.isArray(kafka) || !Array.isArray(rookery)) return false
  const rest = kafka.at(-1) as { trailing?: number; check?: string } | undefined
  const isPart = rest?.trailing !== undefined || rest?.check === 'truncated'
  return isPart && JSON.stringify(kafka.slice(0, -1)) === JSON.stringify(rookery)
}

const configsOf44 = [
  'errors.deadletterqueue.group.enable',
  'max.decompressed.message.bytes',
  'remote.copy.lag.bytes',
  'remote.copy.lag.ms',
]
