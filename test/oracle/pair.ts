import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Broker, startBroker } from '../../src/index.ts'
import { apis } from '../../src/protocol/index.ts'
import { until } from '../support/condition.ts'
import { type KafkaBroker, startKafkaBroker } from '../support/kafka-broker.ts'
import type { Peer } from '../support/peers.ts'
import { Recorder } from './recorder.ts'

/** What both brokers are told, so that they differ in nothing that is a choice. */
const sharedConfig = {
  'offsets.topic.num.partitions': 5,
  'group.initial.rebalance.delay.ms': 0,
  'group.max.size': 3,
  'node.id': 1,
  'log.roll.hours': 100,
  // Scenarios send records of 2023.
  'log.retention.ms': -1,
  // Rookery flushes what it acknowledges by default, Kafka leaves that to the operating system.
  'log.flush.interval.messages': '9223372036854775807',
}

const kafkaConfig = {
  ...sharedConfig,
  // Only what Rookery has.
  'group.coordinator.rebalance.protocols': 'classic',
}

/** What Rookery doesn't have is off. */
const kafkaFeatures = {
  'eligible.leader.replicas.version': 0,
  'group.version': 0,
  'share.version': 0,
  'streams.version': 0,
  'transaction.version': 0,
}

/** An Apache Kafka node and a Rookery node, which are told the same. */
export class BrokerPair implements AsyncDisposable {
  readonly kafka: KafkaBroker
  readonly #folder: string
  #rookery: Broker

  private constructor(kafka: KafkaBroker, rookery: Broker, folder: string) {
    this.kafka = kafka
    this.#rookery = rookery
    this.#folder = folder
  }

  /** Both serve, groups too. */
  static async start(peer: Peer): Promise<BrokerPair> {
    const folder = await mkdtemp(join(tmpdir(), 'rookery-oracle-'))
    const [kafka, rookery] = await Promise.all([
      startKafkaBroker(peer, { config: kafkaConfig, features: kafkaFeatures }),
      startBroker({ storage: folder, config: sharedConfig }),
    ])
    const pair = new BrokerPair(kafka, rookery, folder)
    await pair.#untilGroupsAreServed()
    return pair
  }

  /** Kafka's, then Rookery's. */
  get ports(): readonly [number, number] {
    return [this.kafka.port, this.#rookery.port]
  }

  /** Both with their data and ports, and `config` on top of what they were told. */
  async restart(config: Readonly<Record<string, string | number | boolean>>): Promise<void> {
    const restartRookery = async () => {
      const { port } = this.#rookery
      await this.#rookery.stop()
      this.#rookery = await startBroker({ storage: this.#folder, port, config: { ...sharedConfig, ...config } })
    }
    await Promise.all([this.kafka.restart(config), restartRookery()])
    await this.#untilGroupsAreServed()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kafka[Symbol.asyncDispose]()
    await this.#rookery.stop()
    await rm(this.#folder, { recursive: true, force: true, maxRetries: 3 })
  }

  async #untilGroupsAreServed(): Promise<void> {
    await Promise.all(this.ports.map(untilGroupsAreServed))
  }
}

/** Kafka makes its internal topic when a group is first looked for, and gets producer ids when one is first asked for. */
async function untilGroupsAreServed(port: number): Promise<void> {
  await using recorder = new Recorder(port, 'warm-up')
  const areServed = async () => {
    const coordinator = await recorder.unrecorded(apis.FindCoordinator, 0, { key: 'warm-up' })
    if (coordinator.errorCode !== 0) return false
    const groups = Array.from({ length: 30 }, (_, i) => `warm-up-${i}`)
    const { groups: described } = await recorder.unrecorded(apis.DescribeGroups, 0, { groups })
    const producer = await recorder.unrecorded(apis.InitProducerId, 0, {
      transactionalId: null,
      transactionTimeoutMs: 1000,
    })
    return producer.errorCode === 0 && described.every(({ errorCode }) => errorCode === 0)
  }
  await until(areServed, 'groups are served')
}
