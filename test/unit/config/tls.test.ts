import { describe, expect, test } from 'vitest'
import { ConfigError, parseConfig } from '../../../src/config/index.ts'

const controller = {
  'controller.quorum.voters': '1@a:9093,2@b:9093',
  listeners: 'PLAINTEXT://:9092,CONTROLLER://:9093',
  'controller.listener.names': 'CONTROLLER',
  'listener.security.protocol.map': 'PLAINTEXT:PLAINTEXT,CONTROLLER:SSL',
}
const keyStore = { 'ssl.keystore.type': 'PEM', 'ssl.keystore.location': '/etc/node.pem' }
const trustStore = { 'ssl.truststore.type': 'PEM', 'ssl.truststore.location': '/etc/ca.pem' }
const complete = { ...controller, ...keyStore, ...trustStore }

type Settings = Readonly<Record<string, string>>

const parse = (overrides: Settings) => parseConfig({ overrides })

/** Without where the keys were set, which is the same for all. */
function messagesOf(overrides: Settings): string[] {
  try {
    parse(overrides)
    return []
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    return error.problems.map(({ message }) => message.replace(' (the overrides)', ''))
  }
}

const without = (settings: Settings, ...keys: string[]): Settings =>
  Object.fromEntries(Object.entries(settings).filter(([key]) => !keys.includes(key)))

