import { connect as connectSocket, type Socket } from 'node:net'
import { expect, test } from 'vitest'
import { servedApis } from '../../src/api/registry.ts'
import { type Api, apis, decodeMessage, Reader, readResponseHeader } from '../../src/protocol/index.ts'
import { BrokerProcess } from '../support/broker-process.ts'
import { type HeldUp, watchHeldUp } from '../support/held-up.ts'
import { type Acquaintance, Choices, type HostileFrame, HostileFrames, headerOf } from '../support/hostile-frames.ts'
import { connect } from '../support/kafka-connection.ts'
import { startLoggedBroker } from '../support/logged-broker.ts'
import { peakResidentBytes } from '../support/programs.ts'
import { startSteadyClient } from '../support/steady-client.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

/**
 * A running broker among hostile clients. `ROOKERY_HOSTILE_FRAMES` sets how many frames each run sends, `ROOKERY_HOSTILE_SEED`
 * which. A failure names seed and batch; `ROOKERY_HOSTILE_FROM` is the batch that a run with that seed begins with.
 */
const frameCount = Number(process.env.ROOKERY_HOSTILE_FRAMES ?? 6000)
const seed = Number(process.env.ROOKERY_HOSTILE_SEED ?? Date.now() % 1_000_000)
const firstBatch = Number(process.env.ROOKERY_HOSTILE_FROM ?? 0)
/** Connections that send hostile frames at a time; more where the broker has a process of its own. */
const senders = { memory: 12, temporary: 12, process: 40 }
/** Beyond what the broker held before; most of it is code, and garbage that nobody collected yet. */
const maxGrowthBytes = 300 * 1024 * 1024
/** Beside what the machine itself held up: others may use it. */
const maxStallMs = 5000
/**
 * Of a process that holds at most twice `queued.max.request.bytes`, workers that unpack 64 MiB, what isn't collected yet, and in
 * long runs some 20,000 partitions that the frames have made.
 */
const maxResidentBytes = 640 * 1024 * 1024

/** What `docker/` sets. */
const asInTheImage = {
  MALLOC_ARENA_MAX: '2',
  NODE_OPTIONS: `${process.env.NODE_OPTIONS ?? ''} --max-semi-space-size=16`,
}

const config = {
  'num.partitions': 2,
  'group.initial.rebalance.delay.ms': 0,
  'socket.request.max.bytes': 4 * 1024 * 1024,
  'queued.max.request.bytes': 16 * 1024 * 1024,
  'auto.create.topics.enable': 'true',
}

test.each(['memory', 'temporary'] as const)(
  'hostile requests get an answer or a closed connection and nobody else notices (%s)',
  { timeout: 60_000 + frameCount * 20 },
  async (storage) => {
    await using hosted = await startLoggedBroker({ storage, topics: ['steady', 'prey-0', 'prey-1'], config })
    const before = held()
    const tally = await siege(hosted.bootstrapServers, storage)
    const growth = held() - before
    process.stdout.write(`grew by ${(growth / 1e6).toFixed(0)} MB\n`)
    expect(growth).toBeLessThan(maxGrowthBytes)
    const lines = Map.groupBy(
      hosted.logLines.filter(({ message }) => message.startsWith('connection closed: ')),
      ({ fields }) => String(fields.peer),
    )
    // A system may give a port to a second connection.
    for (const [peer, count] of tally.closed) expect(lines.get(peer)?.length ?? 0, peer).toBeGreaterThanOrEqual(count)
    for (const [peer, found] of lines) expect(found.length, peer).toBeLessThanOrEqual(tally.opened.get(peer) ?? 0)
    expect(hosted.logLines.filter(({ level }) => level === 'error')).toEqual([])
  },
)

