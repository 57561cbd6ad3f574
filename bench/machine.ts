import { execFileSync } from 'node:child_process'
import { closeSync, fdatasync, openSync, unlinkSync, writeSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { cpus, loadavg, totalmem } from 'node:os'
import { join } from 'node:path'
import type { FetchLoad, ProduceLoad } from './load.ts'
import { runLoad, startSink } from './processes.ts'

/** MB/s are 10^6 bytes a second everywhere in the benchmarks. */
export const megabyte = 1e6

/** What a disk can do for one kind of write. */
export interface DiskLimit {
  readonly megabytesPerSecond: number
  readonly p50Ms: number
}

/** `batchBytes` written at the end of a file, again and again, each time with fdatasync before the next. */
export async function syncedWriteLimit(directory: string, batchBytes: number, ms: number): Promise<DiskLimit> {
  return await writeLimit(directory, batchBytes, ms, true)
}

/** The same without fdatasync: into the page cache. */
export async function cachedWriteLimit(directory: string, batchBytes: number, ms: number): Promise<DiskLimit> {
  return await writeLimit(directory, batchBytes, ms, false)
}

/** At most this much is written to measure a limit. */
const maxProbeBytes = 512e6

async function writeLimit(directory: string, batchBytes: number, ms: number, synced: boolean): Promise<DiskLimit> {
  const path = join(directory, 'disk-limit.probe')
  const batch = Buffer.alloc(batchBytes, 1)
  const fd = openSync(path, 'w')
  const times: number[] = []
  let bytes = 0
  const startedMs = performance.now()
  while (performance.now() - startedMs < ms && bytes < maxProbeBytes) {
    const beganMs = performance.now()
    writeSync(fd, batch, 0, batchBytes, bytes)
    if (synced)
      await new Promise<void>((resolve, reject) => fdatasync(fd, (error) => (error ? reject(error) : resolve())))
    times.push(performance.now() - beganMs)
    bytes += batchBytes
  }
  const seconds = (performance.now() - startedMs) / 1000
  closeSync(fd)
  unlinkSync(path)
  times.sort((a, b) => a - b)
  return { megabytesPerSecond: bytes / megabyte / seconds, p50Ms: times[times.length >>> 1]! }
}

/** Bytes of an answer to a Produce request for a topic with a short name. */
const produceAnswerBytes = 60

/** The same produce load against a server that only answers. */
export async function loopbackProduceLimit(produce: ProduceLoad, partitions: number, ms: number) {
  const sink = await startSink(produceAnswerBytes)
  try {
    const { measured } = await runLoad({
      port: sink.port,
      topic: 'bench',
      partitions,
      produce: { ...produce, unchecked: true },
      warmUpMs: ms / 2,
      measureMs: ms,
    })
    return measured
  } finally {
    sink.stop()
  }
}

/** Answers of `answerBytes` to small requests, as a server that has them ready sends them. */
export async function loopbackFetchLimit(fetch: FetchLoad, answerBytes: number, ms: number) {
  const sink = await startSink(answerBytes)
  try {
    const load = { ...fetch, unchecked: true }
    const { measured } = await runLoad({
      port: sink.port,
      topic: 'bench',
      partitions: fetch.connections,
      fetch: load,
      warmUpMs: ms / 2,
      measureMs: ms,
    })
    return measured
  } finally {
    sink.stop()
  }
}

/** Processor time that a process used. Linux only. User and system time are fields 14 and 15, in ticks of 10 ms; the second field, the name, may hold blanks. */
export async function cpuSeconds(pid: number): Promise<number> {
  const stat = await readFile(`/proc/${pid}/stat`, 'latin1')
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[11]) + Number(fields[12])) / 100
}

/** Such as VmRSS. Linux only. */
export async function statusBytes(pid: number, name: string): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'latin1')
  return Number(new RegExp(`${name}:\\s+(\\d+) kB`).exec(status)?.[1] ?? 0) * 1024
}

/** Where a figure was measured: without that it says nothing. */
export function machineLine(): string {
  const cores = cpus()
  const memory = Math.round(totalmem() / 2 ** 30)
  return `Node ${process.versions.node}, ${cores.length} x ${cores[0]?.model.trim() ?? 'unknown CPU'}, ${memory} GiB, commit ${commit()}`
}

/** What else ran: a benchmark that shares its cores says so. */
export function loadText(): string {
  return `Load of the machine over the last minutes: ${loadavg()
    .map((load) => load.toFixed(1))
    .join(', ')}`
}

function commit(): string {
  try {
    const text = execFileSync('git', ['describe', '--always', '--dirty'], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    })
    return text.trim()
  } catch {
    return 'unknown' // an unpacked archive
  }
}
