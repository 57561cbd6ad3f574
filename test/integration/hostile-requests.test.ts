import { connect as connectSocket, type Socket } from 'node:net'
import { expect, test } from 'vitest'
import { servedApis } from '../../src/api/registry.ts'
import { type Api, apis, buildBatch, decodeMessage, Reader, readResponseHeader } from '../../src/protocol/index.ts'
import { type Acquaintance, Choices, type HostileFrame, HostileFrames, headerOf } from '../support/hostile-frames.ts'
import { connect } from '../support/kafka-connection.ts'
import { type LoggedBroker, startLoggedBroker } from '../support/logged-broker.ts'

/**
 * A running broker among hostile clients. `ROOKERY_HOSTILE_FRAMES` sets how many frames each run sends, `ROOKERY_HOSTILE_SEED`
 * which.
 */
const frameCount = Number(process.env.ROOKERY_HOSTILE_FRAMES ?? 6000)
const seed = Number(process.env.ROOKERY_HOSTILE_SEED ?? Date.now() % 1_000_000)
/** Connections that send hostile frames at a time. */
const senders = 12
/** Beyond what the broker held before; most of it is code, and garbage that nobody collected yet. */
const maxGrowthBytes = 300 * 1024 * 1024
/** The attackers run in this process too, on a machine that others use. */
const maxStallMs = 5000

const config = {
  'num.partitions': 2,
  'group.initial.rebalance.delay.ms': 0,
  'socket.request.max.bytes': 4 * 1024 * 1024,
  'queued.max.request.bytes': 16 * 1024 * 1024,
  'auto.create.topics.enable': true,
}

test.each(['memory', 'temporary'] as const)(
  'hostile requests get an answer or a closed connection and nobody else notices (%s)',
  { timeout: 60_000 + frameCount * 20 },
  async (storage) => {
    await using hosted = await startLoggedBroker({ storage, topics: ['steady', 'prey-0', 'prey-1'], config })
    const known = await acquaintance(hosted)
    const neighbour = startNeighbour(hosted.bootstrapServers)
    const before = held()
    const beganMs = performance.now()
    const tally: Tally = { sent: 0, answered: 0, opened: new Map(), closed: new Map() }
    await Promise.all(Array.from({ length: senders }, (_, i) => attack(hosted, seed * senders + i, known, tally)))
    const seconds = (performance.now() - beganMs) / 1000
    const { worstMs, rounds } = await neighbour.stop()
    const growth = held() - before
    process.stdout.write(
      `seed ${seed}, ${storage}: ${tally.sent} frames in ${seconds.toFixed(1)} s (${Math.round(tally.sent / seconds)}/s), ` +
        `${tally.answered} answers, ${tally.closed.size} connections closed, ` +
        `worst of ${rounds} rounds beside it ${worstMs.toFixed(0)} ms, grew by ${(growth / 1e6).toFixed(0)} MB\n`,
    )
    expect(worstMs).toBeLessThan(maxStallMs)
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

function held(): number {
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}

async function acquaintance({ bootstrapServers }: LoggedBroker): Promise<Acquaintance> {
  const client = await connect(bootstrapServers)
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

/** A client that does what clients do, and fails on any error. */
function startNeighbour(address: string) {
  let isStopped = false
  let worstMs = 0
  let rounds = 0
  const run = async () => {
    const client = await connect(address)
    let offset = 0
    const times = async <T>(answer: Promise<T>): Promise<T> => {
      const askedMs = performance.now()
      const given = await answer
      worstMs = Math.max(worstMs, performance.now() - askedMs)
      return given
    }
    while (!isStopped) {
      const records = buildBatch({ records: [{ timestamp: Date.now(), value: Buffer.from(`${offset}`) }] })
      const produced = await times(
        client.request(apis.Produce, 9, {
          acks: -1,
          timeoutMs: 5000,
          topicData: [{ name: 'steady', partitionData: [{ index: 0, records }] }],
        }),
      )
      expect(produced.responses[0]!.partitionResponses[0]).toMatchObject({ errorCode: 0, baseOffset: offset })
      const fetched = await times(
        client.request(apis.Fetch, 11, {
          maxWaitMs: 1000,
          minBytes: 1,
          topics: [{ topic: 'steady', partitions: [{ partition: 0, fetchOffset: offset, partitionMaxBytes: 1000 }] }],
          forgottenTopicsData: [],
        }),
      )
      const answer = fetched.responses[0]!.partitions[0]!
      expect(answer).toMatchObject({ errorCode: 0, highWatermark: offset + 1 })
      expect(answer.records!.includes(`${offset}`)).toBe(true)
      const { topics } = await times(client.request(apis.Metadata, 12, { topics: [{ name: 'steady' }] }))
      expect(topics[0]).toMatchObject({ errorCode: 0 })
      const commit = {
        groupId: 'steady',
        memberId: '',
        topics: [
          { name: 'steady', partitions: [{ partitionIndex: 0, committedOffset: offset, committedMetadata: null }] },
        ],
      }
      const committed = await times(client.request(apis.OffsetCommit, 8, commit))
      // The group's first commit may come before its coordinator is there.
      expect([0, 16]).toContain(committed.topics[0]!.partitions[0]!.errorCode)
      offset++
      rounds++
      await new Promise((resolve) => setTimeout(resolve, 5))
    }
    client.close()
  }
  const running = run()
  running.catch(() => undefined)
  return {
    async stop() {
      isStopped = true
      await running
      return { worstMs, rounds }
    },
  }
}

interface Tally {
  sent: number
  answered: number
  /** How many connections a peer's address had, and how many of them the broker closed. */
  readonly opened: Map<string, number>
  readonly closed: Map<string, number>
}

function count(counts: Map<string, number>, key: string): void {
  counts.set(key, (counts.get(key) ?? 0) + 1)
}

async function attack(
  { bootstrapServers }: LoggedBroker,
  ownSeed: number,
  known: Acquaintance,
  tally: Tally,
): Promise<void> {
  const frames = new HostileFrames(ownSeed, known)
  const choices = new Choices(ownSeed)
  while (tally.sent < frameCount) {
    const victim = await Victim.open(bootstrapServers)
    count(tally.opened, victim.name)
    const sent = frames.batch()
    tally.sent += sent.length
    const bytes = Buffer.concat(sent.map((frame) => frame.bytes))
    if (choices.chance(0.1)) {
      // Half a frame, and gone.
      victim.socket.write(bytes.subarray(0, choices.int(bytes.length)))
      await victim.quiet(5)
    } else {
      victim.socket.write(bytes)
      await victim.quiet(30)
    }
    tally.answered += checkAnswers(sent, victim.received, known)
    if (victim.wasClosed) count(tally.closed, victim.name)
    victim.socket.destroy()
  }
}

/** A connection on which anything may happen. */
class Victim {
  readonly socket: Socket
  readonly name: string
  readonly #chunks: Buffer[] = []
  wasClosed = false
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
    if (asked === undefined) throw new Error(`seed ${seed}: answer ${correlationId} was not asked for`)
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
      throw new Error(`seed ${seed}: unreadable answer to ${asked.what}`, { cause: error })
    }
    answered++
    at = end
  }
  return answered
}
