import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { freePorts } from '../../test/support/free-ports.ts'
import { ClusterClient, type ClusterUnderTest, nodeIds, type StartCluster, until } from '../cluster.ts'
import type { FailoverCluster } from '../failover-events.ts'
import { brokerArguments, clusterId, findKafka, formatArguments, java } from './kafka.ts'

/**
 * Rookery's timeouts. The last is for how long a broker waits for a controller that hangs before it looks for another one; 30 s by
 * default, so that changes of settings which went to it hang as long.
 */
const tuned = {
  'broker.session.timeout.ms': 3000,
  'broker.heartbeat.interval.ms': 500,
  'controller.socket.timeout.ms': 3000,
}

/** Three Apache Kafka nodes, with Kafka's own settings and with tuned ones; `heap` of each node as java takes it. */
export function kafkaClusters(folder: string | undefined, heap: string): FailoverCluster[] {
  const { jars, version } = findKafka(folder)
  const settings = Object.entries(tuned).map((setting) => setting.join('='))
  return [
    {
      name: 'Kafka',
      kind: 'kafka',
      start: startKafkaCluster(jars, 'Kafka', heap, {}),
      about: `Kafka: Apache Kafka ${version}, each node broker and KRaft controller with -Xmx${heap}, its own timeouts`,
    },
    {
      name: 'Kafka, tuned',
      kind: 'tuned-kafka',
      start: startKafkaCluster(jars, 'Kafka, tuned', heap, tuned),
      about: `Kafka, tuned: the same with ${settings.join(', ')}`,
    },
  ]
}

function startKafkaCluster(
  jars: string,
  name: string,
  heap: string,
  settings: Readonly<Record<string, string | number>>,
): StartCluster {
  return async (directory) => {
    const ports = await freePorts(2 * nodeIds.length)
    const cluster = new KafkaProcesses(name, jars, heap, directory, ports)
    try {
      for (const id of nodeIds) await cluster.format(id, settings)
      await Promise.all(nodeIds.map((id) => cluster.start(id)))
    } catch (error) {
      await cluster[Symbol.asyncDispose]()
      throw error
    }
    return cluster
  }
}

class KafkaProcesses implements ClusterUnderTest {
  readonly name: string
  readonly ports: readonly number[]
  readonly #jars: string
  readonly #heap: string
  readonly #directory: string
  readonly #controllerPorts: readonly number[]
  readonly #nodes = new Map<number, ReturnType<typeof java>>()

  constructor(name: string, jars: string, heap: string, directory: string, ports: readonly number[]) {
    this.name = name
    this.#jars = jars
    this.#heap = heap
    this.#directory = directory
    this.ports = ports.slice(0, nodeIds.length)
    this.#controllerPorts = ports.slice(nodeIds.length)
  }

  async format(id: number, settings: Readonly<Record<string, string | number>>): Promise<void> {
    const folder = this.#folder(id)
    await mkdir(folder, { recursive: true })
    const voters = this.#controllerPorts.map((port, i) => `${i + 1}@127.0.0.1:${port}`).join(',')
    const all = {
      'process.roles': 'broker,controller',
      'node.id': id,
      'controller.quorum.voters': voters,
      listeners: `PLAINTEXT://127.0.0.1:${this.ports[id - 1]},CONTROLLER://127.0.0.1:${this.#controllerPorts[id - 1]}`,
      'listener.security.protocol.map': 'CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT',
      'controller.listener.names': 'CONTROLLER',
      'log.dirs': join(folder, 'data'),
      ...settings,
    }
    const lines = Object.entries(all).map(([key, value]) => `${key}=${value}`)
    await writeFile(this.#config(id), `${lines.join('\n')}\n`)
    await java(formatArguments(this.#jars, clusterId, this.#config(id)), folder).ended
  }

  async start(id: number): Promise<void> {
    const node = java(brokerArguments(this.#jars, this.#config(id), this.#heap), this.#folder(id))
    let fault: Error | undefined
    node.ended.then(
      () => {
        fault = new Error(`Node ${id} of ${this.name} ended before it answered`)
      },
      (error: Error) => {
        fault = error
      },
    )
    this.#nodes.set(id, node)
    const client = new ClusterClient(this.ports, 2000)
    try {
      await until(
        async () => {
          if (fault !== undefined) return true
          return (await client.controller(id)) > 0
        },
        `node ${id} of ${this.name} to answer`,
        120_000,
        100,
      )
    } finally {
      client.close()
    }
    if (fault !== undefined) throw fault
  }

  signal(id: number, signal: NodeJS.Signals): void {
    this.#nodes.get(id)?.child.kill(signal)
  }

  async ended(id: number): Promise<void> {
    await this.#nodes.get(id)?.ended.catch(() => undefined)
  }

  pid(id: number): number {
    return this.#nodes.get(id)?.child.pid ?? 0
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const { child } of this.#nodes.values()) child.kill('SIGKILL')
    await Promise.all(nodeIds.map((id) => this.ended(id)))
  }

  #folder(id: number): string {
    return join(this.#directory, `kafka-${id}`)
  }

  #config(id: number): string {
    return join(this.#folder(id), 'server.properties')
  }
}
