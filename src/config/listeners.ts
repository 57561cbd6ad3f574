import { isEveryAddress } from '../base/index.ts'
import { type ConfigProblem, shortened } from './config-error.ts'

/** A socket that this node listens on, and what it tells others to connect to. */
export interface ListenerConfig {
  /** In capitals: `PLAINTEXT`, `CONTROLLER`, `INTERNAL`. */
  readonly name: string
  /** '::' when the setting names none: every address. */
  readonly host: string
  /** 0 picks a free one. */
  readonly port: number
  /** SSL for listeners of controllers only. */
  readonly securityProtocol: 'PLAINTEXT' | 'SSL'
  /** Null: whatever address the client dialled (a listener on every address that advertises nothing else). */
  readonly advertisedHost: string | null
  /** Null: the port that is listened on, once it is known. */
  readonly advertisedPort: number | null
}

/** What a node does, of which it does at least one. */
export interface Roles {
  /** Keeps partitions and serves clients. */
  readonly broker: boolean
  /** May have a vote on the metadata, and lead it. */
  readonly controller: boolean
}

export interface ListenerSettings {
  readonly listeners: readonly string[]
  readonly advertisedListeners: readonly string[] | null
  readonly listenerSecurityProtocolMap: string
  readonly controllerListenerNames: readonly string[]
  readonly interBrokerListenerName: string | null
}

export interface Listeners {
  /** Those that clients connect to, in the order of the setting; at least one, and none on a node that is no broker. */
  readonly client: readonly ListenerConfig[]
  /** Those of the metadata quorum; empty when controller.listener.names is, and on a node that is no controller. */
  readonly controller: readonly ListenerConfig[]
  /** One of `client`; '' without any. */
  readonly interBrokerName: string
  /** How this node and controllers talk: its own listener for them, else the first of controller.listener.names. */
  readonly controllerSecurity: { readonly name: string; readonly protocol: string } | undefined
}

const securityProtocols: ReadonlySet<string> = new Set(['PLAINTEXT', 'SSL', 'SASL_PLAINTEXT', 'SASL_SSL'])

/** The listeners that the settings mean; every contradiction in them goes to `problems`. */
export function resolveListeners(settings: ListenerSettings, roles: Roles, problems: ConfigProblem[]): Listeners {
  const report = (key: string, message: string) => problems.push({ key, message })
  const controllerNames = new Set(settings.controllerListenerNames.map(normalized))
  const protocols = parseSecurityMap(settings.listenerSecurityProtocolMap, controllerNames, report)
  const endpoints = parseEndpoints('listeners', settings.listeners, report)
  const advertised = parseEndpoints('advertised.listeners', settings.advertisedListeners ?? [], report)
  refuseSharedPorts(endpoints, report)

  const listeners: ListenerConfig[] = []
  for (const endpoint of endpoints.values()) {
    const protocol = protocols.get(endpoint.name)
    if (protocol === undefined) {
      const known = [...protocols.keys()].join(', ')
      report(
        'listeners',
        `listeners=${endpoint.text}: listener.security.protocol.map says no protocol for ${endpoint.name}, only for ${known}`,
      )
    } else if (protocol === 'SSL' && !controllerNames.has(endpoint.name)) {
      const message = 'SSL is not built yet for clients, only between nodes; use PLAINTEXT'
      report('listeners', `listeners=${endpoint.text}: ${message}`)
    } else if (protocol !== 'PLAINTEXT' && protocol !== 'SSL') {
      report('listeners', `listeners=${endpoint.text}: ${protocol} is not built yet; use PLAINTEXT`)
    }
    const securityProtocol = protocol === 'SSL' ? 'SSL' : 'PLAINTEXT'
    listeners.push(withAdvertised(endpoint, advertised.get(endpoint.name), securityProtocol))
  }

  for (const endpoint of advertised.values()) {
    if (!endpoints.has(endpoint.name)) {
      report('advertised.listeners', `advertised.listeners=${endpoint.text}: listeners has no ${endpoint.name}`)
    }
    if (isEveryAddress(endpoint.host)) {
      report(
        'advertised.listeners',
        `advertised.listeners=${endpoint.text}: a client cannot connect to every address; name one`,
      )
    }
  }
  for (const name of controllerNames) {
    if (!endpoints.has(name) && roles.controller) {
      report('controller.listener.names', `controller.listener.names=${shortened(name)}: listeners has no such name`)
    }
  }

  const client = listeners.filter((listener) => !controllerNames.has(listener.name))
  const controller = listeners.filter((listener) => controllerNames.has(listener.name))
  const [firstClient] = client
  if (problems.length === 0) refuseOthersListeners({ client, controller }, settings, roles, report)
  const interBrokerName =
    settings.interBrokerListenerName === null || !roles.broker
      ? undefined
      : normalized(settings.interBrokerListenerName)
  if (interBrokerName !== undefined && !client.some((listener) => listener.name === interBrokerName)) {
    const names = client.map((listener) => listener.name).join(', ')
    report(
      'inter.broker.listener.name',
      `inter.broker.listener.name=${shortened(interBrokerName)}: the listeners for clients are ${names}`,
    )
  }
  const controllerName = controller[0]?.name ?? [...controllerNames][0]
  const controllerProtocol = protocols.get(controllerName ?? '')
  if (controller.length === 0 && controllerProtocol?.startsWith('SASL_')) {
    const key = 'listener.security.protocol.map'
    report(
      key,
      `${key}=${controllerName}:${controllerProtocol}: ${controllerProtocol} is not built yet; use PLAINTEXT or SSL`,
    )
  }
  return {
    client,
    controller,
    interBrokerName: interBrokerName ?? firstClient?.name ?? '',
    controllerSecurity:
      controllerName === undefined ? undefined : { name: controllerName, protocol: controllerProtocol ?? 'PLAINTEXT' },
  }
}

