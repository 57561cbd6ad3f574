import { describe, expect, test } from 'vitest'
import { ConfigError, parseConfig } from '../../../src/config/index.ts'

const parse = (overrides: Record<string, string>) => parseConfig({ overrides })

function messagesOf(overrides: Record<string, string>): string[] {
  try {
    parse(overrides)
  } catch (error) {
    if (error instanceof ConfigError)
      return error.problems.map(({ message }) => message.replace(' (the overrides)', ''))
    throw error
  }
  return []
}

describe('listeners', () => {
  test('name a host, a port and, in capitals, themselves', () => {
    const { listeners } = parse({
      listeners: 'internal://127.0.0.1:9092,EXTERNAL://[::1]:9093,Third://host-1.example:0',
      'listener.security.protocol.map': 'INTERNAL:PLAINTEXT,external:plaintext,THIRD:PLAINTEXT',
    })
    expect(listeners.map(({ name, host, port }) => ({ name, host, port }))).toEqual([
      { name: 'INTERNAL', host: '127.0.0.1', port: 9092 },
      { name: 'EXTERNAL', host: '::1', port: 9093 },
      { name: 'THIRD', host: 'host-1.example', port: 0 },
    ])
  })

  test('on every address advertise the address that the client dialled', () => {
    for (const host of ['', '0.0.0.0', '[::]']) {
      const { listeners } = parse({ listeners: `PLAINTEXT://${host}:9092` })
      expect(listeners[0]).toMatchObject({ advertisedHost: null, advertisedPort: 9092 })
    }
  })

  test('on one address advertise it, with the port that is picked when it is 0', () => {
    expect(parse({ listeners: 'PLAINTEXT://localhost:0' }).listeners[0]).toMatchObject({
      advertisedHost: 'localhost',
      advertisedPort: null,
    })
  })

  test('advertise what advertised.listeners says', () => {
    const { listeners } = parse({
      listeners: 'PLAINTEXT://:9092',
      'advertised.listeners': 'PLAINTEXT://kafka.example:19092',
    })
    expect(listeners[0]).toMatchObject({
      host: '::',
      port: 9092,
      advertisedHost: 'kafka.example',
      advertisedPort: 19_092,
    })
  })

  test('are for the quorum when controller.listener.names names them, PLAINTEXT unless mapped', () => {
    const config = parse({ listeners: 'PLAINTEXT://:1,CONTROLLER://:2', 'controller.listener.names': 'CONTROLLER' })
    expect(config.listeners.map((listener) => listener.name)).toEqual(['PLAINTEXT'])
    expect(config.controllerListeners.map((listener) => listener.name)).toEqual(['CONTROLLER'])
    expect(config.interBrokerListenerName).toBe('PLAINTEXT')
  })

  test('with SSL for clients, or with SASL, are refused with the key and the value, never served as plaintext', () => {
    for (const protocol of ['SSL', 'SASL_PLAINTEXT', 'SASL_SSL']) {
      const where = protocol === 'SSL' ? ' for clients, only between nodes' : ''
      expect(messagesOf({ listeners: `${protocol}://:9092` })).toEqual([
        `listeners=${protocol}://:9092: ${protocol} is not built yet${where}; use PLAINTEXT`,
      ])
      expect(
        messagesOf({ listeners: 'PLAINTEXT://:9092', 'listener.security.protocol.map': `PLAINTEXT:${protocol}` }),
      ).toHaveLength(1)
      expect(
        messagesOf({
          listeners: 'PLAINTEXT://:9092,C://:9093',
          'controller.listener.names': 'C',
          'controller.quorum.bootstrap.servers': 'a:9093',
          'listener.security.protocol.map': `PLAINTEXT:PLAINTEXT,C:${protocol}`,
        }).length,
      ).toBeGreaterThan(0)
    }
  })

  test.each([
    'localhost:9092',
    'PLAINTEXT://localhost',
    'PLAINTEXT://localhost:',
    'PLAINTEXT://localhost:65536',
    'PLAINTEXT://localhost:-1',
    'PLAINTEXT://:: :1',
    'PLAINTEXT://::1:9092',
    'PLAINTEXT:/localhost:1',
    '://localhost:1',
    'PLAINTEXT://user@host:1',
    'PLAINTEXT://[::1:1',
  ])('of the form %s are refused', (text) => {
    expect(messagesOf({ listeners: text })[0]).toContain(`listeners=${text}: allowed is NAME://host:port`)
  })

  test('with one name or one port twice are refused', () => {
    expect(messagesOf({ listeners: 'PLAINTEXT://:1,plaintext://:2' })[0]).toContain('used twice')
    const map = 'A:PLAINTEXT,B:PLAINTEXT'
    const both = (listeners: string) => messagesOf({ listeners, 'listener.security.protocol.map': map })
    expect(both('A://:1,B://127.0.0.1:1')[0]).toContain('has that port already')
    expect(both('A://127.0.0.1:1,B://[::1]:1')).toEqual([])
    expect(both('A://:0,B://:0')).toEqual([])
  })

  test('whose names contradict each other are refused', () => {
    expect(messagesOf({ listeners: 'FOO://:1' })[0]).toContain('says no protocol for FOO')
    expect(messagesOf({ 'advertised.listeners': 'OTHER://host:1' })[0]).toContain('listeners has no OTHER')
    expect(messagesOf({ 'advertised.listeners': 'PLAINTEXT://0.0.0.0:1' })[0]).toContain('name one')
    expect(messagesOf({ 'controller.listener.names': 'CONTROLLER' })[0]).toContain('listeners has no such name')
    expect(messagesOf({ 'inter.broker.listener.name': 'X' })[0]).toContain('the listeners for clients are PLAINTEXT')
    expect(messagesOf({ 'controller.listener.names': 'PLAINTEXT' })[0]).toContain('at least one listener for clients')
    expect(messagesOf({ listeners: '' })[0]).toContain('at least one listener for clients')
  })

  test('need a map of names and protocols', () => {
    for (const map of ['PLAINTEXT', 'PLAINTEXT:FOO', 'PLAINTEXT:PLAINTEXT,PLAINTEXT:SSL', ':PLAINTEXT']) {
      expect(messagesOf({ 'listener.security.protocol.map': map })[0]).toContain('listener.security.protocol.map=')
    }
  })
})
