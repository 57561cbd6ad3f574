import { RookeryError } from '../base/index.ts'

/** One thing that is wrong with the settings. */
export interface ConfigProblem {
  /** The key as it was given; undefined when the source as a whole cannot be read. */
  readonly key: string | undefined
  /** A sentence without a full stop: the key, the value, what is allowed. */
  readonly message: string
}

/** Only so much of a text that someone typed or sent goes into a message. */
export function shortened(text: string): string {
  return text.length <= 200 ? text : `${text.slice(0, 200)}...`
}

/** The settings can't be used. Names every problem at once, so that one start is enough to mend a file. */
export class ConfigError extends RookeryError {
  readonly code = 'CONFIG_INVALID'
  /** At least one. */
  readonly problems: readonly ConfigProblem[]

  constructor(problems: readonly ConfigProblem[], options?: { cause?: unknown }) {
    const [first] = problems
    super(problems.length === 1 && first !== undefined ? first.message : listOf(problems), options)
    this.problems = problems
  }
}

/** So many problems are named; after a file in some other format there may be thousands. */
const maxListed = 50

function listOf(problems: readonly ConfigProblem[]): string {
  const lines = problems.slice(0, maxListed).map((problem) => `  - ${problem.message}`)
  const more = problems.length > maxListed ? [`  and ${problems.length - maxListed} more`] : []
  return [`${problems.length} settings cannot be used:`, ...lines, ...more].join('\n')
}
