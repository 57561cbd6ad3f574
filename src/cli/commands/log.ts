import { stat } from 'node:fs/promises'
import { createRealPlatform } from '../../platform/index.ts'
import { exitCodes, UsageError } from '../exit.ts'
import { type DumpedBatch, type DumpedRecord, type DumpedRest, dumpSegments } from '../log-files/dump.ts'
import { type Finding, Findings } from '../log-files/findings.ts'
import { type LogPath, lockHolderOf, logDirectoryOf, openLogPath, type PartitionFolder } from '../log-files/folder.ts'
import { readCheckpoints, verifyDirectory, verifyPartition } from '../log-files/verify.ts'
import {
  BufferedOutput,
  counted,
  endWithReader,
  note,
  type OutputOptions,
  Progress,
  show,
  sizeText,
  timeText,
} from '../output.ts'
import { formatJson, formatText } from '../record-text.ts'
import { printable } from '../table.ts'

export interface DumpOptions extends OutputOptions {
  readonly records?: boolean
  /** Both inclusive. */
  readonly from?: number
  readonly to?: number
}

/** Prints the batches of segments or of partitions, and their records when asked. Reads only. */
export async function dump(paths: readonly string[], options: DumpOptions): Promise<void> {
  const { from = 0, to = Number.MAX_SAFE_INTEGER } = options
  if (from > to) throw new UsageError(`--from ${from} lies behind --to ${to}`)
  endWithReader()
  const logs: Exclude<LogPath, { readonly kind: 'directory' }>[] = []
  // All are looked at before the first is printed.
  for (const path of paths) {
    const log = await openLogPath(path)
    if (log.kind === 'directory') {
      const [first] = log.partitions
      const help = first === undefined ? 'It holds none' : `It holds ${first.name}, for example`
      throw new UsageError(`${path} is a folder of partitions, and single partitions can be dumped. ${help}`)
    }
    logs.push(log)
  }
  const output = new BufferedOutput()
  const holders = new Map<string, string | undefined>()
  for (const [index, log] of logs.entries()) {
    const directory = logDirectoryOf(log)
    if (!holders.has(directory)) holders.set(directory, await warnOfHolder(log))
    if (index > 0 && options.json !== true) await output.add('\n')
    await dumpOne(log, { from, to, isMoving: holders.get(directory) !== undefined }, options, output)
  }
  await output.flush()
}

async function dumpOne(
  log: Exclude<LogPath, { readonly kind: 'directory' }>,
  { from, to, isMoving }: { readonly from: number; readonly to: number; readonly isMoving: boolean },
  options: DumpOptions,
  output: BufferedOutput,
): Promise<void> {
  const { partition } = log
  const segments = log.kind === 'segment' ? [log.segment] : partition.segments
  if (segments.length === 0) note(`rookery: ${partition.name} has no segments`)
  const withRecords = options.records === true
  let file = ''
  const dumped = dumpSegments({
    topic: partition.topic,
    segments,
    fromOffset: from,
    toOffset: to,
    records: withRecords,
  })
  for await (const each of dumped) {
    // What a broker is about to write is no damage.
    if (isDamaged(each) && !(isMoving && each.kind === 'rest')) process.exitCode = exitCodes.fault
    if (options.json === true) await output.add(jsonLines(each, partition))
    else {
      if (each.file !== file) await output.add(`${file === '' ? '' : '\n'}${printable(each.file)}\n${batchTitle}`)
      file = each.file
      await output.add(each.kind === 'rest' ? `${restText(each)}\n` : batchText(each, partition))
    }
  }
}

export interface VerifyOptions extends OutputOptions {
  readonly records?: boolean
}

/** Checks every batch and every file beside them. Reads only; the exit code says whether there was a fault. */
export async function verify(path: string, options: VerifyOptions): Promise<void> {
  endWithReader()
  const log = await openLogPath(path)
  const holder = await warnOfHolder(log)
  const findings = new Findings()
  const partitions = log.kind === 'directory' ? log.partitions : [log.partition]
  const totalBytes = process.stderr.isTTY === true ? await bytesOf(partitions) : 0
  const progress = new Progress()
  let readBytes = 0
  const verifying = {
    files: createRealPlatform().files,
    findings,
    isMoving: holder !== undefined,
    records: options.records === true,
    onRead: (bytes: number) => {
      readBytes += bytes
      progress.show(() => `${sizeText(readBytes)} of ${sizeText(totalBytes)}, ${counted(findings.faultCount, 'fault')}`)
    },
  }
  const directory = logDirectoryOf(log)
  const checkpoints = await readCheckpoints(directory, verifying)
  if (log.kind === 'directory') await verifyDirectory(directory, partitions, checkpoints, verifying)
  for (const partition of partitions) {
    const isOne = log.kind === 'segment' ? { ...partition, segments: [log.segment] } : partition
    await verifyPartition(isOne, checkpoints, { ...verifying, isPart: log.kind === 'segment' })
  }
  progress.clear()
  const result = { path: log.path, inUseBy: holder ?? null, ...findings.counts, faults: findings.faultCount }
  await show(options, { ...result, findings: findings.all }, () => reportText(findings))
  if (findings.faultCount > 0) process.exitCode = exitCodes.fault
}

