import { readMetaProperties } from '../../../src/log/index.ts'
import { apis, type DescribeQuorumResponse, ErrorCode } from '../../../src/protocol/index.ts'
import { Client } from '../node/client.ts'
import type { Server } from '../node/server.ts'
import type { ClusterWorld } from './world.ts'
import { controllerPort, dataFolder, nodeIdOf } from './world.ts'

type Quorum = DescribeQuorumResponse['topics'][number]['partitions'][number]

const lookMs = 400

/**
 * Whoever looks after the quorum. It is told which controllers are to vote, and makes it so: takes votes, also those of disks that
 * are gone, and gives them to the disk that a controller has now. Whatever fails is tried again, as people do.
 */
export class Operator {
  readonly #client: Client
  readonly #controllers: readonly Server[]
  readonly #voteless = new Set<Server>()
  /** Who votes is as it should be, as far as the last look showed. */
  #isSettled = false
  /** Counts what it is told: a look that was under way meanwhile settles nothing. */
  #orders = 0
  /** Votes that were taken or given. */
  changes = 0

  constructor(world: ClusterWorld, controllers: readonly Server[]) {
    this.#client = new Client(world, 'operator')
    this.#controllers = controllers
  }

  /** Everybody votes who should, `server` perhaps not. */
  isSettledBut(server: Server): boolean {
    return this.#isSettled && [...this.#voteless].every((each) => each === server)
  }

  looksAfter(server: Server): boolean {
    return this.#controllers.includes(server)
  }

  takeVote(controller: Server): void {
    this.#voteless.add(controller)
    this.onWiped()
  }

  giveVote(controller: Server): void {
    this.#voteless.delete(controller)
    this.onWiped()
  }

  /** Some controller has another disk. */
  onWiped(): void {
    this.#orders++
    this.#isSettled = false
  }

  async run(): Promise<void> {
    const { world } = this.#client
    while (!world.isDraining || !this.#isSettled || this.#voteless.size > 0) {
      if (this.#isSettled) await this.#client.sleep(lookMs)
      else {
        await this.#client.think(lookMs)
        await this.#look()
      }
    }
  }

  async #look(): Promise<void> {
    const orders = this.#orders
    const quorum = await this.#describe()
    if (quorum === undefined) return
    let isSettled = true
    for (const controller of this.#controllers) {
      const id = nodeIdOf(controller.host.name)
      const voter = quorum.currentVoters.find(({ replicaId }) => replicaId === id)
      const directoryId = await directoryOf(controller)
      const isWanted = !this.#voteless.has(controller)
      if (voter !== undefined && voter.replicaDirectoryId === directoryId && isWanted) continue
      if (voter === undefined && !isWanted) continue
      isSettled = false
      if (voter !== undefined && (directoryId !== undefined || !isWanted)) {
        await this.#remove(id, voter.replicaDirectoryId)
      } else if (directoryId !== undefined) {
        await this.#add(controller, directoryId)
      }
      break // the next look sees what came of it
    }
    if (isSettled && this.#orders === orders) this.#isSettled = true
  }

  async #describe(): Promise<Quorum | undefined> {
    const answer = await this.#client.request(apis.DescribeQuorum, 2, {
      topics: [{ topicName: '__cluster_metadata', partitions: [{ partitionIndex: 0 }] }],
    })
    const found = answer?.topics[0]?.partitions[0]
    if (found?.errorCode === ErrorCode.NONE) return found
    this.#client.onRefused('anything')
    return undefined
  }

  async #remove(voterId: number, directoryId: string): Promise<void> {
    const answer = await this.#client.request(apis.RemoveRaftVoter, 0, {
      clusterId: null,
      voterId,
      voterDirectoryId: directoryId as never,
    })
    this.#count(answer?.errorCode)
  }

  async #add({ host }: Server, directoryId: string): Promise<void> {
    const answer = await this.#client.request(apis.AddRaftVoter, 1, {
      clusterId: null,
      timeoutMs: 4000,
      voterId: nodeIdOf(host.name),
      voterDirectoryId: directoryId as never,
      listeners: [{ name: 'CONTROLLER', host: host.name, port: controllerPort }],
      ackWhenCommitted: true,
    })
    this.#count(answer?.errorCode)
  }

  #count(errorCode: number | undefined): void {
    if (errorCode === ErrorCode.NONE) this.changes++
    else this.#client.onRefused('anything')
  }
}

/** Of the folder of its metadata log; undefined while it is down or new. */
async function directoryOf({ host }: Server): Promise<string | undefined> {
  if (!host.isUp) return undefined
  return (await readMetaProperties(host.platform.files, dataFolder))?.directoryId
}
