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
  if (error instanceof RookeryError) return fileSentenceWithin(error) ?? withCauses(error)
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
    return `listeners: ${address} is no address of this machine: ${remedy}`
  }
  return message
}

function fileSentence(error: FileError): string {
  return adviceFor(error) ?? error.message
}

/** Of a fault that a file is the cause of: what was to be done with it counts less than what to do now. */
function fileSentenceWithin(error: RookeryError): string | undefined {
  let cause: unknown = error
  for (let depth = 0; depth < 5 && cause instanceof Error && !(cause instanceof FileError); depth++) cause = cause.cause
  return cause instanceof FileError ? adviceFor(cause) : undefined
}

function adviceFor({ path, operation, systemCode, message }: FileError): string | undefined {
  const remedy = 'choose another folder with --override log.dirs=FOLDER'
  switch (systemCode) {
    case 'EROFS':
      return `The disk of ${path} is read-only: make it writable, or ${remedy}`
    case 'EACCES':
    case 'EPERM':
      return `This user may not ${operation} ${path}: ${remedy}`
    case 'ENOSPC':
    case 'EDQUOT':
      return `The disk is full: cannot ${operation} ${path}`
    case 'ENOTDIR':
    case 'EEXIST':
      return `${path} is not a folder: cannot ${operation} it; ${remedy}`
    default:
      return operation === 'make folder' ? `${message}: ${remedy}` : undefined
  }
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