test('hostile requests do not harm a node of its own process, nor its next start', {
  timeout: 120_000 + frameCount * 20,
}, async () => {
  await using folder = await temporaryFolder()
  await using node = await BrokerProcess.start({ folder: folder.path, config, env: asInTheImage })
  const client = await connect(node.bootstrapServers)
  await client.request(apis.Metadata, 9, { topics: ['steady', 'prey-0', 'prey-1'].map((name) => ({ name })) })
  client.close()
  await siege(node.bootstrapServers, 'process')
  const peakBytes = await peakResidentBytes(node.program.pid)
  process.stdout.write(`highest resident memory ${(peakBytes / 1e6).toFixed(0)} MB\n`)
  expect(peakBytes).toBeLessThan(maxResidentBytes)
  expect(node.logLines().filter(({ level }) => level === 'error')).toEqual([])
  const { exitCode, stdout } = await node.stop()
  expect(exitCode, stdout.slice(-1000)).toBe(0)
  await using again = await BrokerProcess.start({ folder: folder.path, config })
  expect(again.logLines().filter(({ level }) => level === 'error')).toEqual([])
})

/** Attacks until all frames are sent, with a well-behaved client beside it that sees no error. */
async function siege(address: string, kind: keyof typeof senders): Promise<Tally> {
  const known = await acquaintance(address)
  const neighbour = startSteadyClient(address)
  const heldUp = watchHeldUp()
  const beganMs = performance.now()
  const tally: Tally = { batch: firstBatch, sent: 0, answered: 0, opened: new Map(), closed: new Map() }
  await Promise.race([
    Promise.all(Array.from({ length: senders[kind] }, () => attack(address, known, tally))),
    neighbour.failed, // then there is no use to go on
  ])
  const seconds = (performance.now() - beganMs) / 1000
  const here = heldUp()
  const { worstMs, p99Ms, rounds, worstByApi, own } = await neighbour.stop()
  const shown = ({ worstMs: longestMs, byMachineMs }: HeldUp) =>
    `held up for at most ${longestMs.toFixed(0)} ms, by the machine ${byMachineMs.toFixed(0)} in all`
  const report =
    `seed ${seed}, ${kind}: ${tally.sent} frames in ${seconds.toFixed(1)} s (${Math.round(tally.sent / seconds)}/s), ` +
    `${tally.answered} answers, ${tally.closed.size} peers with connections closed, ` +
    `${rounds} rounds beside it: p99 ${p99Ms.toFixed(0)} ms, worst ${worstMs.toFixed(0)} ms ` +
    `(${JSON.stringify(worstByApi)}; it was ${shown(own)}; the attackers ${shown(here)})`
  process.stdout.write(`${report}\n`)
  expect(worstMs, report).toBeLessThan(maxStallMs + own.byMachineMs + here.byMachineMs)
  return tally
}

function held(): number {
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}

async function acquaintance(address: string): Promise<Acquaintance> {
  const client = await connect(address)
  const { topics } = await client.request(apis.Metadata, 12, { topics: null })
  client.close()
  const ids = topics.filter(({ name }) => name !== 'steady').map(({ topicId }) => topicId)
  const names = [
    'prey-0',
    'prey-1',
    'prey',
    'prey-delete',
    'prey.a',
    'prey_a',
    'PREY',
    'new-topic',
    '__consumer_offsets',
  ]
  return { topics: names, topicIds: ids, groups: ['g', 'group-1', 'group-2'], memberIds: [] }
}

interface Tally {
  /** The next to be sent, by whoever is free. */
  batch: number
  sent: number
  answered: number
  /** How many connections a peer's address had, and how many of them the broker closed. */
  readonly opened: Map<string, number>
  readonly closed: Map<string, number>
}

function count(counts: Map<string, number>, key: string): void {
  counts.set(key, (counts.get(key) ?? 0) + 1)
}

/** Each batch is made from the seed and its own number alone. */
async function attack(address: string, known: Acquaintance, tally: Tally): Promise<void> {
  while (tally.sent < frameCount) {
    const batch = tally.batch++
    const ownSeed = Math.imul(seed, 0x9e3779b1) + batch
    const sent = new HostileFrames(ownSeed, known).batch()
    tally.sent += sent.length
    if (batch % 20_000 === 19_999) process.stdout.write(`seed ${seed}: ${tally.sent} frames, batch ${batch}\n`)
    const victim = await Victim.open(address)
    count(tally.opened, victim.name)
    await victim.take(Buffer.concat(sent.map((frame) => frame.bytes)), new Choices(ownSeed))
    try {
      tally.answered += checkAnswers(sent, victim.received, known)
    } catch (error) {
      throw new Error(`seed ${seed}, batch ${batch}`, { cause: error })
    }
    if (victim.wasClosed && !victim.hasEnded) count(tally.closed, victim.name)
    victim.socket.destroy()
  }
}

