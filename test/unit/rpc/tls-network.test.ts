import { readFileSync } from 'node:fs'
import { connect as connectSocket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { loadGrpcNetwork, RpcError, type RpcNetwork, type TlsIdentity } from '../../../src/rpc/index.ts'
import { type Authority, createAuthority, tlsOf } from '../../support/certificates.ts'
import { until } from '../../support/condition.ts'
import { describeWithPeer } from '../../support/peers.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'

/** When every certificate of these tests was valid, or is. */
const longAgo = { validFrom: '20200101000000Z', validUntil: '20200201000000Z' }
const then = Date.UTC(2020, 0, 15)

describeWithPeer('openssl', 'nodes that talk over TLS', () => {
  let folder: Awaited<ReturnType<typeof temporaryFolder>>
  let ours: Authority
  let theirs: Authority
  let good: TlsIdentity

  beforeAll(async () => {
    folder = await temporaryFolder()
    ours = createAuthority(folder.path, 'ours')
    theirs = createAuthority(folder.path, 'theirs')
    good = await tlsOf(ours, 'good')
  })
  afterAll(() => folder[Symbol.asyncDispose]())

  /** What either end says of one call: the caller's error, '' when it was answered, and what the listener refused. */
  async function meet(
    server: TlsIdentity | undefined,
    client: TlsIdentity | undefined,
    host = '127.0.0.1',
  ): Promise<{ caller: string; listener: readonly string[] }> {
    const listener: string[] = []
    let asked = 0
    const serving: RpcNetwork = await loadGrpcNetwork(server)
    const at = await serving.listen(
      { host, port: 0 },
      {
        async call(_method, request) {
          asked++
          return request
        },
        stream: () => ({ onMessage() {}, onClose() {} }),
        onRefused: (remote, reason) => {
          expect(remote).toMatch(/^[0-9a-f.:]+:\d+$/)
          listener.push(reason)
        },
      },
    )
    const channel = (await loadGrpcNetwork(client)).connect({ host, port: at.port })
    try {
      const answer = await channel.call('Ask', Buffer.from('who?'), 60_000).then(
        () => '',
        (error: unknown) => {
          expect(error).toBeInstanceOf(RpcError)
          return `${(error as RpcError).reason}: ${(error as RpcError).message}`
        },
      )
      if (answer !== '') await until(() => listener.length > 0, 'the listener says why')
      expect(asked, answer).toBe(answer === '' ? 1 : 0)
      return { caller: answer, listener }
    } finally {
      channel.close()
      await at.close()
    }
  }

  test.each(['127.0.0.1', 'localhost'])('understand each other where both are trusted, at %s', async (host) => {
    expect(await meet(good, await tlsOf(ours, 'friend'), host)).toEqual({ caller: '', listener: [] })
  })

  test.each([['TLSv1.2'], ['TLSv1.3']] as const)('speak %s where one of them has no other', async (version) => {
    const client = await tlsOf(ours, `friend-${version}`, { versions: [version] })
    expect(await meet(good, client)).toEqual({ caller: '', listener: [] })
    const stranger = await tlsOf(ours, theirs.issue(`stranger-${version}`), { versions: [version] })
    expect((await meet(good, stranger)).caller).toContain('no CA of the truststore made it')
  })

  test('refuse who has no version of TLS that they speak', async () => {
    const server = await tlsOf(ours, 'new', { versions: ['TLSv1.3'] })
    const client = await tlsOf(ours, 'old', { versions: ['TLSv1.2'] })
    const { caller, listener } = await meet(server, client)
    expect(caller).toContain('protocol version')
    expect(listener).toEqual([expect.stringContaining('No TLS with it: ')])
  })

  test('refuse the certificate of another CA, and both say whose', async () => {
    const stranger = await tlsOf(ours, theirs.issue('stranger'))
    const { caller, listener } = await meet(good, stranger)
    const reason = 'Its certificate, CN=stranger, is not accepted: no CA of the truststore made it'
    expect(listener).toEqual([reason])
    expect(caller).toMatch(/^refused-by-peer: 127\.0\.0\.1:\d+: The peer refuses this node: /)
    expect(caller).toContain(reason)
  })

  test('do not trust a listener with the certificate of another CA', async () => {
    const stranger = await tlsOf(ours, theirs.issue('strange-listener'))
    const { caller, listener } = await meet(stranger, good)
    expect(caller).toMatch(/^unavailable: .*(unable to verify|self-signed|issuer)/)
    expect(listener).toEqual([expect.stringContaining('It ended the handshake: maybe it does not trust')])
  })

  test('refuse a certificate that has expired, on either side', async () => {
    const expired = await tlsOf(ours, ours.issue('late', longAgo), { nowMs: then })
    const asCaller = await meet(good, expired)
    expect(asCaller.listener).toEqual(['Its certificate, CN=late, is not accepted: it has expired'])
    expect(asCaller.caller).toContain('CN=late, is not accepted: it has expired')
    const asListener = await meet(expired, good)
    expect(asListener.caller).toMatch(/^unavailable: .*certificate has expired/)
    expect(asListener.listener).toEqual([expect.stringContaining('It ended the handshake')])
  })

  test('refuse a listener whose certificate has another name, unless names are not checked', async () => {
    const elsewhere = await tlsOf(ours, ours.issue('elsewhere', { names: 'DNS:elsewhere.example,IP:10.0.0.1' }))
    for (const host of ['127.0.0.1', 'localhost']) {
      const { caller, listener } = await meet(elsewhere, good, host)
      expect(caller).toMatch(/^unavailable: .*does not match certificate's altnames/)
      expect(caller).toContain(`${host}${host === 'localhost' ? '.' : ''} is not in the cert's`)
      expect(listener).toEqual([expect.stringContaining('or misses its name in it')])
    }
    const careless = await tlsOf(ours, 'careless', { checksHostNames: false })
    expect((await meet(elsewhere, careless)).caller).toBe('')
    const unknown = await tlsOf(ours, theirs.issue('unknown'))
    expect((await meet(unknown, careless)).caller, 'trust is checked all the same').not.toBe('')
  })

  test('ask for certificates as ssl.client.auth says', async () => {
    const [nobody, stranger] = [await tlsOf(ours, undefined), await tlsOf(ours, theirs.issue('someone'))]
    const [requested, none] = (['requested', 'none'] as const).map((clientAuth) => ({ ...good, clientAuth }))
    const required = await meet(good, nobody)
    expect(required.listener).toEqual(['It shows no certificate, and ssl.client.auth=required asks for one'])
    expect(required.caller).toContain('ssl.client.auth=required asks for one')
    expect((await meet(requested, nobody)).caller).toBe('')
    expect((await meet(requested, good)).caller).toBe('')
    expect((await meet(requested, stranger)).caller).toContain('no CA of the truststore made it')
    expect((await meet(none, nobody)).caller).toBe('')
    expect((await meet(none, stranger)).caller).toBe('')
  })

  test('refuse a certificate that is not for clients', async () => {
    const identity = { ...(await tlsOf(ours, 'for-both')) }
    const { keyFile, certificateFile } = ours.issue('for-servers', { purposes: 'serverAuth' })
    const context = { ...identity.context, key: readFileSync(keyFile), cert: readFileSync(certificateFile) }
    const { caller, listener } = await meet(good, { ...identity, context })
    expect(listener).toEqual([expect.stringContaining('CN=for-servers, is not accepted: it is not for clients')])
    expect(caller).toContain('is not for clients')
  })

  test('say so when only one of them speaks TLS', async () => {
    const plainCaller = await meet(good, undefined)
    expect(plainCaller.listener).toEqual(['It speaks without TLS, and this listener has the protocol SSL'])
    expect(plainCaller.caller).toContain('this listener has the protocol SSL')
    const plainListener = await meet(undefined, good)
    expect(plainListener.listener).toEqual(['It speaks TLS, and this listener does not'])
    expect(plainListener.caller).toMatch(/^unavailable: .*: No TLS there: the peer speaks without it$/)
  })

  test('never take a session up again, in which no certificate would be shown', async () => {
    const network = await loadGrpcNetwork(good)
    const service = { call: async () => Buffer.alloc(0), stream: () => ({ onMessage() {}, onClose() {} }) }
    const at = await network.listen({ host: '127.0.0.1', port: 0 }, service)
    const visit = async (session?: Buffer) => {
      const socket = connectTls({ port: at.port, ...good.context, ALPNProtocols: ['h2'], session })
      const offered: Buffer[] = []
      socket.on('session', (each: Buffer) => offered.push(each))
      socket.on('error', () => undefined)
      await new Promise<void>((resolve) => socket.once('data', () => resolve())) // its settings: after any ticket
      const isReused = socket.isSessionReused()
      socket.destroy()
      return { offered, isReused }
    }
    const { offered } = await visit()
    for (const session of offered) expect((await visit(session)).isReused).toBe(false)
    await at.close()
  })

  test('close what says nothing with the listener', async () => {
    const network = await loadGrpcNetwork(good)
    const service = { call: async () => Buffer.alloc(0), stream: () => ({ onMessage() {}, onClose() {} }) }
    const at = await network.listen({ host: '127.0.0.1', port: 0 }, service)
    const socket = connectSocket(at.port, '127.0.0.1')
    socket.on('error', () => undefined)
    await new Promise<void>((resolve) => socket.once('connect', () => resolve()))
    const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()))
    await at.close()
    await closed
  })
})
