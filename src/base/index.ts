/**
 * base: what every part may use and that uses nothing: branded ids, assertions, the root of all errors, small containers.
 *
 * Row 0 of the layers. Nothing here reads a clock, draws randomness or does I/O.
 */
export { addressText, isEveryAddress } from './address.ts'
export { AssertionError, assert, unreachable } from './assert.ts'
export { type Deferred, deferred } from './deferred.ts'
export { Deque } from './deque.ts'
export { errorOf, messageOf, RookeryError } from './errors.ts'
export {
  type Brand,
  type BrokerEpoch,
  type BrokerId,
  type ControllerEpoch,
  isUuid,
  type LeaderEpoch,
  type Offset,
  type PartitionEpoch,
  type ProducerEpoch,
  type ProducerId,
  partitionName,
  type TopicPartition,
  type Uuid,
  uuidFromBytes,
  uuidToBytes,
  zeroUuid,
} from './ids.ts'
export { ownCopy } from './own-copy.ts'
export { PersistentMap, type PersistentMapEdit } from './persistent-map.ts'
