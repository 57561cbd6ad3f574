import { AssertionError, messageOf } from '../base/index.ts'
import { ConfigError } from '../config/index.ts'
import { CoordinationError } from '../coordination/index.ts'
import { ClusterIdMismatchError, StorageError } from '../log/index.ts'
import { MetadataFormatError } from '../metadata/index.ts'
import { DirectoryLockedError, FileError, NetworkError } from '../platform/index.ts'
import { RaftStorageError } from '../raft/index.ts'
import { RpcError } from '../rpc/index.ts'

/** An error on its way to another thread: to clone it as it is would leave a plain Error, which nobody could tell from a bug. */
export interface SentError {
  readonly name: string
  readonly message: string
  readonly stack: string | undefined
  /** Its own fields: `code`, `reason`, `path` and the like. */
  readonly fields: Readonly<Record<string, unknown>>
  readonly cause: SentError | undefined
}

/** Those by which a node, or who runs it, decides. Any other comes as an Error with its name. */
const classes: ReadonlyMap<string, { readonly prototype: Error }> = new Map(
  [
    AssertionError,
    ClusterIdMismatchError,
    ConfigError,
    CoordinationError,
    DirectoryLockedError,
    FileError,
    MetadataFormatError,
    NetworkError,
    RaftStorageError,
    RpcError,
    StorageError,
  ].map((each) => [each.name, each]),
)
/** Further ones are left out: a chain may be a ring. */
const maxCauses = 5

export function sentError(error: unknown, causes = maxCauses): SentError {
  if (!(error instanceof Error))
    return { name: 'Error', message: messageOf(error), stack: undefined, fields: {}, cause: undefined }
  const { name, message, stack, cause } = error
  const fields = Object.fromEntries(
    Object.entries(error).filter(([key, value]) => key !== 'name' && (isScalar(value) || isTable(value))),
  )
  const isLast = cause === undefined || causes === 0
  return { name, message, stack, fields, cause: isLast ? undefined : sentError(cause, causes - 1) }
}

/** The error as it was thrown: of its class, with its fields, causes and stack. */
export function receivedError({ name, message, stack, fields, cause }: SentError): Error {
  const error = new Error(message, cause === undefined ? undefined : { cause: receivedError(cause) })
  const known = classes.get(name)
  if (known !== undefined) Object.setPrototypeOf(error, known.prototype)
  Object.assign(error, fields)
  error.name = name
  if (stack !== undefined) error.stack = stack
  return error
}

function isScalar(value: unknown): boolean {
  return ['string', 'number', 'boolean'].includes(typeof value)
}

/** A list of records, as the problems of a `ConfigError`. */
function isTable(value: unknown): boolean {
  return Array.isArray(value) && value.every((row) => Object.values(row as object).every(isScalar))
}
