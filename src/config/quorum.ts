import type { BrokerId } from '../base/index.ts'
import type { BrokerValues } from './broker-keys.ts'
import { type ConfigProblem, shortened } from './config-error.ts'
import type { Roles } from './listeners.ts'

export interface ServerAddress {
  readonly host: string
  /** 1 to 65535. */
  readonly port: number
}

/** A voter of the metadata quorum, as `controller.quorum.voters` names it. */
export interface QuorumVoter extends ServerAddress {
  readonly nodeId: number
}

const hostAndPort = /^(?:\[([0-9A-Fa-f:.%]{2,60})\]|([0-9A-Za-z._-]{1,255})):(\d{1,5})$/

/** The voters that `id@host:port` texts name; what can't be read goes to `problems`. */
export function parseQuorumVoters(texts: readonly string[], problems: ConfigProblem[]): readonly QuorumVoter[] {
  const key = 'controller.quorum.voters'
  const voters: QuorumVoter[] = []
  for (const text of texts) {
    const at = text.indexOf('@')
    const idText = text.slice(0, Math.max(at, 0))
    const server = parseServer(text.slice(at + 1))
    const nodeId = Number(idText)
    if (!/^\d{1,10}$/.test(idText) || nodeId > 2 ** 31 - 1 || server === undefined) {
      problems.push({ key, message: `${key}=${shortened(text)}: allowed is id@host:port, such as 1@localhost:9093` })
    } else if (voters.some((voter) => voter.nodeId === nodeId)) {
      problems.push({ key, message: `${key}=${shortened(text)}: the id ${nodeId} is used twice` })
    } else {
      voters.push({ nodeId, ...server })
    }
  }
  return Object.freeze(voters)
}

/** The places that `host:port` texts name, each once; what can't be read goes to `problems`. */
export function parseBootstrapServers(texts: readonly string[], problems: ConfigProblem[]): readonly ServerAddress[] {
  const key = 'controller.quorum.bootstrap.servers'
  const servers: ServerAddress[] = []
  for (const text of new Set(texts)) {
    const server = parseServer(text)
    if (server !== undefined) servers.push(server)
    else problems.push({ key, message: `${key}=${shortened(text)}: allowed is host:port, such as localhost:9093` })
  }
  return Object.freeze(servers)
}

function parseServer(text: string): ServerAddress | undefined {
  const match = hostAndPort.exec(text)
  const port = Number(match?.[3])
  return match !== null && port >= 1 && port <= 65_535 ? { host: match[1] ?? match[2]!, port } : undefined
}

interface QuorumSettings {
  readonly values: BrokerValues
  readonly nodeId: BrokerId
  readonly roles: Roles
  readonly voters: readonly QuorumVoter[]
  readonly controllerListenerCount: number
}

/** Broker and controller in one, and a quorum of its own that nobody else is to know: it has no way to other nodes. */
export function isAlone({ values, nodeId, roles, voters, controllerListenerCount }: QuorumSettings): boolean {
  if (!roles.broker || !roles.controller || values.controllerQuorumBootstrapServers.length > 0) return false
  const isOnlyVoter = voters.length === 1 && voters[0]?.nodeId === nodeId
  return voters.length === 0 || (isOnlyVoter && controllerListenerCount === 0)
}

/**
 * What Kafka asks of the settings of a quorum. A node that is broker and controller in one may name nobody: it is alone then, and
 * stays so.
 */
export function checkQuorum(settings: QuorumSettings, problems: ConfigProblem[]): void {
  const { values, nodeId, roles, voters, controllerListenerCount } = settings
  const report = (key: string, message: string) => problems.push({ key, message: `${key}${message}` })
  const isVoter = voters.some((voter) => voter.nodeId === nodeId)
  const rolesText = `process.roles=${values.processRoles.join(',')}`
  const names = shortened(voters.map((voter) => `${voter.nodeId}@${voter.host}:${voter.port}`).join(','))
  const namesNobody = voters.length === 0 && values.controllerQuorumBootstrapServers.length === 0
  if (namesNobody && !(roles.broker && roles.controller)) {
    const where = 'allowed are the places of controllers there, or the voters in controller.quorum.voters'
    report('controller.quorum.bootstrap.servers', ` is not set, and ${rolesText} needs a quorum; ${where}`)
  }
  if (voters.length > 0 && roles.controller && !isVoter) {
    report('controller.quorum.voters', `=${names} contradicts node.id=${nodeId}: this node must be one of the voters`)
  }
  if (isVoter && !roles.controller) {
    const allowed = 'allowed is another id, or the role controller'
    report('controller.quorum.voters', `=${names} names node ${nodeId}, and ${rolesText} has no vote; ${allowed}`)
  }
  if (isAlone(settings) || problems.length > 0) return
  if (values.controllerListenerNames.length === 0) {
    report(
      'controller.listener.names',
      ' is not set: a node with a quorum names the listener of controllers there, such as CONTROLLER',
    )
  } else if (roles.controller && controllerListenerCount === 0) {
    report('controller.listener.names', ': one of listeners must be named here, such as CONTROLLER')
  }
}