/** As in Kafka, a node listens for what it does, and for nothing else. */
function refuseOthersListeners(
  { client, controller }: Pick<Listeners, 'client' | 'controller'>,
  settings: ListenerSettings,
  roles: Roles,
  report: Report,
): void {
  const text = shortened(settings.listeners.join(','))
  const [foreign] = roles.broker ? (roles.controller ? [] : controller) : client
  if (foreign !== undefined && roles.broker) {
    const message = `listeners=${text}: ${foreign.name} is one of controller.listener.names, and process.roles=broker serves no quorum; allowed are listeners for clients`
    report('listeners', message)
  } else if (foreign !== undefined) {
    const message = `listeners=${text}: ${foreign.name} is none of controller.listener.names, and process.roles=controller serves no clients; allowed are listeners that are named there`
    report('listeners', message)
  } else if (roles.broker && client.length === 0) {
    report(
      'listeners',
      `listeners=${text}: at least one listener for clients is needed, not named in controller.listener.names`,
    )
  }
}

interface Endpoint {
  readonly text: string
  readonly name: string
  readonly host: string
  readonly port: number
}

type Report = (key: string, message: string) => void

function parseEndpoints(key: string, texts: readonly string[], report: Report): Map<string, Endpoint> {
  const endpoints = new Map<string, Endpoint>()
  for (const text of texts) {
    const endpoint = parseEndpoint(text)
    if (endpoint === undefined) {
      report(
        key,
        `${key}=${shortened(text)}: allowed is NAME://host:port with a port from 0 to 65535, such as PLAINTEXT://localhost:9092`,
      )
    } else if (endpoints.has(endpoint.name)) {
      report(key, `${key}=${text}: the name ${endpoint.name} is used twice`)
    } else {
      endpoints.set(endpoint.name, endpoint)
    }
  }
  return endpoints
}

function parseEndpoint(text: string): Endpoint | undefined {
  const match = /^([A-Za-z0-9_.-]{1,255}):\/\/(?:\[([0-9A-Fa-f:.%]{2,60})\]|([0-9A-Za-z._-]{0,255})):(\d{1,5})$/.exec(
    text,
  )
  if (match === null) return undefined
  const port = Number(match[4])
  const host = match[2] ?? match[3]
  return port > 65_535 ? undefined : { text: shortened(text), name: normalized(match[1]!), host: host || '::', port }
}

/** Kafka compares listener names without regard to case and shows them in capitals. */
function normalized(name: string): string {
  return name.trim().toUpperCase()
}

function parseSecurityMap(text: string, controllerNames: ReadonlySet<string>, report: Report): Map<string, string> {
  const key = 'listener.security.protocol.map'
  const protocols = new Map<string, string>()
  for (const pair of text.split(',')) {
    if (pair.trim() === '') continue
    const match = /^\s*([A-Za-z0-9_.-]{1,255})\s*:\s*([A-Za-z_]{1,30})\s*$/.exec(pair)
    const name = match === null ? '' : normalized(match[1]!)
    const protocol = match?.[2]?.toUpperCase() ?? ''
    if (!securityProtocols.has(protocol)) {
      const allowed = [...securityProtocols].join(', ')
      report(key, `${key}=${shortened(pair.trim())}: allowed is NAME:PROTOCOL with a protocol of ${allowed}`)
    } else if (protocols.has(name)) {
      report(key, `${key}=${pair.trim()}: the name ${name} is used twice`)
    } else {
      protocols.set(name, protocol)
    }
  }
  for (const name of controllerNames) if (!protocols.has(name)) protocols.set(name, 'PLAINTEXT')
  return protocols
}

/** Two listeners may share a port only when each is on an address of its own. */
function refuseSharedPorts(endpoints: ReadonlyMap<string, Endpoint>, report: Report): void {
  const list = [...endpoints.values()]
  for (const [index, endpoint] of list.entries()) {
    const other = list.slice(0, index).find((before) => before.port !== 0 && sharePort(before, endpoint))
    if (other === undefined) continue
    report('listeners', `listeners=${endpoint.text}: ${other.text} has that port already`)
  }
}

function sharePort(left: Endpoint, right: Endpoint): boolean {
  if (left.port !== right.port) return false
  return left.host === right.host || isEveryAddress(left.host) || isEveryAddress(right.host)
}

function withAdvertised(
  endpoint: Endpoint,
  advertised: Endpoint | undefined,
  securityProtocol: ListenerConfig['securityProtocol'],
): ListenerConfig {
  const ownHost = isEveryAddress(endpoint.host) ? null : endpoint.host
  const ownPort = endpoint.port === 0 ? null : endpoint.port
  return Object.freeze({
    name: endpoint.name,
    host: endpoint.host,
    port: endpoint.port,
    securityProtocol,
    advertisedHost: advertised === undefined ? ownHost : advertised.host,
    // Port 0 in what is advertised has no meaning of its own: the port that was picked.
    advertisedPort: advertised === undefined || advertised.port === 0 ? ownPort : advertised.port,
  })
}
