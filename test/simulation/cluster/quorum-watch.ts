import type { Uuid } from '../../../src/base/index.ts'
import type { Membership, RaftNode, RaftState } from '../../../src/raft/index.ts'
import { PropertyViolation } from '../checkers/checker.ts'
import { nodeIdOf } from './world.ts'

type Raft = Pick<RaftNode, 'state'>

interface Member {
  readonly node: string
  readonly directoryId: Uuid
  /** Undefined while its process is down. */
  raft: Raft | undefined
  /** Of its log, as it was last seen. */
  lastIndex: number
  /** As it was before the last event. */
  membership: Membership
}

/**
 * Looks after each event at the logs of all controllers: what a leader takes for committed is in the logs of a majority of those who
 * vote, each with the disk that has the vote. A disk that was wiped has nothing.
 */
export class QuorumWatch {
  readonly #members = new Map<string, Member>()
  #committed = 0

  /** The log of a node was opened. */
  onRaft(node: string, raft: Raft, directoryId: Uuid): void {
    const { lastIndex, membership } = raft.state
    this.#members.set(keyOf(nodeIdOf(node), directoryId), { node, directoryId, raft, lastIndex, membership })
  }

  /** Its process ended. */
  onEnded(node: string): void {
    for (const member of this.#members.values()) if (member.node === node) member.raft = undefined
  }

  onWiped(node: string): void {
    for (const [key, member] of this.#members) if (member.node === node) this.#members.delete(key)
  }

  /** `only`: the one node in which something may have changed; undefined when that can't be said. Throws `PropertyViolation`. */
  afterEvent(only: string | undefined): void {
    const states: [Member, RaftState][] = []
    for (const member of this.#members.values()) {
      if (member.raft === undefined || (only !== undefined && member.node !== only)) continue
      const { state } = member.raft
      member.lastIndex = state.lastIndex
      states.push([member, state])
    }
    for (const [member, { role, commitIndex, membership }] of states) {
      if (role === 'leader' && commitIndex > this.#committed) {
        this.#committed = commitIndex
        // A change of voters may have been begun in the very event in which the entries before it were committed.
        if (!this.#isBacked(commitIndex, membership) && !this.#isBacked(commitIndex, member.membership)) {
          const voters = membership.voters.map(({ id, directoryId }) => {
            return `${id} ${this.#members.get(keyOf(id, directoryId))?.lastIndex ?? 'with nothing'}`
          })
          throw new PropertyViolation(
            'a majority has what is committed',
            `${member.node} takes entry ${commitIndex} for committed; the voters have come to: ${voters.join(', ')}`,
          )
        }
      }
      member.membership = membership
    }
  }

  #isBacked(index: number, { voters }: Membership): boolean {
    const having = voters.filter(({ id, directoryId }) => {
      return (this.#members.get(keyOf(id, directoryId))?.lastIndex ?? 0) >= index
    })
    return having.length * 2 > voters.length
  }
}

function keyOf(id: number, directoryId: Uuid): string {
  return `${id}/${directoryId}`
}
