import { type Entry, type LogIndex, RaftLog, type Term } from '../../../src/raft/index.ts'
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
}
