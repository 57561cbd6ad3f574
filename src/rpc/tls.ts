import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto'
import { resolve } from 'node:path'
import { Duplex } from 'node:stream'
import { createSecureContext, type SecureContextOptions, type SecureVersion, TLSSocket } from 'node:tls'
import { messageOf } from '../base/index.ts'
import { ConfigError, type KeyStoreConfig, type NamedText, type TlsConfig } from '../config/index.ts'
import type { Files } from '../platform/index.ts'

/** What it takes to speak TLS: read, and checked as far as one node can. */
export interface TlsIdentity {
  /** What this node shows, and whom it trusts. */
  readonly context: SecureContextOptions
  /** It has a certificate, so that it can be connected to. */
  readonly hasCertificate: boolean
  readonly clientAuth: TlsConfig['clientAuth']
  readonly checksHostNames: boolean
}

/** More than any chain of certificates takes. */
const maxFileBytes = 1024 * 1024
/** What a certificate that says what it is for has to be for (RFC 5280, 4.2.1.12), with the name that openssl has for it. */
const purposes = {
  clientAuth: '1.3.6.1.5.5.7.3.2',
  serverAuth: '1.3.6.1.5.5.7.3.1',
} as const
const anyPurpose = '2.5.29.37.0'

/** Reads the files that the settings name. Throws `ConfigError`, with the key, for what could not be used or would expire. */
export async function readTls(
  config: TlsConfig,
  { files, nowMs, listens }: { readonly files: Files; readonly nowMs: number; readonly listens: boolean },
): Promise<TlsIdentity> {
  const trusted = await readTrusted(config.trustStore, files, nowMs)
  const own = config.keyStore === undefined ? undefined : await readOwn(config.keyStore, files)
  if (own !== undefined) checkOwn(own, nowMs, listens)
  const versions = [...config.versions].sort()
  return {
    context: {
      ca: trusted,
      ...own?.context,
      minVersion: versions[0] as SecureVersion,
      maxVersion: versions.at(-1) as SecureVersion,
    },
    hasCertificate: own !== undefined,
    clientAuth: config.clientAuth,
    checksHostNames: config.checksHostNames,
  }
}

interface Own {
  readonly context: SecureContextOptions
  /** The node's own first, then those between it and the CA. */
  readonly chain: readonly X509Certificate[]
  /** What messages call it. */
  readonly name: string
  readonly key: string
}

async function readOwn(store: KeyStoreConfig, files: Files): Promise<Own> {
  if (store.type === 'PKCS12') return await readPkcs12(store.location, store.password.text, files)
  const texts =
    store.location === undefined ? [store.privateKey, store.certificateChain] : [await readText(store.location, files)]
  const [keySource, chainSource] = [texts[0]!, texts.at(-1)!]
  const name = store.location === undefined ? chainSource.key : nameOf(store.location)
  const key = privateKeyOf(keySource, store.location === undefined ? keySource.key : name, store.keyPassword)
  const pems = pemsOf(chainSource.text).filter(({ label }) => label === 'CERTIFICATE')
  const chain = certificatesOf(pems, chainSource.key, name)
  const [leaf] = chain
  if (leaf === undefined) throw fault(chainSource.key, `${name}: there is no certificate in PEM in it`)
  if (!leaf.checkPrivateKey(key)) {
    const what = `its private key is not that of its first certificate, ${subjectOf(leaf)}`
    throw fault(chainSource.key, `${name}: ${what}; allowed is a key with its certificate, then those up to the CA`)
  }
  return {
    context: { key: key.export({ type: 'pkcs8', format: 'pem' }), cert: pems.map(({ pem }) => pem).join('') },
    chain,
    name,
    key: chainSource.key,
  }
}

function privateKeyOf(source: NamedText, name: string, password: NamedText | undefined): KeyObject {
  const found = pemsOf(source.text).find(({ label }) => label.endsWith('PRIVATE KEY'))
  if (found === undefined) throw fault(source.key, `${name}: there is no private key in PEM in it`)
  const isEncrypted = found.label.startsWith('ENCRYPTED') || found.pem.includes('Proc-Type: 4,ENCRYPTED')
  if (isEncrypted && password === undefined) {
    throw fault('ssl.key.password', `ssl.key.password is not set: the private key of ${name} is encrypted`)
  }
  try {
    return createPrivateKey({ key: found.pem, passphrase: password?.text ?? '' })
  } catch (error) {
    if (!isEncrypted) throw fault(source.key, `${name}: its private key cannot be read: ${messageOf(error)}`, error)
    const key = password!.key
    throw fault(key, `${key}=(hidden): it is not the password of the private key of ${name}`, error)
  }
}

