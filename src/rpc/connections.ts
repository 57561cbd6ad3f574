import { constants } from 'node:crypto'
import { lookup } from 'node:dns/promises'
import { performServerHandshake } from 'node:http2'
import { createServer, isIP, type Server, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { createServer as createTlsServer, type TLSSocket } from 'node:tls'
import { messageOf } from '../base/index.ts'
import type { RpcListenOptions } from './ports.ts'
import { subjectOf, type TlsIdentity } from './tls.ts'

export interface ConnectionOptions {
  readonly at: RpcListenOptions
  /** Undefined: without TLS. */
  readonly tls: TlsIdentity | undefined
  /** A connection that may say what it wants, in HTTP/2: the socket itself, or what is inside its TLS. */
  readonly onConnection: (socket: Duplex) => void
  readonly onRefused: (remote: string, reason: string) => void
}

/** How long a caller may take to say its first bytes, and again to shake hands. */
const greetingTimeoutMs = 5000
/** Its first byte. */
const tlsHandshake = 0x16
/** The first byte of HTTP/2. */
const http2Preface = 0x50
const portAttempts = 5
/** The codes of a system that has not the address. */
const missingAddress: ReadonlySet<string | undefined> = new Set(['EADDRNOTAVAIL', 'EAFNOSUPPORT', 'EINVAL'])
/** gRPC's FAILED_PRECONDITION. */
const refusedStatus = '9'

/**
 * The listening end of connections between nodes. Who may not connect is told why, in HTTP/2, as far as it can be told: the reason
 * is then in the log of both. gRPC's own listener would close the connection, and neither side could say more than that.
 */
export class Connections {
  readonly #options: ConnectionOptions
  readonly #servers: Server[] = []
  readonly #open = new Set<Socket>()

  constructor(options: ConnectionOptions) {
    this.#options = options
  }

  /** The port, on each address of the host that this machine has. Rejects with the system's error. */
  async listen(): Promise<number> {
    const { host, port } = this.#options.at
    const found = isIP(host) !== 0 ? [host] : (await lookup(host, { all: true })).map(({ address }) => address)
    const addresses = [...new Set(found)]
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#listenAtAll(addresses, port)
      } catch (error) {
        this.close()
        // A free port of the first address may be taken at the second.
        const isTaken = codeOf(error) === 'EADDRINUSE'
        if (!isTaken || port !== 0 || attempt === portAttempts) throw error
      }
    }
  }

  /** With every connection. */
  close(): void {
    for (const server of this.#servers.splice(0)) server.close()
    for (const socket of this.#open) socket.destroy()
  }

  async #listenAtAll(addresses: readonly string[], port: number): Promise<number> {
    let bound = port
    let missing: unknown
    for (const address of addresses) {
      try {
        bound = await this.#listenAt(address, bound)
      } catch (error) {
        if (!missingAddress.has(codeOf(error))) throw error
        missing = error // `localhost` may have an address that this machine has not
      }
    }
    if (this.#servers.length > 0) return bound
    if (addresses[0] === '::') return await this.#listenAt('0.0.0.0', port) // a machine without IPv6
    throw missing
  }

  #listenAt(host: string, port: number): Promise<number> {
    const server = createServer({ noDelay: true }, (socket) => this.#accept(socket))
    return new Promise((resolve, reject) => {
      server.once('error', reject)
      server.listen({ host, port }, () => {
        server.off('error', reject)
        server.on('error', () => undefined) // of one connection that could not be accepted: the caller tries again
        this.#servers.push(server)
        const address = server.address()
        resolve(typeof address === 'object' && address !== null ? address.port : port)
      })
    })
  }

  #accept(socket: Socket): void {
    const { tls, onConnection } = this.#options
    const remote = `${socket.remoteAddress}:${socket.remotePort}`
    this.#open.add(socket)
    socket.on('close', () => this.#open.delete(socket))
    socket.on('error', () => undefined) // its end says it all
    const timer = setTimeout(() => socket.destroy(), greetingTimeoutMs)
    socket.once('close', () => clearTimeout(timer))
    socket.once('readable', () => {
      clearTimeout(timer)
      const first = socket.read(1) as Buffer | null
      if (first === null) return void socket.destroy() // it ended without a word
      socket.unshift(first)
      const speaksTls = first[0] === tlsHandshake
      if (speaksTls && tls !== undefined) return this.#shakeHands(socket, tls, remote)
      if (!speaksTls && tls === undefined) return onConnection(socket)
      if (speaksTls) {
        this.#options.onRefused(remote, 'It speaks TLS, and this listener does not')
        // Anything that is no TLS tells the caller so; an end alone could mean much else.
        socket.resume().end('HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n')
        return void socket.setTimeout(greetingTimeoutMs, () => socket.destroy())
      }
      const reason = 'It speaks without TLS, and this listener has the protocol SSL'
      if (first[0] === http2Preface) this.#refuse(socket, remote, reason)
      else {
        this.#options.onRefused(remote, reason)
        socket.destroy()
      }
    })
  }

  /** With a server for each connection: the events of a shared one no longer know of which connection a failed handshake was. */
  #shakeHands(socket: Socket, { context, clientAuth }: TlsIdentity, remote: string): void {
    const server = createTlsServer({
      ...context,
      ALPNProtocols: ['h2'],
      handshakeTimeout: greetingTimeoutMs,
      requestCert: clientAuth !== 'none',
      rejectUnauthorized: false, // below, in words
      secureOptions: constants.SSL_OP_NO_TICKET, // a session that is taken up again shows no certificate
    })
    server.on('tlsClientError', (error: NodeJS.ErrnoException) => {
      socket.destroy()
      this.#options.onRefused(remote, handshakeFailure(error))
    })
    server.on('secureConnection', (secured) => {
      secured.on('error', () => undefined) // its end says it all
      const reason = refusalOf(secured, clientAuth)
      if (reason === undefined) this.#options.onConnection(secured)
      else this.#refuse(secured, remote, reason)
    })
    server.emit('connection', socket)
  }

  /** Answers whatever is asked with the reason, until the caller goes or a while has passed. */
  #refuse(socket: Socket, remote: string, reason: string): void {
    this.#options.onRefused(remote, reason)
    const session = performServerHandshake(socket)
    const timer = setTimeout(() => session.destroy(), greetingTimeoutMs)
    session.on('close', () => clearTimeout(timer))
    session.on('error', () => undefined)
    session.on('stream', (stream) => {
      stream.on('error', () => undefined)
      const status = {
        'grpc-status': refusedStatus,
        'grpc-message': encodeURI(`The peer refuses this node: ${reason}`),
      }
      stream.respond({ ':status': 200, 'content-type': 'application/grpc+proto', ...status }, { endStream: true })
      session.close()
    })
  }
}

