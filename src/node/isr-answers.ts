import type { AlterPartitionResult, Coordination, IsrChangeRefusal, IsrChangeResult } from '../coordination/index.ts'
import type { AskForIsrs, IsrAnswer } from '../replication/index.ts'

/** What a leader makes of the controller's refusal. */
const meanings: Readonly<Record<IsrChangeRefusal, 'outdated' | 'refused' | 'retry'>> = {
  'not-controller': 'retry',
  'unknown-topic-id': 'outdated',
  'unknown-partition': 'outdated',
  'fenced-leader-epoch': 'outdated',
  'invalid-update-version': 'outdated',
  'new-leader-elected': 'outdated',
  'invalid-request': 'refused',
  'ineligible-replica': 'refused',
}

/** The way of wanted ISRs to the controller. */
export function askForIsrs(coordination: Coordination): AskForIsrs {
  return async (changes) => {
    const result: AlterPartitionResult = await coordination.alterPartitions(
      changes.map((change) => ({ ...change, leaderRecoveryState: 'recovered' })),
    )
    // This run isn't registered (any more): the lifecycle registers it again.
    if (!result.ok) return changes.map(() => 'retry' as const)
    return result.results.map(answerOf)
  }
}

function answerOf(result: IsrChangeResult): IsrAnswer | 'retry' {
  if (result.ok) return { ok: true, isr: result.isr, partitionEpoch: result.partitionEpoch }
  const meaning = meanings[result.reason]
  return meaning === 'retry' ? meaning : { ok: false, reason: meaning }
}
