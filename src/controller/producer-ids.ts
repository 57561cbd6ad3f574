import { assert, type ProducerId } from '../base/index.ts'
import type { MetadataImage } from '../metadata/index.ts'
import { registeredRun } from './brokers.ts'
import type { Decision } from './decision.ts'
import type { BrokerRun, ProducerIdsResult } from './requests.ts'

/** Ids that a broker takes at once: one entry of the metadata log for that many new producers. */
const producerIdBlockSize = 1000

/** Gives the next block to a run of a broker; what a run doesn't use is never given again. */
export function allocateProducerIds(image: MetadataImage, run: BrokerRun): Decision<ProducerIdsResult> {
  if (registeredRun(image, run) === undefined) {
    return { records: [], response: { ok: false, reason: 'stale-broker-epoch' } }
  }
  const firstProducerId = image.nextProducerId
  const nextProducerId = (firstProducerId + producerIdBlockSize) as ProducerId
  assert(Number.isSafeInteger(nextProducerId), 'producer ids stay below 2^53')
  const { brokerId, brokerEpoch } = run
  return {
    records: [{ type: 'ProducerIds', brokerId, brokerEpoch, nextProducerId }],
    response: { ok: true, firstProducerId, count: producerIdBlockSize },
  }
}
