import { Packr } from 'msgpackr'
import { assert, type Uuid } from '../../base/index.ts'
import type { Membership, NodeId, Voter } from './types.ts'

const packr = new Packr({ useRecords: false, variableMapSize: true })

/** What a 'config' entry carries: msgpack of `[1, [[id, directoryId, endpoint | null] ...]]`. */
export function encodeMembership({ voters }: Membership): Uint8Array {
  return packr.pack([1, voters.map(({ id, directoryId, endpoint }) => [id, directoryId, endpoint ?? null])])
}

/** Of a 'config' entry. Throws on anything else: who can't read it doesn't know who votes, and must stop. */
export function decodeMembership(data: Uint8Array): Membership {
  const body = packr.unpack(data) as unknown
  assert(Array.isArray(body) && body[0] === 1 && Array.isArray(body[1]), 'a config entry is of version 1')
  const voters = (body[1] as unknown[]).map((row): Voter => {
    assert(Array.isArray(row), 'a voter in a config entry is a row')
    const [id, directoryId, endpoint] = row as unknown[]
    assert(Number.isSafeInteger(id) && typeof directoryId === 'string', 'a voter in a config entry is id and directory')
    const voter = { id: id as NodeId, directoryId: directoryId as Uuid }
    return typeof endpoint === 'string' ? { ...voter, endpoint } : voter
  })
  assert(new Set(voters.map(({ id }) => id)).size === voters.length, 'a config entry names each voter once')
  return { voters }
}

export function hasVoter({ voters }: Membership, id: NodeId, directoryId: Uuid): boolean {
  return voters.some((voter) => voter.id === id && voter.directoryId === directoryId)
}

/**
 * How many voters come or go from one to the other; an id with a new directory is one that goes and one that comes. With one
 * at most, every majority of the one meets every majority of the other (thesis §4.1).
 */
export function votersChanged(from: Membership, to: Membership): number {
  const gone = from.voters.filter(({ id, directoryId }) => !hasVoter(to, id, directoryId))
  const come = to.voters.filter(({ id, directoryId }) => !hasVoter(from, id, directoryId))
  return gone.length + come.length
}
