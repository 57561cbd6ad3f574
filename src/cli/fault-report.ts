import { RookeryError } from '../base/index.ts'
import { ConfigError } from '../config/index.ts'
import { KafkaClientError } from '../network/index.ts'
import { DirectoryLockedError, FileError, NetworkError } from '../platform/index.ts'
import { connectionFaultText } from './client/errors.ts'
import { exitCodes, UsageError } from './exit.ts'

export interface FaultReport {
  readonly exitCode: number
  /** For a person, without a line feed at its end. */
  readonly text: string
}

/** A sentence for each fault that is expected; a stack only for what is a bug. */
export function reportOf(error: unknown): FaultReport {
  if (error instanceof ConfigError || error instanceof UsageError) {
    return { exitCode: exitCodes.usage, text: error.message }
  }
  return { exitCode: exitCodes.fault, text: sentenceOf(error) }
}

function sentenceOf(error: unknown): string {
  if (error instanceof NetworkError && error.operation === 'listen') return listenSentence(error)
  if (error instanceof NetworkError || error instanceof KafkaClientError) return connectionFaultText(error)
  if (error instanceof FileError) return fileSentence(error)
  if (error instanceof DirectoryLockedError) return error.message
  if (error instanceof RookeryError) return withCauses(error)
  if (isSystemError(error)) return error.message
  return error instanceof Error ? (error.stack ?? error.message) : String(error)
}

/** A call of the system that failed for a reason of its own, such as a file that this user may not read. */
function isSystemError(error: unknown): error is NodeJS.ErrnoException {
  return error instanceof Error && typeof (error as NodeJS.ErrnoException).syscall === 'string'
}

function listenSentence({ address, systemCode, message }: NetworkError): string {
  const remedy = 'choose another with --override listeners=PLAINTEXT://localhost:PORT'
  if (systemCode === 'EADDRINUSE') return `${address} is in use by another program: stop that one, or ${remedy}`
  if (systemCode === 'EACCES') return `This user may not listen on ${address}: ${remedy}`
  if (systemCode === 'EADDRNOTAVAIL' || systemCode === 'ENOTFOUND') {
    return `${address} is no address of this machine: ${remedy}`
  }
  return message
}

function fileSentence({ path, operation, systemCode, message }: FileError): string {
  if (systemCode === 'EACCES' || systemCode === 'EPERM' || systemCode === 'EROFS') {
    return `This user may not ${operation} ${path}: choose another folder with --override log.dirs=FOLDER`
  }
  if (systemCode === 'ENOSPC' || systemCode === 'EDQUOT') return `The disk is full: cannot ${operation} ${path}`
  if (systemCode === 'ENOTDIR' || systemCode === 'EEXIST') return `${path} is not a folder: cannot ${operation} it`
  return message
}

/** The message with those of its causes, each once; what the system itself said is in them already. */
function withCauses(error: RookeryError): string {
  const messages: string[] = []
  for (let each: unknown = error; each instanceof RookeryError && messages.length < 5; each = each.cause) {
    const { message } = each
    if (!messages.some((said) => said.includes(message))) messages.push(message)
  }
  return messages.join(': ')
}