/** Who may be writing meanwhile. */
async function warnOfHolder(log: LogPath): Promise<string | undefined> {
  const holder = await lockHolderOf(logDirectoryOf(log))
  if (holder !== undefined) {
    note(`rookery: ${logDirectoryOf(log)} is in use by ${holder}: what is read here may be changing meanwhile`)
  }
  return holder
}

async function bytesOf(partitions: readonly PartitionFolder[]): Promise<number> {
  let sum = 0
  for (const { segments } of partitions) {
    for (const { path } of segments) sum += (await stat(path).catch(() => undefined))?.size ?? 0
  }
  return sum
}

function reportText(findings: Findings): string {
  const { partitions, segments, batches, records, bytes } = findings.counts
  const lines = findings.all.map(findingText)
  const seen = [
    counted(partitions, 'partition'),
    counted(segments, 'segment'),
    `${batches} batch${batches === 1 ? '' : 'es'}`,
    counted(records, 'record'),
    sizeText(bytes),
  ]
  const faults = findings.faultCount === 0 ? 'no faults' : counted(findings.faultCount, 'fault')
  return `${lines.map((line) => `${line}\n`).join('')}${seen.join(', ')}: ${faults}\n`
}

function findingText({ level, file, position, message }: Finding): string {
  const place = position === undefined ? file : `${file} at ${position}`
  return printable(`${level === 'fault' ? 'FAULT' : 'NOTE '} ${place}: ${message}`)
}

function isDamaged(each: DumpedBatch | DumpedRest): boolean {
  if (each.kind === 'rest') return each.fault !== 'zeros'
  return each.crc === 'wrong' || each.recordsFault !== undefined
}

/** The columns of a batch, and the least that each takes. */
const batchColumns: readonly (readonly [title: string, width: number, value: (batch: DumpedBatch) => string])[] = [
  ['OFFSETS', 15, ({ baseOffset, lastOffset }) => `${baseOffset}-${lastOffset}`],
  ['RECORDS', 7, ({ recordCount }) => `${recordCount}`],
  ['POSITION', 10, ({ position }) => `${position}`],
  ['BYTES', 8, ({ sizeBytes }) => `${sizeBytes}`],
  ['EPOCH', 5, ({ leaderEpoch }) => `${leaderEpoch}`],
  [
    'LAST TIME',
    24,
    ({ maxTimestamp, timestampType }) => timeText(maxTimestamp) + (timestampType === 'append' ? '*' : ''),
  ],
  ['CODEC', 6, ({ codec }) => codec],
  ['PRODUCER', 10, ({ producerId, producerEpoch }) => (producerId < 0 ? '-' : `${producerId}/${producerEpoch}`)],
  ['SEQUENCE', 8, ({ producerId, baseSequence }) => (producerId < 0 ? '-' : `${baseSequence}`)],
  ['CRC', 5, ({ crc }) => (crc === 'ok' ? 'ok' : 'WRONG')],
  ['KIND', 0, kindOf],
]

const batchTitle = `${batchColumns
  .map(([title, width]) => title.padEnd(width))
  .join(' ')
  .trimEnd()}\n`

function kindOf({ isControl, isTransactional }: DumpedBatch): string {
  if (isControl) return 'control'
  return isTransactional ? 'transactional' : ''
}

function batchText(batch: DumpedBatch, partition: PartitionFolder): string {
  const line = batchColumns.map(([, width, value]) => value(batch).padEnd(width)).join(' ')
  const records = batch.records.map((each) => recordText(each, partition))
  const fault = batch.recordsFault === undefined ? '' : `  !! ${printable(batch.recordsFault)}\n`
  return `${line.trimEnd()}\n${records.join('')}${fault}`
}

const recordFormat = {
  keySeparator: ': ',
  keyFormat: 'text',
  valueFormat: 'text',
  nullText: 'null',
  details: true,
  printableOnly: true,
} as const

function recordText({ record, meaning }: DumpedRecord, { topic, partition }: PartitionFolder): string {
  if (meaning !== undefined) return `  ${record.offset} ${printable(JSON.stringify(meaning))}\n`
  const text = formatText({ ...record, topic, partition }, recordFormat).toString()
  return `  ${printable(text.slice(0, -1))}
`
}

function restText({ position, bytes, fault }: DumpedRest): string {
  const what = {
    truncated: 'are no whole batch',
    zeros: 'are zero',
    format: 'are no batch of format 2',
    length: 'begin with a batch whose lengths make no sense',
  }[fault]
  return `!! The last ${bytes} bytes, from position ${position} on, ${what}`
}

/** A batch is one object, each of its records another. */
function jsonLines(each: DumpedBatch | DumpedRest, { topic, partition }: PartitionFolder): string {
  if (each.kind === 'rest') return `${JSON.stringify(each)}\n`
  const { records, ...header } = each
  const lines = records.map(({ record, meaning }) => {
    const fields = JSON.parse(formatJson({ ...record, topic, partition })) as object
    return `${JSON.stringify({ kind: 'record', ...fields, ...(meaning === undefined ? {} : { meaning }) })}\n`
  })
  return `${JSON.stringify(header)}\n${lines.join('')}`
}
