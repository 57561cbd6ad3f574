import { type ConfigProblem, shortened } from './config-error.ts'

/** A voter of the metadata quorum, as `controller.quorum.voters` names it. */
export interface QuorumVoter {
  readonly nodeId: number
  readonly host: string
  /** 1 to 65535. */
  readonly port: number
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

/** Every text that is no `host:port` goes to `problems`. */
export function checkBootstrapServers(texts: readonly string[], problems: ConfigProblem[]): void {
  const key = 'controller.quorum.bootstrap.servers'
  for (const text of texts) {
    if (parseServer(text) === undefined) {
      problems.push({ key, message: `${key}=${shortened(text)}: allowed is host:port, such as localhost:9093` })
    }
  }
}

function parseServer(text: string): { host: string; port: number } | undefined {
  const match = hostAndPort.exec(text)
  const port = Number(match?.[3])
  return match !== null && port >= 1 && port <= 65_535 ? { host: match[1] ?? match[2]!, port } : undefined
}
