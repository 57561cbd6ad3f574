import type { ConfigEntry } from './broker-config.ts'
import { brokerKeys } from './broker-keys.ts'
import { type ConfigProblem, shortened } from './config-error.ts'
import type { AnyKey, Key } from './keys.ts'
import type { Setting } from './sources.ts'

/** A text under the key that it was set by: what is wrong with it is told with that name. */
export interface NamedText {
  readonly key: string
  readonly text: string
}

/** The key and the certificates that a node shows. */
export type KeyStoreConfig =
  | { readonly type: 'PEM'; readonly location: NamedText; readonly keyPassword: NamedText | undefined }
  | {
      readonly type: 'PEM'
      readonly location: undefined
      readonly privateKey: NamedText
      readonly certificateChain: NamedText
      readonly keyPassword: NamedText | undefined
    }
  | { readonly type: 'PKCS12'; readonly location: NamedText; readonly password: NamedText }

export type TlsVersion = 'TLSv1.2' | 'TLSv1.3'

/** What the settings say about TLS between nodes. Files are named and not read yet. */
export interface TlsConfig {
  /** Undefined: this node shows none, which only one that listens for no other may. */
  readonly keyStore: KeyStoreConfig | undefined
  /** Whose certificates are trusted, and nobody else's; PEM. */
  readonly trustStore:
    | { readonly location: NamedText }
    | { readonly location: undefined; readonly certificates: NamedText }
  readonly clientAuth: 'required' | 'requested' | 'none'
  /** A certificate has to name the host or address that was connected to. */
  readonly checksHostNames: boolean
  /** At least one. */
  readonly versions: readonly TlsVersion[]
}

export interface TlsSettings {
  /** In capitals. `listener.name.`, this name and a key come before the key alone. */
  readonly listenerName: string
  /** Whether this node has such a listener, or only connects to others'. */
  readonly listens: boolean
  /** All that was set, keys with a listener's name among them. */
  readonly given: ReadonlyMap<string, Setting>
  readonly entries: ReadonlyMap<string, ConfigEntry>
}

/** Keys of Kafka that would change what is safe, and that nothing here obeys. */
const notBuilt = ['ssl.cipher.suites', 'ssl.engine.factory.class', 'ssl.provider']

/** Whether a key without a listener's name is one of TLS. */
export function namesTls(key: string): boolean {
  return key.startsWith('ssl.')
}

/**
 * What the settings say about TLS for one listener, and which keys with its name counted; what can't be used goes to `problems`,
 * and what is returned then means nothing.
 */
export function resolveTls(
  settings: TlsSettings,
  problems: ConfigProblem[],
): { readonly config: TlsConfig | undefined; readonly used: ReadonlySet<string> } {
  const reader = new TlsReader(settings, problems)
  const keyStore = keyStoreOf(reader, settings)
  const trustStore = trustStoreOf(reader, settings)
  const clientAuth = reader.valueOf(brokerKeys.sslClientAuth)
  const identification = reader.valueOf(brokerKeys.sslEndpointIdentificationAlgorithm)
  const versions = reader.valueOf(brokerKeys.sslEnabledProtocols)
  if (versions.length === 0) {
    reader.report(brokerKeys.sslEnabledProtocols, ` is empty: allowed is ${brokerKeys.sslEnabledProtocols.allowed}`)
  }
  for (const name of notBuilt) reader.refuse(name)
  const config =
    trustStore === undefined
      ? undefined
      : Object.freeze({
          keyStore,
          trustStore,
          clientAuth,
          checksHostNames: identification !== '',
          versions: versions as readonly TlsVersion[],
        })
  return { config, used: reader.used }
}

function keyStoreOf(reader: TlsReader, { listenerName, listens }: TlsSettings): KeyStoreConfig | undefined {
  const keys = brokerKeys
  const location = reader.textOf(keys.sslKeystoreLocation)
  const privateKey = reader.textOf(keys.sslKeystoreKey)
  const certificateChain = reader.textOf(keys.sslKeystoreCertificateChain)
  const password = reader.textOf(keys.sslKeystorePassword)
  const keyPassword = reader.textOf(keys.sslKeyPassword)
  if (location === undefined && privateKey === undefined && certificateChain === undefined) {
    if (listens) {
      const why = `the listener ${listenerName} has SSL and needs a certificate`
      reader.report(keys.sslKeystoreLocation, ` is not set: ${why}; allowed is a file with the private key and it`)
    }
    return undefined
  }
  const type = reader.textOf(keys.sslKeystoreType)?.text.toUpperCase()
  if (type !== 'PEM' && type !== 'PKCS12') {
    const from = `keytool -importkeystore -srckeystore ${location?.text ?? 'FILE'}`
    const remedy = `${from} -destkeystore keystore.p12 -deststoretype PKCS12`
    reader.report(
      keys.sslKeystoreType,
      `=${reader.shown(keys.sslKeystoreType)}: allowed is PEM or PKCS12; ${remedy} makes the latter of a JKS`,
    )
    return undefined
  }
  if (type === 'PKCS12') {
    if (privateKey !== undefined || certificateChain !== undefined || location === undefined) {
      const key = privateKey === undefined ? keys.sslKeystoreCertificateChain : keys.sslKeystoreKey
      reader.report(key, ': allowed with ssl.keystore.type=PEM only; PKCS12 is a file, ssl.keystore.location')
      return undefined
    }
    if (password === undefined) {
      reader.report(keys.sslKeystorePassword, ` is not set: ${location.key}=${location.text} of type PKCS12 needs it`)
      return undefined
    }
    if (keyPassword !== undefined && keyPassword.text !== password.text) {
      reader.report(
        keys.sslKeyPassword,
        ': the key in a file of type PKCS12 has the password of the file; leave it out',
      )
    }
    return { type, location, password }
  }
  if (password !== undefined) {
    reader.report(keys.sslKeystorePassword, ': a file of type PEM has none; the one of its key is ssl.key.password')
  }
  if (location !== undefined) {
    for (const key of [keys.sslKeystoreKey, keys.sslKeystoreCertificateChain]) {
      if (reader.textOf(key) !== undefined) reader.report(key, `: allowed is either this or ${location.key}, not both`)
    }
    return { type, location, keyPassword }
  }
  if (privateKey === undefined || certificateChain === undefined) {
    const [missing, there] =
      privateKey === undefined
        ? [keys.sslKeystoreKey, keys.sslKeystoreCertificateChain]
        : [keys.sslKeystoreCertificateChain, keys.sslKeystoreKey]
    reader.report(missing, ` is not set: ${there.name} is of no use without it`)
    return undefined
  }
  return { type, location, privateKey, certificateChain, keyPassword }
}

