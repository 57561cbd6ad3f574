import { AcknowledgedRecords } from './acknowledged-records.ts'
import { Assignments } from './assignments.ts'
import type { Checker } from './checker.ts'
import { CommittedOffsets } from './committed-offsets.ts'
import { HighWatermark } from './high-watermark.ts'
import { LastOfEachKey } from './last-of-each-key.ts'
import { LeaderEpochs } from './leader-epochs.ts'
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
