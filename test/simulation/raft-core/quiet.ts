import type { Uuid } from '../../../src/base/index.ts'
import {
  defaultRaftConfig,
  type HardState,
  type LogIndex,
  MemoryLog,
  type Message,
  type NodeId,
  RaftCore,
  RaftLog,
  type Ready,
  type Term,
} from '../../../src/raft/index.ts'
import { SeededRandom } from './random.ts'

const ticksPerSecond = 20

/** One member whose disk is never slow and whose messages all arrive, within a tick or in the next one. */
class QuietNode {
  readonly core: RaftCore
  readonly #durable: MemoryLog

  constructor(id: number, voterIds: readonly number[], random: SeededRandom) {
    const voters = voterIds.map((voter) => ({ id: voter as NodeId, directoryId: `disk${voter}` as Uuid }))
    const term = 0 as Term
    const index = 0 as LogIndex
    this.#durable = new MemoryLog({ index, term, membership: { voters }, data: new Uint8Array(0) })
    const hardState: HardState = { term, votedFor: null, votedDirectoryId: null, commitIndex: index }
    this.core = new RaftCore({
      id: id as NodeId,
      directoryId: `disk${id}` as Uuid,
      config: defaultRaftConfig,
      log: new RaftLog(this.#durable, index),
      hardState,
      random,
    })
    this.core.setContacts([1, 2, 3] as NodeId[])
  }

  settle(send: (message: Message) => void): void {
    for (let ready = this.core.ready(); ready !== undefined; ready = this.core.ready()) this.#finish(ready, send)
  }

  #finish(ready: Ready, send: (message: Message) => void): void {
    this.#durable.append(ready.entriesToPersist)
    for (const message of ready.messages) send(message)
    this.core.advance()
  }
}

/** Virtual time without a fault: an entry each second, ticks of the nodes in any order. */
export function runQuietly({ hours, seed }: { hours: number; seed: number }) {
  const random = new SeededRandom(seed)
  const nodes = [1, 2, 3, 4].map((id) => new QuietNode(id, id === 4 ? [] : [1, 2, 3], random))
  const leaders = new Set<string>()
  let underWay: Message[] = []
  const send = (message: Message): void => {
    underWay.push(message)
  }
  for (let tick = 0; tick < hours * 3600 * ticksPerSecond; tick++) {
    const first = random.int(nodes.length)
    for (let i = 0; i < nodes.length; i++) {
      const node = nodes[(first + i) % nodes.length]!
      node.core.tick()
      if (node.core.role === 'leader') {
        leaders.add(`${node.core.id} in ${node.core.term}`)
        if (tick % ticksPerSecond === 0) node.core.propose([{ type: 'data', data: new Uint8Array(8) }])
      }
      node.settle(send)
      while (underWay.length > 0 && random.chance(0.9)) {
        const messages = underWay
        underWay = []
        for (const message of messages) nodes[message.to - 1]!.core.step(message)
        for (const each of nodes) each.settle(send)
      }
    }
  }
  const leader = nodes.find(({ core }) => core.role === 'leader')!.core
  const { commitIndex, term } = leader
  return { leaders: leaders.size, term, commitIndex, observerIndex: nodes[3]!.core.commitIndex }
}
