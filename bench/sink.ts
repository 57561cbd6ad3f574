import { createServer } from 'node:net'

/**
 * What loopback TCP and Node's sockets give without a broker: reads requests, looks at nothing but their lengths, and answers each with as
 * many bytes as it was told to.
 */
process.once('message', ({ answerBytes }: { readonly answerBytes: number }) => {
  const answer = Buffer.alloc(4 + answerBytes)
  answer.writeInt32BE(answerBytes, 0)
  const server = createServer({ noDelay: true, highWaterMark: 256 * 1024 }, (socket) => {
    /** Bytes of the current request that are to come; of its length, those that came. */
    let missingBytes = 0
    let lengthBytes = 0
    let length = 0
    socket.on('error', () => socket.destroy())
    socket.on('data', (chunk: Buffer) => {
      socket.cork()
      let at = 0
      while (at < chunk.length) {
        if (missingBytes === 0) {
          length = (length << 8) | chunk[at++]!
          if (++lengthBytes < 4) continue
          missingBytes = length
          length = 0
          lengthBytes = 0
        }
        const taken = Math.min(missingBytes, chunk.length - at)
        at += taken
        missingBytes -= taken
        if (missingBytes === 0) socket.write(answer)
      }
      socket.uncork()
    })
  })
  server.listen(0, '127.0.0.1', () => {
    const address = server.address()
    process.send!({ port: typeof address === 'object' && address !== null ? address.port : 0 })
  })
})
process.once('disconnect', () => process.exit())
