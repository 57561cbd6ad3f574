import {
  decodeMembership,
  type Entry,
  type LogIndex,
  type Membership,
  RaftLog,
  type Term,
} from '../../../src/raft/index.ts'
import type { Mutation } from './simulator.ts'

class TruncatesMatchingSuffix extends RaftLog {
  override maybeAppend(prevIndex: LogIndex, prevTerm: Term, entries: readonly Entry[]): boolean {
    if (!this.has(prevIndex, prevTerm)) return false
    const uncommitted = entries.filter((entry) => entry.index > this.commitIndex)
    if (uncommitted.length > 0) this.append(uncommitted)
    return true
  }
}

class CommitsOldTerms extends RaftLog {
  override maybeCommit(index: LogIndex): boolean {
    if (index <= this.commitIndex) return false
    this.commitTo(index)
    return true
  }
}

class VotesForShorterLogs extends RaftLog {
  override isUpToDate(): boolean {
    return true
  }
}

class FollowsCommittedMembership extends RaftLog {
  override get membership(): Membership {
    for (let index = this.commitIndex; index >= this.firstIndex; index--) {
      const { type, data } = this.entries(index, index as LogIndex, 0)[0]!
      if (type === 'config') return decodeMembership(data)
    }
    return this.snapshot.membership
  }
}

class KeepsReplacedMembership extends RaftLog {
  #last: { readonly membership: Membership; readonly index: LogIndex } | undefined

  override get membership(): Membership {
    if (this.#last === undefined || super.membershipIndex > this.#last.index) {
      this.#last = { membership: super.membership, index: super.membershipIndex }
    }
    return this.#last.membership
  }
}

class ForgetsChangeUnderWay extends RaftLog {
  override get membershipIndex(): LogIndex {
    return 0 as LogIndex
  }
}

class TrustsWhatWasCommittedBefore extends RaftLog {
  override has(index: LogIndex, term: Term): boolean {
    return index === this.commitIndex || super.has(index, term)
  }
}

/** Bugs that real implementations had, put in from outside. */
export const mutations: Readonly<Record<string, () => Mutation>> = {
  'an entry is committed without a quorum': () => ({
    onSend(core, message) {
      if (message.type !== 'append' || core.role !== 'leader' || core.term !== message.term) return
      const index = (message.prevIndex + message.entries.length) as LogIndex
      core.step({
        type: 'appendAnswer',
        from: message.to,
        fromDirectoryId: core.directoryId,
        to: message.from,
        term: message.term,
        index,
        rejection: null,
      })
    },
  }),
  'messages leave before the write they depend on is durable': () => ({ sendsBeforeSync: true }),
  'a vote is not written': () => ({ alterHardState: (hardState) => ({ ...hardState, votedFor: null }) }),
  'the term is not written': () => ({
    alterHardState: (hardState) => ({ ...hardState, term: 0 as Term, votedFor: null }),
  }),
  'an append cuts off the matching entries after it': () => ({
    makeLog: (durable, commitIndex) => new TruncatesMatchingSuffix(durable, commitIndex),
  }),
  "an earlier term's entry is committed by counting": () => ({
    needs: 'elections',
    makeLog: (durable, commitIndex) => new CommitsOldTerms(durable, commitIndex),
  }),
  'a vote goes to a shorter log': () => ({
    makeLog: (durable, commitIndex) => new VotesForShorterLogs(durable, commitIndex),
  }),
  'a heartbeat commits what was not verified': () => {
    const commitOfTerm = new Map<Term, LogIndex>()
    return {
      onSend(core, message) {
        if (core.role === 'leader') commitOfTerm.set(message.term, core.commitIndex)
      },
      onStep(log, message) {
        const commitIndex = commitOfTerm.get(message.term)
        if (message.type !== 'heartbeat' || commitIndex === undefined) return
        log.commitTo(Math.min(commitIndex, log.lastIndex) as LogIndex)
      },
    }
  },
  'a change of voters counts only when it is committed': () => ({
    needs: 'changes',
    makeLog: (durable, commitIndex) => new FollowsCommittedMembership(durable, commitIndex),
  }),
  'a change of voters stays when its entry is replaced': () => ({
    needs: 'changes',
    makeLog: (durable, commitIndex) => new KeepsReplacedMembership(durable, commitIndex),
  }),
  'a change of voters does not wait for the one before': () => ({
    needs: 'changes',
    makeLog: (durable, commitIndex) => new ForgetsChangeUnderWay(durable, commitIndex),
  }),
  "a leader reads and changes voters before its term's first entry is committed": () => ({
    makeLog: (durable, commitIndex) => new TrustsWhatWasCommittedBefore(durable, commitIndex),
  }),
  'a read is answered without a round of heartbeats': () => ({ needs: 'reads', confirmsReadsAtOnce: true }),
  'an answer to an earlier heartbeat confirms a later read': () => ({
    alterMessage(_core, message) {
      return message.type === 'heartbeatAnswer' ? { ...message, readRound: Number.MAX_SAFE_INTEGER } : message
    },
  }),
  'a wiped voter goes on as the voter it was': () => ({ needs: 'changes', keepsDirectoryId: true }),
  'votes and copies count by node id, whatever the disk': () => ({
    needs: 'changes',
    alterMessage(core, message) {
      const voter = core.membership.voters.find(({ id }) => id === message.from)
      return voter === undefined ? message : { ...message, fromDirectoryId: voter.directoryId }
    },
  }),
  "an observer's copy is counted": () => ({
    alterMessage(core, message) {
      const { voters } = core.membership
      if (message.type !== 'appendAnswer' || message.rejection !== null) return message
      if (core.role !== 'leader' || voters.some(({ id }) => id === message.from)) return message
      const counted = voters.find(({ id }) => id !== core.id)
      return counted === undefined ? message : { ...message, from: counted.id, fromDirectoryId: counted.directoryId }
    },
  }),
  'what is left of another snapshot is kept': () => ({ keepsStaleChunks: true }),
}
