import { readFileSync, writeFileSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ConfigError, type KeyStoreConfig, type TlsConfig } from '../../../src/config/index.ts'
import { type Authority, createAuthority, type Issued, openssl, tlsOf } from '../../support/certificates.ts'
import { describeWithPeer } from '../../support/peers.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'

const named = (key: string, text: string) => ({ key, text })

describeWithPeer('openssl', 'keys and certificates', () => {
  let folder: Awaited<ReturnType<typeof temporaryFolder>>
  let ca: Authority
  let node: Issued

  beforeAll(async () => {
    folder = await temporaryFolder()
    ca = createAuthority(folder.path, 'ca')
    node = ca.issue('node')
    openssl(folder.path, ['pkcs8', '-topk8', '-in', 'node.key', '-passout', 'pass:secret', '-out', 'node.enc'])
    const files = ['-in', 'node.crt', '-inkey', 'node.key', '-certfile', 'ca.crt']
    openssl(folder.path, ['pkcs12', '-export', ...files, '-passout', 'pass:secret', '-out', 'node.p12'])
    openssl(folder.path, ['pkcs12', '-export', '-nokeys', '-in', 'ca.crt', '-passout', 'pass:secret', '-out', 'ca.p12'])
  })
  afterAll(() => folder[Symbol.asyncDispose]())

  const inFolder = (name: string) => join(folder.path, name)
  const textOf = (name: string) => readFileSync(inFolder(name), 'utf8')
  const write = (name: string, ...texts: string[]) => {
    writeFileSync(inFolder(name), texts.join('\n'))
    return inFolder(name)
  }
  const pemAt = (path: string, password?: string): KeyStoreConfig => ({
    type: 'PEM',
    location: named('ssl.keystore.location', path),
    keyPassword: password === undefined ? undefined : named('ssl.key.password', password),
  })
  const pkcs12At = (path: string, password: string): KeyStoreConfig => ({
    type: 'PKCS12',
    location: named('ssl.keystore.location', path),
    password: named('ssl.keystore.password', password),
  })
  const read = (changes: Partial<TlsConfig> & { nowMs?: number }, own = node) => tlsOf(ca, own, changes)

  /** The one key at fault, and what is said. */
  async function faultOf(
    changes: Partial<TlsConfig> & { nowMs?: number },
    own = node,
  ): Promise<readonly [string, string]> {
    const error = await read(changes, own).then(
      () => undefined,
      (thrown: unknown) => thrown,
    )
    if (!(error instanceof ConfigError)) throw new Error('No ConfigError', { cause: error })
    expect(error.problems).toHaveLength(1)
    expect(error.message).not.toContain('secret')
    return [error.problems[0]?.key ?? '', error.message]
  }

  describe('are read', () => {
    test('from one file in PEM, whatever stands between its parts, in either order', async () => {
      const path = write('mixed.pem', 'Bag Attributes', textOf('node.crt'), 'more: text', textOf('node.key'))
      expect(await read({ keyStore: pemAt(path) })).toMatchObject({ hasCertificate: true })
    })

    test('from one file in PEM whose key is encrypted', async () => {
      const path = write('encrypted.pem', textOf('node.enc'), textOf('node.crt'))
      expect(await read({ keyStore: pemAt(path, 'secret') })).toMatchObject({ hasCertificate: true })
    })

    test('from texts on one line, as a properties file has them', async () => {
      const onOneLine = (name: string, key: string) => named(key, textOf(name).trim().replaceAll('\n', ' '))
      const identity = await read({
        keyStore: {
          type: 'PEM',
          location: undefined,
          privateKey: onOneLine('node.key', 'ssl.keystore.key'),
          certificateChain: onOneLine('node.crt', 'ssl.keystore.certificate.chain'),
          keyPassword: undefined,
        },
        trustStore: { location: undefined, certificates: onOneLine('ca.crt', 'ssl.truststore.certificates') },
      })
      expect(identity.context.cert).toBe(textOf('node.crt'))
      expect(identity.context.ca).toEqual([textOf('ca.crt')])
    })

    test('from where the process runs when the path is relative', async () => {
      const path = relative(process.cwd(), node.keyStoreFile)
      expect(await read({ keyStore: pemAt(path) })).toMatchObject({ hasCertificate: true })
    })

    test('from a file of type PKCS12', async () => {
      expect(await read({ keyStore: pkcs12At(inFolder('node.p12'), 'secret') })).toMatchObject({ hasCertificate: true })
    })

    test('with the lowest and the highest version that may be spoken', async () => {
      const { context } = await read({ versions: ['TLSv1.3', 'TLSv1.2'] })
      expect(context).toMatchObject({ minVersion: 'TLSv1.2', maxVersion: 'TLSv1.3' })
    })
  })

  describe('are refused, with the key and what is allowed, when', () => {
    test('a file is missing, is a folder, or is no PEM', async () => {
      const missing = inFolder('missing.pem')
      const none = [`ssl.keystore.location`, `ssl.keystore.location=${missing}: there is no such file`]
      expect(await faultOf({ keyStore: pemAt(missing) })).toEqual(none)
      await mkdir(inFolder('folder'))
      const [, aFolder] = await faultOf({ keyStore: pemAt(inFolder('folder')) })
      expect(aFolder).toContain('folder: the file cannot be read: ')
      const [, garbage] = await faultOf({ keyStore: pemAt(write('garbage', 'garbage')) })
      expect(garbage).toContain('garbage: there is no private key in PEM in it')
      const trusted = { location: named('ssl.truststore.location', write('garbage', 'garbage')) }
      const [key, nobody] = await faultOf({ trustStore: trusted })
      expect(key).toBe('ssl.truststore.location')
      expect(nobody).toContain('garbage: there is no certificate in PEM in it')
    })

    test('a password is wrong, or missing', async () => {
      const path = write('encrypted.pem', textOf('node.enc'), textOf('node.crt'))
      const [wrongKey, wrong] = await faultOf({ keyStore: pemAt(path, 'wrong') })
      expect(wrongKey).toBe('ssl.key.password')
      expect(wrong).toBe(
        `ssl.key.password=(hidden): it is not the password of the private key of ssl.keystore.location=${path}`,
      )
      const [, none] = await faultOf({ keyStore: pemAt(path) })
      expect(none).toContain('ssl.key.password is not set: the private key of ')
      const [, pkcs12] = await faultOf({ keyStore: pkcs12At(inFolder('node.p12'), 'wrong') })
      expect(pkcs12).toContain('ssl.keystore.password=(hidden): it is not the password of ssl.keystore.location=')
    })

    test('the key is not that of the certificate', async () => {
      ca.issue('other')
      const path = write('mismatch.pem', textOf('other.key'), textOf('node.crt'))
      const [, message] = await faultOf({ keyStore: pemAt(path) })
      expect(message).toContain('its private key is not that of its first certificate, CN=node; allowed is a key with')
    })

    test('the certificate has expired, is not valid yet, or one between it and the CA has expired', async () => {
      const late = ca.issue('late', { validFrom: '20200101000000Z', validUntil: '20200201000000Z' })
      const [key, message] = await faultOf({}, late)
      expect(key).toBe('ssl.keystore.location')
      expect(message).toContain('its certificate CN=late has expired, on 2020-02-01T00:00:00.000Z; allowed is')
      const [, early] = await faultOf({ nowMs: Date.UTC(2020, 0, 1) })
      expect(early).toContain('CN=node is not valid before ')
      const path = write('chain.pem', textOf('node.key'), textOf('node.crt'), textOf('late.crt'))
      const [, between] = await faultOf({ keyStore: pemAt(path) })
      expect(between).toContain('its certificate CN=late has expired')
    })

    test('all that is trusted has expired, and not when one of several has', async () => {
      const old = ca.issue('old', { validFrom: '20200101000000Z', validUntil: '20200201000000Z' })
      const trusting = (path: string) => ({ trustStore: { location: named('ssl.truststore.location', path) } })
      const [, message] = await faultOf(trusting(old.certificateFile))
      expect(message).toContain('all its certificates have expired: CN=old')
      await read(trusting(write('both.pem', textOf('old.crt'), textOf('ca.crt'))))
    })

    test('the certificate says that it is for something else', async () => {
      const [, message] = await faultOf({}, ca.issue('for-servers', { purposes: 'serverAuth' }))
      expect(message).toContain('CN=for-servers is not for clientAuth; allowed is one with extendedKeyUsage=')
      await read({}, ca.issue('for-both', { purposes: 'serverAuth,clientAuth' }))
    })

    test('a certificate is damaged', async () => {
      const lines = textOf('ca.crt').split('\n')
      const [, message] = await faultOf({
        trustStore: {
          location: named('ssl.truststore.location', write('cut.pem', ...lines.slice(0, 3), ...lines.slice(-2))),
        },
      })
      expect(message).toContain('certificate 1 in it cannot be read')
    })

    test('a file of type PKCS12 is none, or has no key', async () => {
      const [, none] = await faultOf({ keyStore: pkcs12At(inFolder('node.crt'), 'secret') })
      expect(none).toMatch(/node\.crt: it cannot be read as PKCS12: .*; openssl pkcs12 -legacy/)
      const [key] = await faultOf({ keyStore: pkcs12At(inFolder('ca.p12'), 'secret') })
      expect(key).toBe('ssl.keystore.location')
    })
  })
})
