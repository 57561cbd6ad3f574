import { spawn } from 'node:child_process'
import { join } from 'node:path'
import type { Peer } from '../../support/peers.ts'

/** Something for Kafka's classes to encode. */
export interface JudgeCase {
  readonly className: string
  readonly version: number
  /** An encoded message, or one as JSON. */
  readonly content: Buffer | string
}

/** What Kafka encodes it to, or what its classes throw. */
export type Verdict = { readonly bytes: Buffer } | { readonly fault: string }

const judge = join(import.meta.dirname, 'CodecJudge.java')

/** Runs all cases in one Java process and gives the verdicts in their order. */
export async function judgeAll(peer: Peer, cases: readonly JudgeCase[]): Promise<Verdict[]> {
  const child = spawn(peer.command, [...peer.args, judge], { stdio: ['pipe', 'pipe', 'pipe'] })
  const output: Buffer[] = []
  let complaints = ''
  child.stdout.on('data', (chunk: Buffer) => output.push(chunk))
  child.stderr.setEncoding('utf8').on('data', (text: string) => (complaints += text))
  child.stdin.on('error', () => undefined) // told by what is missing in the output
  child.stdin.end(Buffer.concat(cases.map(encodeCase)))
  const exitCode = await new Promise((resolve) => child.once('close', resolve))
  const verdicts = decodeVerdicts(Buffer.concat(output))
  if (exitCode !== 0 || verdicts.length !== cases.length) {
    throw new Error(`The judge ended with ${exitCode} after ${verdicts.length} of ${cases.length} cases: ${complaints}`)
  }
  return verdicts
}

function encodeCase({ className, version, content }: JudgeCase): Buffer {
  const name = Buffer.from(className)
  const bytes = Buffer.from(content as string)
  const head = Buffer.alloc(3)
  head.writeInt8(typeof content === 'string' ? 1 : 0, 0)
  head.writeInt16BE(name.length, 1)
  const middle = Buffer.alloc(6)
  middle.writeInt16BE(version, 0)
  middle.writeInt32BE(bytes.length, 2)
  return Buffer.concat([head, name, middle, bytes])
}

function decodeVerdicts(output: Buffer): Verdict[] {
  const verdicts: Verdict[] = []
  let position = 0
  const int32 = () => {
    position += 4
    return output.readInt32BE(position - 4)
  }
  const bytes = (length: number) => {
    position += length
    return output.subarray(position - length, position)
  }
  while (position < output.length) {
    const length = int32()
    verdicts.push(length < 0 ? { fault: bytes(int32()).toString() } : { bytes: bytes(length) })
  }
  return verdicts
}
