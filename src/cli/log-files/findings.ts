/** Something that is not as it should be, or that one should know to judge the rest. */
export interface Finding {
  readonly level: 'fault' | 'note'
  /** `orders-0/00000000000000000000.log`, from the folder of `log.dirs`. */
  readonly file: string
  /** A byte of that file; undefined where it is about the whole. */
  readonly position?: number
  readonly message: string
}

/** What was looked at. */
export interface VerifiedCounts {
  partitions: number
  segments: number
  batches: number
  records: number
  bytes: number
}

/** So many findings of one file are kept; of a file that is damaged all over, more say nothing new. */
const maxFindingsPerFile = 20

/** Collects findings. Of one file the first ones are kept, the others counted. */
export class Findings {
  readonly counts: VerifiedCounts = { partitions: 0, segments: 0, batches: 0, records: 0, bytes: 0 }
  readonly #findings: Finding[] = []
  readonly #perFile = new Map<string, number>()
  #faults = 0

  /** Including those that were only counted. */
  get faultCount(): number {
    return this.#faults
  }

  fault(file: string, message: string, position?: number): void {
    this.#faults++
    this.#add({ level: 'fault', file, message, ...(position === undefined ? {} : { position }) })
  }

  note(file: string, message: string, position?: number): void {
    this.#add({ level: 'note', file, message, ...(position === undefined ? {} : { position }) })
  }

  /** In the order in which they were found, with a last one for each file of which some were left out. */
  get all(): readonly Finding[] {
    const left = [...this.#perFile].filter(([, count]) => count > maxFindingsPerFile)
    const omitted = left.map(([file, count]): Finding => {
      return { level: 'note', file, message: `${count - maxFindingsPerFile} more findings of this file are left out` }
    })
    return [...this.#findings, ...omitted]
  }

  #add(finding: Finding): void {
    const count = (this.#perFile.get(finding.file) ?? 0) + 1
    this.#perFile.set(finding.file, count)
    if (count <= maxFindingsPerFile) this.#findings.push(finding)
  }
}