async function readPkcs12(location: NamedText, passphrase: string, files: Files): Promise<Own> {
  const pfx = await readBytes(location, files)
  const context = { pfx, passphrase }
  try {
    // The system's library gives out what is in such a file only through a socket.
    const nowhere = new Duplex({ read() {}, write: (_chunk, _encoding, done) => done() })
    const socket = new TLSSocket(nowhere, { secureContext: createSecureContext(context), isServer: true })
    const leaf = socket.getX509Certificate()
    socket.destroy()
    if (leaf !== undefined) return { context, chain: [leaf], name: nameOf(location), key: location.key }
  } catch (error) {
    if (messageOf(error).includes('mac verify failure')) {
      const message = `ssl.keystore.password=(hidden): it is not the password of ${nameOf(location)}`
      throw fault('ssl.keystore.password', message, error)
    }
    const remedy = `openssl pkcs12 -legacy -in ${location.text} -nodes -out keystore.pem makes PEM of an old one`
    const message = `${nameOf(location)}: it cannot be read as PKCS12: ${messageOf(error)}; ${remedy}`
    throw fault(location.key, message, error)
  }
  throw fault(location.key, `${nameOf(location)}: there is no private key with a certificate in it`)
}

function checkOwn({ chain, name, key }: Own, nowMs: number, listens: boolean): void {
  for (const certificate of chain) {
    const { validFromDate, validToDate } = certificate
    if (validToDate.getTime() <= nowMs) {
      const what = `its certificate ${subjectOf(certificate)} has expired, on ${validToDate.toISOString()}`
      throw fault(key, `${name}: ${what}; allowed is one that is valid`)
    }
    if (validFromDate.getTime() > nowMs) {
      const what = `its certificate ${subjectOf(certificate)} is not valid before ${validFromDate.toISOString()}`
      throw fault(key, `${name}: ${what}; allowed is one that is valid now, or is the clock of this machine wrong?`)
    }
  }
  const [leaf] = chain
  const named = leaf?.keyUsage ?? [] // Node's name for the extended one
  if (leaf === undefined || named.length === 0 || named.includes(anyPurpose)) return
  const needed = listens ? (['serverAuth', 'clientAuth'] as const) : (['clientAuth'] as const)
  const missing = needed.filter((purpose) => !named.includes(purposes[purpose]))
  if (missing.length === 0) return
  const what = `its certificate ${subjectOf(leaf)} is not for ${missing.join(' and ')}`
  throw fault(key, `${name}: ${what}; allowed is one with extendedKeyUsage=serverAuth,clientAuth, or without it`)
}

async function readTrusted(store: TlsConfig['trustStore'], files: Files, nowMs: number): Promise<string[]> {
  const source = store.location === undefined ? store.certificates : await readText(store.location, files)
  const name = store.location === undefined ? source.key : nameOf(store.location)
  const pems = pemsOf(source.text).filter(({ label }) => label === 'CERTIFICATE' || label === 'TRUSTED CERTIFICATE')
  const certificates = certificatesOf(pems, source.key, name)
  if (certificates.length === 0) throw fault(source.key, `${name}: there is no certificate in PEM in it`)
  // One of several may have: they are replaced one after the other.
  if (certificates.every(({ validToDate }) => validToDate.getTime() <= nowMs)) {
    const subjects = certificates.map(subjectOf).join(', ')
    throw fault(source.key, `${name}: all its certificates have expired: ${subjects}; allowed are valid ones`)
  }
  return pems.map(({ pem }) => pem)
}

function certificatesOf(pems: readonly Pem[], key: string, name: string): X509Certificate[] {
  return pems.map(({ pem }, index) => {
    try {
      return new X509Certificate(pem)
    } catch (error) {
      throw fault(key, `${name}: certificate ${index + 1} in it cannot be read: ${messageOf(error)}`, error)
    }
  })
}

interface Pem {
  /** `CERTIFICATE`, `ENCRYPTED PRIVATE KEY`. */
  readonly label: string
  readonly pem: string
}

/** In a properties file all is often on one line, with blanks for line ends. */
function pemsOf(text: string): Pem[] {
  return [...text.matchAll(/-----BEGIN ([A-Z0-9 ]+)-----(.*?)-----END \1-----/gs)].map(
    ([whole, label = '', body = '']) => {
      if (body.includes(':')) return { label, pem: `${whole}\n` } // with headers, whose lines count
      const lines = body.replace(/\s+/g, '').match(/.{1,64}/g) ?? []
      return { label, pem: [`-----BEGIN ${label}-----`, ...lines, `-----END ${label}-----`, ''].join('\n') }
    },
  )
}

async function readText(location: NamedText, files: Files): Promise<NamedText> {
  return { key: location.key, text: (await readBytes(location, files)).toString('latin1') }
}

async function readBytes(location: NamedText, files: Files): Promise<Buffer> {
  let bytes: Buffer | undefined
  try {
    bytes = await files.readFile(resolve(location.text), maxFileBytes)
  } catch (error) {
    throw fault(location.key, `${nameOf(location)}: the file cannot be read: ${messageOf(error)}`, error)
  }
  if (bytes === undefined) throw fault(location.key, `${nameOf(location)}: there is no such file`)
  return bytes
}

function nameOf({ key, text }: NamedText): string {
  return `${key}=${text}`
}

/** On one line, as openssl shows it. Whoever connects may show one of any length. */
export function subjectOf({ subject, serialNumber }: X509Certificate): string {
  return (subject?.replaceAll('\n', ', ') || `number ${serialNumber}`).slice(0, 200)
}

function fault(key: string, message: string, cause?: unknown): ConfigError {
  return new ConfigError([{ key, message }], cause === undefined ? undefined : { cause })
}
