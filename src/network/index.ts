/**
 * network: Kafka connections, both ways. Carries frames and knows no API.
 *
 *   kafka-server.ts      `KafkaServer`: listeners, the broker-wide memory limits, idle and stalled peers, closing
 *   connection.ts        one accepted connection: which request may begin, whose answer is next
 *   connection-limits.ts how many there may be, in all and of one address
 *   request-handler.ts   `RequestHandler`: what `api/` implements to have requests answered
 *   frame-reader.ts      bytes to frames
 *   frame-pool.ts        memory that frames are collected in
 *   foreign-protocol.ts  names TLS and HTTP that were sent to a Kafka port
 *   memory-budget.ts     bytes held over all connections
 *   turns.ts             in which turn of the event loop a connection goes on
 *   probe.ts             metrics
 *   kafka-client.ts      `KafkaClient`: an outbound connection
 *
 * A frame is an int32 length and that many bytes. Everything runs on the event loop.
 *
 * Invariants:
 * - Answers leave a connection in the order of its requests, whichever is ready first; those that are ready together
 *   leave in one write.
 * - Requests of one connection begin one after the other, each when the one before was answered, as in Kafka; only
 *   those for which the handler allows it overlap (appends do, so that one sync covers many of them).
 * - What a peer claims costs nothing: memory is taken for bytes that arrived, and counted against one limit for all
 *   connections. A limit per connection would be none, with enough connections.
 * - A request that is whole can always finish: the limits stop reading and beginning, never answering.
 * - Nothing that a peer sends reaches further than its own connection.
 */
export type { ConnectionLimits } from './connection-limits.ts'
export { FrameError, KafkaClientError } from './errors.ts'
export { KafkaClient, type KafkaClientOptions } from './kafka-client.ts'
export { KafkaServer, type KafkaServerOptions, type ServerStatistics } from './kafka-server.ts'
export type { Answer, CloseAnswer, ConnectionFacts, RequestHandler, ResponseLoan } from './request-handler.ts'