function trustStoreOf(reader: TlsReader, { listenerName }: TlsSettings): TlsConfig['trustStore'] | undefined {
  const keys = brokerKeys
  const location = reader.textOf(keys.sslTruststoreLocation)
  const certificates = reader.textOf(keys.sslTruststoreCertificates)
  if (location === undefined && certificates === undefined) {
    const why = `whose certificates are trusted on ${listenerName} has to be said; those that the system trusts are not`
    reader.report(keys.sslTruststoreLocation, ` is not set: ${why}; allowed is a file with certificates of CAs`)
    return undefined
  }
  if (reader.textOf(keys.sslTruststoreType)?.text.toUpperCase() !== 'PEM') {
    const remedy = `keytool -list -rfc -keystore ${location?.text ?? 'FILE'} > truststore.pem makes it of a JKS or PKCS12`
    reader.report(keys.sslTruststoreType, `=${reader.shown(keys.sslTruststoreType)}: allowed is PEM; ${remedy}`)
    return undefined
  }
  if (location !== undefined && certificates !== undefined) {
    reader.report(keys.sslTruststoreCertificates, `: allowed is either this or ${location.key}, not both`)
  }
  if (location !== undefined) return { location }
  return certificates === undefined ? undefined : { location: undefined, certificates }
}

/** The values of keys, with a listener's name first and then without. */
class TlsReader {
  /** Keys with the listener's name that were set and read. */
  readonly used = new Set<string>()
  readonly #settings: TlsSettings
  readonly #problems: ConfigProblem[]
  /** As they were given, by the names after the listener's. */
  readonly #own: ReadonlyMap<string, Setting>

  constructor(settings: TlsSettings, problems: ConfigProblem[]) {
    this.#settings = settings
    this.#problems = problems
    const prefix = `listener.name.${settings.listenerName.toLowerCase()}.`
    const own = [...settings.given].filter(([key]) => key.toLowerCase().startsWith(prefix))
    this.#own = new Map(own.map(([key, setting]) => [key.slice(prefix.length), setting]))
  }

  /** Undefined when it has no value, or is empty. */
  textOf(key: AnyKey): NamedText | undefined {
    const named = this.#read(key)
    return named.text === '' ? undefined : named
  }

  /** The default where what was set is not allowed, which is reported. */
  valueOf<Value>(key: Key<Value>): Value {
    const parsed = key.parse(this.#read(key).text)
    if (parsed !== undefined) return parsed.value
    this.report(key, `=${this.shown(key)}: allowed is ${key.allowed}`)
    return key.parse(key.defaultText ?? '')!.value
  }

  #read(key: AnyKey): NamedText {
    const own = this.#own.get(key.name)
    if (own !== undefined) this.used.add(own.key)
    return { key: own?.key ?? key.name, text: own?.text.trim() ?? this.#settings.entries.get(key.name)?.text ?? '' }
  }

  /** The value for messages, and whether it is only the default. */
  shown(key: AnyKey): string {
    const isSet = this.#own.has(key.name) || this.#settings.given.has(key.name)
    return `${shortened(this.#read(key).text)}${isSet ? '' : ' (the default)'}`
  }

  /** `message` follows the key's name. */
  report(key: AnyKey, message: string): void {
    const name = this.#own.get(key.name)?.key ?? key.name
    this.#problems.push({ key: name, message: `${name}${message}` })
  }

  refuse(name: string): void {
    for (const setting of [this.#own.get(name), this.#settings.given.get(name)]) {
      if (setting === undefined || setting.text.trim() === '') continue
      const message = `${setting.key}=${shortened(setting.text)} (${setting.place}): not built; leave it out`
      this.#problems.push({ key: setting.key, message })
    }
  }
}