/** Why a caller may not go on; undefined when it may. */
function refusalOf(socket: TLSSocket, clientAuth: TlsIdentity['clientAuth']): string | undefined {
  if (clientAuth === 'none') return undefined
  const certificate = socket.getPeerX509Certificate()
  if (certificate === undefined) {
    return clientAuth === 'required' ? 'It shows no certificate, and ssl.client.auth=required asks for one' : undefined
  }
  if (socket.authorized) return undefined
  const code = String(socket.authorizationError)
  return `Its certificate, ${subjectOf(certificate)}, is not accepted: ${verdicts[code] ?? code}`
}

/** The codes of OpenSSL that are to be expected, in words. */
const verdicts: Readonly<Record<string, string>> = {
  CERT_HAS_EXPIRED: 'it has expired',
  CERT_NOT_YET_VALID: 'it is not valid yet',
  DEPTH_ZERO_SELF_SIGNED_CERT: 'no CA of the truststore made it',
  SELF_SIGNED_CERT_IN_CHAIN: 'no CA of the truststore made it',
  UNABLE_TO_GET_ISSUER_CERT: 'no CA of the truststore made it',
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: 'no CA of the truststore made it',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: 'no CA of the truststore made it',
  INVALID_PURPOSE: 'it is not for clients (extendedKeyUsage=clientAuth)',
}

function handshakeFailure(error: NodeJS.ErrnoException): string {
  if (error.code === 'ECONNRESET') {
    return 'It ended the handshake: maybe it does not trust the certificate of this node, or misses its name in it'
  }
  return `No TLS with it: ${tlsText(error)}`
}

function codeOf(error: unknown): string | undefined {
  return (error as NodeJS.ErrnoException).code
}

/** OpenSSL's text without its address in memory and the line of its source. */
export function tlsText(error: unknown): string {
  return messageOf(error)
    .replace(/[0-9A-F]+:error:[0-9A-F]+:([^:]*):[^:]*:([^:]*):[^\n]*\n?/g, '$1: $2')
    .trim()
}
