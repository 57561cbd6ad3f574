import type { PartitionOutcome } from './client/reassignments.ts'
import { exitCodes } from './exit.ts'
import { note, type OutputOptions, show } from './output.ts'
import { printable } from './table.ts'

/** One line a partition on success; what failed goes to the standard error and makes the exit code. */
export async function showPartitionOutcomes(
  options: OutputOptions,
  outcomes: readonly PartitionOutcome[],
  asText: (name: string) => string,
): Promise<void> {
  const results = outcomes.map(({ topic, partition, error }) =>
    error === undefined ? { topic, partition } : { topic, partition, error: error.message },
  )
  const done = outcomes.filter(({ error }) => error === undefined)
  await show(options, results, () =>
    done.map(({ topic, partition }) => `${printable(asText(`${topic}-${partition}`))}\n`).join(''),
  )
  for (const { error } of outcomes) {
    if (error === undefined) continue
    note(`rookery: ${error.message}`)
    process.exitCode = exitCodes.fault
  }
}
