import { RookeryError } from '../base/index.ts'

/** A frame's length is out of range: the peer doesn't speak this protocol, or asks for more than is allowed. */
export class FrameError extends RookeryError {
  readonly code = 'FRAME_INVALID'
  /** As received. */
  readonly length: number

  constructor(length: number, maxFrameBytes: number) {
    super(`Frame length ${length} is not between 0 and socket.request.max.bytes=${maxFrameBytes}`)
    this.length = length
  }
}

/** An outbound request got no answer: the connection failed or closed, the time was up, or the answer made no sense. */
export class KafkaClientError extends RookeryError {
  readonly code = 'KAFKA_CLIENT_FAILED'
}
