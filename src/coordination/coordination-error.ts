import { RookeryError } from '../base/index.ts'

export type CoordinationFailure =
  /** No active controller, or no quorum, within the time given. What was asked for may or may not happen yet. */
  | 'timed-out'
  /** The controller lost its leadership after it decided: what was asked for may or may not have happened. */
  | 'outcome-unknown'
  /** More requests wait at the controller than may. Nothing was decided. */
  | 'overloaded'
  /** Another run of the same broker id is alive. */
  | 'duplicate-registration'
  /** This broker can't be part of the cluster: it is of another, or lacks a feature that is in use. */
  | 'registration-refused'
  /** The controller doesn't know this run of the broker, which registers again. */
  | 'not-registered'
  /** The metadata on disk is another cluster's. */
  | 'wrong-cluster'
  /** This node stops, or its storage failed. */
  | 'stopped'

/** The cluster could not be asked, or didn't answer. An answer of the controller, whichever, is a value. */
export class CoordinationError extends RookeryError {
  override readonly code = 'COORDINATION_FAILED'
  readonly reason: CoordinationFailure

  constructor(reason: CoordinationFailure, message: string, options?: { cause?: unknown }) {
    super(message, options)
    this.reason = reason
  }
}
