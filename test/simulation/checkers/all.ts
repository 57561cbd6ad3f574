import type { HistoryEvent } from '../node/history.ts'
import { AcknowledgedRecords } from './acknowledged-records.ts'
import { Assignments } from './assignments.ts'
import type { Checker } from './checker.ts'
import { CommittedOffsets } from './committed-offsets.ts'
import { DeletedRecords } from './deleted-records.ts'
import { HighWatermark } from './high-watermark.ts'
import { LastOfEachKey } from './last-of-each-key.ts'
import { LeaderEpochs } from './leader-epochs.ts'
import { NewTopics } from './new-topics.ts'
import { OrderAndUniqueness } from './order-and-uniqueness.ts'
import { ProducerIds } from './producer-ids.ts'
import { RefusedRecords } from './refused-records.ts'
import { StableReads } from './stable-reads.ts'
import { Topics } from './topics.ts'

/** Every property, for one run. */
export function allCheckers(): readonly Checker[] {
  return [
    new AcknowledgedRecords(),
    new LastOfEachKey(),
    new OrderAndUniqueness(),
    new RefusedRecords(),
    new StableReads(),
    new HighWatermark(),
    new Topics(),
    new ProducerIds(),
    new LeaderEpochs(),
    new CommittedOffsets(),
    new Assignments(),
  ]
}

/** Every property that clients of a cluster see. `isSettled`: no node is behind the others. */
export function clusterCheckers(isSettled: () => boolean): readonly Checker[] {
  return [
    new ReplicatedOnly(new AcknowledgedRecords()),
    new ReplicatedOnly(new LastOfEachKey()),
    new DeletedRecords(),
    new NewTopics(),
    new OrderAndUniqueness(),
    new RefusedRecords(),
    new StableReads({ leadersDiffer: true }),
    new HighWatermark(),
    new ProducerIds(),
    new CommittedOffsets(isSettled),
    new Assignments(),
  ]
}

/** What only the leader acknowledged may go with the leader. */
class ReplicatedOnly implements Checker {
  readonly #checker: Checker

  constructor(checker: Checker) {
    this.#checker = checker
  }

  on(event: HistoryEvent, now: number): void {
    if (event.kind !== 'batch-acked' || event.batch.acks === -1) this.#checker.on(event, now)
  }
}
