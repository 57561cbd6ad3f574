import { deepEqual, equal, ok } from 'node:assert/strict'
import { createHistogram, type RecordableHistogram } from 'node:perf_hooks'
import { apis, buildBatch } from '../../src/protocol/index.ts'
import { type HeldUp, watchHeldUp } from './held-up.ts'
import { connect } from './kafka-connection.ts'
import { startProgram } from './programs.ts'

/** What a well-behaved client saw. Times in milliseconds. */
export interface SteadyTimes {
  readonly rounds: number
  readonly p99Ms: number
  readonly worstMs: number
  /** By API. */
  readonly worstByApi: Readonly<Record<string, number>>
  /** Its own event loop, not the broker's. */
  readonly own: HeldUp
}

/**
 * A client that writes to partition 0 of topic `steady`, reads what it wrote, asks for metadata and commits, round after round, and
 * ends with any error. A process of its own: what else the test does holds up none of its answers.
 */
export function startSteadyClient(address: string) {
  const program = startProgram(process.execPath, [import.meta.filename, address])
  let isStopping = false
  const running = program.ended(2 ** 31 - 1).then(({ exitCode, stdout, output }): SteadyTimes => {
    if (exitCode !== 0 || !isStopping) throw new Error(`The steady client ended with ${exitCode}: ${output}`)
    return JSON.parse(stdout) as SteadyTimes
  })
  running.catch(() => undefined)
  return {
    /** Rejects when it saw an error. */
    failed: running,
    stop(): Promise<SteadyTimes> {
      isStopping = true
      program.endInput()
      return running
    },
  }
}

/** Rounds until the input ends. */
async function run(address: string): Promise<SteadyTimes> {
  let isStopped = false
  process.stdin.resume().once('end', () => {
    isStopped = true
  })
  const heldUp = watchHeldUp()
  const all = createHistogram()
  const byApi = new Map<string, RecordableHistogram>()
  const client = await connect(address, 60_000)
  const times = async <T>(api: string, answer: Promise<T>): Promise<T> => {
    const askedMs = performance.now()
    const given = await answer
    const tookUs = Math.ceil((performance.now() - askedMs) * 1000)
    all.record(tookUs)
    const own = byApi.get(api) ?? createHistogram()
    own.record(tookUs)
    byApi.set(api, own)
    return given
  }
  let offset = 0
  for (; !isStopped; offset++) {
    const records = buildBatch({ records: [{ timestamp: Date.now(), value: Buffer.from(`${offset}`) }] })
    const topicData = [{ name: 'steady', partitionData: [{ index: 0, records }] }]
    const { responses: produced } = await times(
      'Produce',
      client.request(apis.Produce, 9, { acks: -1, timeoutMs: 5000, topicData }),
    )
    const { errorCode, baseOffset } = produced[0]!.partitionResponses[0]!
    deepEqual({ errorCode, baseOffset }, { errorCode: 0, baseOffset: offset }, 'Produce')
    const asked = { partition: 0, fetchOffset: offset, partitionMaxBytes: 1000 }
    const topics = [{ topic: 'steady', partitions: [asked] }]
    const { responses: fetched } = await times(
      'Fetch',
      client.request(apis.Fetch, 11, { maxWaitMs: 1000, minBytes: 1, topics, forgottenTopicsData: [] }),
    )
    const answer = fetched[0]!.partitions[0]!
    const expected = { errorCode: 0, highWatermark: offset + 1 }
    deepEqual({ errorCode: answer.errorCode, highWatermark: answer.highWatermark }, expected, 'Fetch')
    ok(answer.records!.includes(`${offset}`), 'Fetch gives what was written')
    const described = await times('Metadata', client.request(apis.Metadata, 12, { topics: [{ name: 'steady' }] }))
    equal(described.topics[0]!.errorCode, 0, 'Metadata')
    const partitions = [{ partitionIndex: 0, committedOffset: offset, committedMetadata: null }]
    const commit = { groupId: 'steady', memberId: '', topics: [{ name: 'steady', partitions }] }
    const { topics: committed } = await times('OffsetCommit', client.request(apis.OffsetCommit, 8, commit))
    // NOT_COORDINATOR: there is none before somebody asks for one, nor while its topic is deleted and made anew.
    ok([0, 16].includes(committed[0]!.partitions[0]!.errorCode), `OffsetCommit: ${JSON.stringify(committed)}`)
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
  client.close()
  const worstByApi = Object.fromEntries([...byApi].map(([api, { max }]) => [api, Math.round(max / 1000)]))
  return {
    rounds: offset,
    p99Ms: all.percentile(99) / 1000,
    worstMs: all.max / 1000,
    worstByApi,
    own: heldUp(),
  }
}

if (process.argv[1] === import.meta.filename) process.stdout.write(JSON.stringify(await run(process.argv[2]!)))