/** A connection on which anything may happen. */
class Victim {
  readonly socket: Socket
  readonly name: string
  readonly #chunks: Buffer[] = []
  wasClosed = false
  /** Its own end is the reason for the other side's. */
  hasEnded = false
  #lastMs = performance.now()

  static open(address: string): Promise<Victim> {
    const [host, port] = address.split(':')
    return new Promise((resolve, reject) => {
      const socket = connectSocket({ host: host!, port: Number(port) }, () => resolve(new Victim(socket)))
      socket.once('error', reject)
    })
  }

  constructor(socket: Socket) {
    this.socket = socket
    const { localAddress, localPort } = socket
    this.name = `${localAddress!.includes(':') ? `[${localAddress}]` : localAddress}:${localPort}`
    socket.on('error', () => undefined)
    socket.on('data', (chunk) => {
      this.#lastMs = performance.now()
      this.#chunks.push(chunk)
    })
    socket.on('end', () => {
      this.wasClosed = true
    })
  }

  get received(): Buffer {
    return Buffer.concat(this.#chunks)
  }

  /** Sends `bytes` in one of the ways of hostile clients, and waits for what comes of it. */
  async take(bytes: Buffer, choices: Choices): Promise<void> {
    if (choices.chance(0.1)) {
      // Half a frame, and gone.
      this.socket.write(bytes.subarray(0, choices.int(bytes.length)))
      return await this.quiet(5)
    }
    if (choices.chance(0.03)) {
      // In small pieces, with pauses.
      const pieceBytes = Math.max(1, Math.ceil(bytes.length / (2 + choices.int(20))))
      for (let at = 0; at < bytes.length && !this.wasClosed; at += pieceBytes) {
        this.socket.write(bytes.subarray(at, at + pieceBytes))
        await new Promise((resolve) => setTimeout(resolve, 5))
      }
    } else this.socket.write(bytes)
    if (choices.chance(0.1)) {
      this.hasEnded = true
      this.socket.end()
    }
    await this.quiet(30)
  }

  /** Until the other side closes or says nothing for a while, and for longer when it has said nothing yet. */
  async quiet(ms: number): Promise<void> {
    this.#lastMs = performance.now()
    while (!this.wasClosed && performance.now() - this.#lastMs < (this.#chunks.length > 0 ? ms : 10 * ms)) {
      await new Promise((resolve) => setTimeout(resolve, 2))
    }
  }
}

/** Every answer is whole, in order and readable as what was asked for. */
function checkAnswers(sent: readonly HostileFrame[], received: Buffer, known: Acquaintance): number {
  const unanswered = [...sent]
  let answered = 0
  for (let at = 0; at + 4 <= received.length; ) {
    const end = at + 4 + received.readInt32BE(at)
    if (end > received.length) break
    const correlationId = received.readInt32BE(at + 4)
    let asked = unanswered.shift()
    while (asked !== undefined && headerOf(asked)?.correlationId !== correlationId) asked = unanswered.shift()
    if (asked === undefined) throw new Error(`Answer ${correlationId} was not asked for`)
    const { apiKey, version } = headerOf(asked)!
    const served = servedApis.find((each) => each.api.key === apiKey)!
    const api: Api = served.api
    const isFallback = api === apis.ApiVersions && version > served.versions.max
    try {
      const reader = new Reader(received.subarray(at + 4, end))
      const shown = isFallback || version < 0 ? 0 : version
      readResponseHeader(api, shown, reader)
      const response = decodeMessage(api.response, shown, reader) as { memberId?: string }
      if (reader.remaining > 0) throw new Error(`${reader.remaining} bytes are left`)
      const { memberId } = response
      if (memberId !== undefined && memberId !== '' && known.memberIds.length < 50) known.memberIds.push(memberId)
    } catch (error) {
      throw new Error(`Unreadable answer to ${asked.what}`, { cause: error })
    }
    answered++
    at = end
  }
  return answered
}
