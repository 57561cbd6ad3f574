import { randomUUID } from 'node:crypto'
import { mkdir } from 'node:fs/promises'
import type { BrokerId, Uuid } from '../../../src/base/index.ts'
import { parseConfig } from '../../../src/config/index.ts'
import type { MetadataQuorum } from '../../../src/coordination/index.ts'
import { type MetadataDelta, type MetadataImage, supportedFeatures } from '../../../src/metadata/index.ts'
import {
  type ControlConfig,
  type ControlPlane,
  controlConfigOf,
  LocalControlPlane,
} from '../../../src/node/control-plane.ts'
import { ControlThread } from '../../../src/node/control-thread.ts'
import { raftStorageOnDisk } from '../../../src/node/raft-storage.ts'
import { createRealPlatform, createRealThreads, type Thread, type Threads } from '../../../src/platform/index.ts'
import type { LogFields, Logger } from '../../../src/telemetry/index.ts'
import { until } from '../../support/condition.ts'

export const localId = 1 as BrokerId
export const timeoutMs = 10_000

export interface Line {
  readonly level: string
  readonly fields: LogFields
  readonly message: string
}

/** A logger, and what it was told. */
export function recorder(lines: Line[], bindings: LogFields = {}): Logger {
  const write = (level: string) => (fields: LogFields, message: string) => {
    lines.push({ level, fields: { ...bindings, ...fields }, message })
  }
  return {
    child: (fields) => recorder(lines, { ...bindings, ...fields }),
    debug: write('debug'),
    info: write('info'),
    warn: write('warn'),
    error: write('error'),
  }
}

export interface PlaneKind {
  readonly name: string
  readonly create: (config: ControlConfig, logger: Logger) => ControlPlane
}

const incarnationId = 'AAAAAAAAAAAAAAAAAAAAAQ' as Uuid

export const planeKinds: readonly PlaneKind[] = [
  {
    name: 'on the event loop',
    create: (config, logger) =>
      new LocalControlPlane({
        config,
        platform: createRealPlatform(),
        logger,
        incarnationId,
        openRaftStorage: raftStorageOnDisk,
        scheduleSync: (work) => work(),
      }),
  },
  {
    name: 'in a thread',
    create: (config, logger) => new ControlThread({ config, threads: createRealThreads(), logger, incarnationId }),
  },
]

/** Threads that a test can look at, and stop behind the back of who started them. */
export function watchedThreads(): Threads & { readonly started: Thread[] } {
  const threads = createRealThreads()
  const started: Thread[] = []
  return {
    started,
    start: (program, input) => {
      const thread = threads.start(program, input)
      started.push(thread)
      return thread
    },
  }
}

export function configOf(overrides: Readonly<Record<string, string | number>>): ControlConfig {
  return controlConfigOf(parseConfig({ overrides: Object.entries(overrides).map(([key, value]) => `${key}=${value}`) }))
}

export interface Step {
  readonly delta: MetadataDelta
  readonly image: MetadataImage
}

/** A control plane with its quorum, and what it told. */
export class OpenPlane implements AsyncDisposable {
  readonly plane: ControlPlane
  readonly quorum: MetadataQuorum
  readonly lines: readonly Line[]
  readonly steps: Step[] = []
  readonly faults: Error[] = []
  changes = 0
  /** Called with each step. */
  onStep: (step: Step) => void = () => undefined

  /** As a node does it, up to the start of its quorum. */
  static async open(
    kind: PlaneKind,
    folder: string,
    { clusterId = 'test-cluster', ...overrides }: Readonly<Record<string, string | number>> = {},
  ): Promise<OpenPlane> {
    const lines: Line[] = []
    const plane = kind.create(configOf({ 'log.dirs': folder, ...overrides }), recorder(lines))
    try {
      await mkdir(folder, { recursive: true })
      const identity = await plane.identify()
      const quorum = await plane.open({
        clusterId: identity?.clusterId ?? String(clusterId),
        metadataDirectory: folder,
        metadataDirectoryId: identity?.metadataDirectoryId ?? ('AAAAAAAAAAAAAAAAAAAAAg' as Uuid),
        areEmpty: true,
      })
      return new OpenPlane(plane, quorum, lines)
    } catch (error) {
      await plane.stop()
      throw error
    }
  }

  private constructor(plane: ControlPlane, quorum: MetadataQuorum, lines: readonly Line[]) {
    this.plane = plane
    this.quorum = quorum
    this.lines = lines
    quorum.listen({
      onStep: (delta, image) => {
        this.steps.push({ delta, image })
        this.onStep({ delta, image })
      },
      onChange: () => {
        this.changes++
      },
      onFault: (error) => this.faults.push(error),
    })
  }

  /** Its controller decides, and has begun the cluster. */
  async active(): Promise<void> {
    await until(() => this.quorum.state.isActive && this.quorum.image.clusterId !== '', 'its controller is active')
  }

  async createTopic(name: string) {
    const topic = { name, partitionCount: 1, replicationFactor: 1, configs: new Map<string, string>() }
    return await this.quorum.ask(localId, 'createTopics', { requests: [topic], validateOnly: false }, timeoutMs)
  }

  async setMaxConnections(max: number) {
    const changes = new Map([['max.connections', `${max}`]])
    const requests = [{ resourceType: 'broker', resourceName: '', changes } as const]
    return await this.quorum.ask(localId, 'alterConfigs', { requests, validateOnly: false }, timeoutMs)
  }

  async registerBroker() {
    const endpoint = { name: 'PLAINTEXT', host: 'localhost', port: 9092, securityProtocol: 'PLAINTEXT' } as const
    const registration = {
      brokerId: localId,
      incarnationId: newUuid(),
      clusterId: this.quorum.image.clusterId,
      endpoints: [endpoint],
      rack: null,
      logDirs: [],
      features: supportedFeatures,
      previousBrokerEpoch: null,
    }
    return await this.quorum.ask(localId, 'registerBroker', registration, timeoutMs)
  }

  /** Twice is harmless. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.quorum.stop()
    await this.plane.stop()
  }
}

export function newUuid(): Uuid {
  return Buffer.from(randomUUID().replaceAll('-', ''), 'hex').toString('base64url').replace(/^-/, 'A') as Uuid
}
