/** The first four bytes of HTTP requests, as the int32 that a frame would begin with; 'PRI ' opens HTTP/2. */
const httpBeginnings: ReadonlySet<number> = new Set(
  ['GET ', 'HEAD', 'POST', 'PUT ', 'DELE', 'PATC', 'OPTI', 'CONN', 'TRAC', 'PRI '].map((text) =>
    Buffer.from(text, 'latin1').readInt32BE(0),
  ),
)

/** What else than Kafka's protocol a connection's first four bytes are; undefined when they may be a frame's length. */
export function foreignProtocol(firstInt32: number): 'TLS' | 'HTTP' | undefined {
  // A TLS record: handshake (0x16), version 3.x. As a length it would be 369 MB, above any sensible limit.
  if (firstInt32 >>> 16 === 0x1603) return 'TLS'
  return httpBeginnings.has(firstInt32) ? 'HTTP' : undefined
}

/** Tells a browser or a health check what this port is. */
export function httpRefusal(): Buffer {
  const body = 'This port speaks the Kafka protocol, not HTTP: give it to a Kafka client as bootstrap server.\n'
  const head = [
    'HTTP/1.1 400 Bad Request',
    'Content-Type: text/plain; charset=utf-8',
    `Content-Length: ${Buffer.byteLength(body)}`,
    'Connection: close',
  ]
  return Buffer.from(`${head.join('\r\n')}\r\n\r\n${body}`)
}