describe('TLS of the listener of controllers', () => {
  test("has Kafka's defaults where nothing else is set", () => {
    const { controllerTls, controllerListeners, unused } = parse(complete)
    expect(controllerTls).toEqual({
      keyStore: {
        type: 'PEM',
        location: { key: 'ssl.keystore.location', text: '/etc/node.pem' },
        keyPassword: undefined,
      },
      trustStore: { location: { key: 'ssl.truststore.location', text: '/etc/ca.pem' } },
      clientAuth: 'none',
      checksHostNames: true,
      versions: ['TLSv1.2', 'TLSv1.3'],
    })
    expect(controllerListeners[0]?.securityProtocol).toBe('SSL')
    expect(unused).toEqual([])
  })

  test('is not there where controllers talk without it, and what was set for it is named as of no effect', () => {
    const { controllerTls, unused } = parse({ ...complete, 'listener.security.protocol.map': 'PLAINTEXT:PLAINTEXT' })
    expect(controllerTls).toBeUndefined()
    expect(unused).toEqual([...Object.keys(keyStore), ...Object.keys(trustStore)].sort())
  })

  test('is taken from keys with the name of the listener before those without', () => {
    const { controllerTls, unused } = parse({
      ...complete,
      'ssl.client.auth': 'none',
      'listener.name.controller.ssl.client.auth': 'required',
      'listener.name.controller.ssl.keystore.location': '/etc/other.pem',
      'listener.name.controller.ssl.endpoint.identification.algorithm': '',
      'listener.name.external.ssl.client.auth': 'requested',
    })
    expect(controllerTls).toMatchObject({
      clientAuth: 'required',
      checksHostNames: false,
      keyStore: { location: { key: 'listener.name.controller.ssl.keystore.location', text: '/etc/other.pem' } },
    })
    expect(unused).toEqual(['listener.name.external.ssl.client.auth'])
  })

  test('counts whatever the case in which the name of the listener is written', () => {
    const given = { ...complete, 'listener.name.CONTROLLER.ssl.client.auth': 'required' }
    expect(parse(given).controllerTls?.clientAuth).toBe('required')
  })

  test('needs no certificate on a node that only connects', () => {
    const { controllerTls } = parse({
      ...controller,
      ...trustStore,
      'process.roles': 'broker',
      'node.id': '3',
      listeners: 'PLAINTEXT://:9092',
    })
    expect(controllerTls?.keyStore).toBeUndefined()
  })

  test('takes key and certificates as texts in place of a file', () => {
    const { controllerTls, entries } = parse({
      ...without(complete, 'ssl.keystore.location', 'ssl.truststore.location'),
      'ssl.keystore.key': 'KEY',
      'ssl.keystore.certificate.chain': 'CHAIN',
      'ssl.truststore.certificates': 'CA',
      'ssl.key.password': 'secret',
    })
    expect(controllerTls).toMatchObject({
      keyStore: { privateKey: { text: 'KEY' }, certificateChain: { text: 'CHAIN' }, keyPassword: { text: 'secret' } },
      trustStore: { certificates: { text: 'CA' } },
    })
    for (const name of ['ssl.keystore.key', 'ssl.key.password', 'ssl.truststore.certificates']) {
      expect(entries.get(name)?.key.sensitive, name).toBe(true)
    }
  })

  test('takes a file of type PKCS12 with its password', () => {
    const { controllerTls } = parse({ ...complete, 'ssl.keystore.type': 'PKCS12', 'ssl.keystore.password': 'secret' })
    expect(controllerTls?.keyStore).toMatchObject({ type: 'PKCS12', password: { text: 'secret' } })
  })

  const key = { 'ssl.keystore.key': 'KEY' }
  const password = { 'ssl.keystore.password': 'secret' }
  test.each<readonly [string, Settings, RegExp]>([
    [
      'no certificate',
      without(complete, 'ssl.keystore.location'),
      /^ssl\.keystore\.location is not set: the listener CONTROLLER/,
    ],
    ['nobody to trust', without(complete, 'ssl.truststore.location'), /^ssl\.truststore\.location is not set: whose/],
    [
      'a JKS',
      { ...complete, 'ssl.keystore.type': 'JKS' },
      /^ssl\.keystore\.type=JKS: allowed is PEM or PKCS12; keytool .*\/etc\/node\.pem/,
    ],
    ['no type', without(complete, 'ssl.keystore.type'), /^ssl\.keystore\.type=JKS \(the default\): allowed is PEM/],
    [
      'a JKS to trust',
      without(complete, 'ssl.truststore.type'),
      /^ssl\.truststore\.type=JKS \(the default\): allowed is PEM; keytool/,
    ],
    [
      'a PKCS12 to trust',
      { ...complete, 'ssl.truststore.type': 'PKCS12' },
      /^ssl\.truststore\.type=PKCS12: allowed is PEM/,
    ],
    [
      'a PKCS12 without password',
      { ...complete, 'ssl.keystore.type': 'PKCS12' },
      /^ssl\.keystore\.password is not set/,
    ],
    [
      'a key in a PKCS12',
      { ...complete, ...password, ...key, 'ssl.keystore.type': 'PKCS12' },
      /^ssl\.keystore\.key: allowed with/,
    ],
    [
      'another password of the key in a PKCS12',
      { ...complete, ...password, 'ssl.keystore.type': 'PKCS12', 'ssl.key.password': 'x' },
      /^ssl\.key\.password: /,
    ],
    ['a password of a PEM', { ...complete, ...password }, /^ssl\.keystore\.password: a file of type PEM has none/],
    [
      'a file and a key',
      { ...complete, ...key },
      /^ssl\.keystore\.key: allowed is either this or ssl\.keystore\.location/,
    ],
    [
      'a key alone',
      { ...without(complete, 'ssl.keystore.location'), ...key },
      /^ssl\.keystore\.certificate\.chain is not set/,
    ],
    [
      'a file and certificates',
      { ...complete, 'ssl.truststore.certificates': 'CA' },
      /^ssl\.truststore\.certificates: allowed is either/,
    ],
    [
      'another client.auth',
      { ...complete, 'ssl.client.auth': 'maybe' },
      /^ssl\.client\.auth=maybe: allowed is required or requested or none/,
    ],
    [
      'another client.auth of the listener',
      { ...complete, 'listener.name.controller.ssl.client.auth': 'maybe' },
      /^listener\.name\.controller\.ssl\.client\.auth=maybe: allowed is required/,
    ],
    ['no version', { ...complete, 'ssl.enabled.protocols': '' }, /^ssl\.enabled\.protocols is empty/],
    ['an old version', { ...complete, 'ssl.enabled.protocols': 'TLSv1.1' }, /^ssl\.enabled\.protocols=TLSv1\.1: /],
    [
      'ciphers of its own',
      { ...complete, 'listener.name.controller.ssl.cipher.suites': 'X' },
      /^listener\.name\.controller\.ssl\.cipher\.suites=X .*not built/,
    ],
    [
      'SASL',
      { ...complete, 'listener.security.protocol.map': 'PLAINTEXT:PLAINTEXT,CONTROLLER:SASL_SSL' },
      /SASL_SSL is not built yet/,
    ],
  ])('is refused with %s', (_what, settings, expected) => {
    const messages = messagesOf(settings)
    expect(messages).toHaveLength(1)
    expect(messages[0]).toMatch(expected)
    expect(messages[0]).not.toContain('secret')
  })

  test('is refused as SASL is where this node only connects', () => {
    const map = 'PLAINTEXT:PLAINTEXT,CONTROLLER:SASL_SSL'
    const broker = { 'process.roles': 'broker', 'node.id': '3', listeners: 'PLAINTEXT://:9092' }
    const messages = messagesOf({ ...complete, ...broker, 'listener.security.protocol.map': map })
    expect(messages).toEqual([
      'listener.security.protocol.map=CONTROLLER:SASL_SSL: SASL_SSL is not built yet; use PLAINTEXT or SSL',
    ])
  })
})
