import type { Uuid } from '../base/index.ts'
import type { Files } from '../platform/index.ts'
import { type Arrival, type Departure, readMoves, writeMoves } from './checkpoint-files.ts'

/**
 * What one directory notes of moves, in its `log-move-checkpoint`, by partition name. What is changed here is durable when the
 * directory's `saveMoves` resolves.
 *
 * Departures, of partitions that are here or were:
 * - "moves": the log is here, and a start goes on with that copy;
 * - "switches": the copy may have taken the log's place, in the directory that is named: a log here, alone, counts only if none is there;
 * - "has moved": it is elsewhere, and a log here is outdated, which was to be deleted. Kept until it is here again, or the partition
 *   is deleted: the metadata may still say that it is here, and an empty log would be made.
 *
 * Arrivals: the log here was a copy from the directory that is named: alone, it counts only if there is no more one there.
 *
 * Of several logs that are there the newest counts, whatever is noted; see `settleLogs`.
 */
export class MoveNotes {
  readonly #departures = new Map<string, Departure>()
  readonly #arrivals = new Map<string, Arrival>()
  #changes = 0
  #storedChanges = 0

  /** Throws `StorageError` on a damaged file. */
  async read(files: Files, directory: string): Promise<void> {
    const { departures, arrivals } = await readMoves(files, directory)
    for (const [name, departure] of departures) this.#departures.set(name, departure)
    for (const [name, arrival] of arrivals) this.#arrivals.set(name, arrival)
  }

  async write(files: Files, directory: string): Promise<void> {
    const changes = this.#changes
    await writeMoves(files, directory, { departures: this.#departures, arrivals: this.#arrivals })
    this.#storedChanges = changes
  }

  /** All is durable: also after a write that failed, what it should have written is not. */
  get isStored(): boolean {
    return this.#storedChanges === this.#changes
  }

  moves(name: string, copy: string): void {
    const { copy: before, to } = this.#departures.get(name) ?? {}
    if (before === copy && to === undefined) return
    this.#departures.set(name, { copy })
    this.#changes++
  }

  switches(name: string, copy: string, to: Uuid): void {
    this.#departures.set(name, { copy, to })
    this.#changes++
  }

  hasMoved(name: string): void {
    const before = this.#departures.get(name)
    if (before !== undefined && before.copy === undefined) return
    this.#departures.set(name, {})
    this.#changes++
  }

  arrives(name: string, copy: string, from: Uuid): void {
    this.#arrivals.set(name, { copy, from })
    this.#changes++
  }

  /** The log here counts, without more ado. */
  hasArrived(name: string): void {
    if (this.#arrivals.delete(name)) this.#changes++
  }

  forget(name: string): void {
    if (this.#departures.delete(name)) this.#changes++
    this.hasArrived(name)
  }

  departureOf(name: string): Departure | undefined {
    return this.#departures.get(name)
  }

  arrivalOf(name: string): Arrival | undefined {
    return this.#arrivals.get(name)
  }

  /** Nothing is in doubt about a log here. */
  isSettled(name: string): boolean {
    const departure = this.#departures.get(name)
    const isHere = departure === undefined || (departure.copy !== undefined && departure.to === undefined)
    return isHere && !this.#arrivals.has(name)
  }

  /** The log here is the partition's. */
  settle(name: string): void {
    this.hasArrived(name)
    const departure = this.#departures.get(name)
    if (departure === undefined) return
    if (departure.copy === undefined) this.forget(name)
    else this.moves(name, departure.copy)
  }

  /** Notes of logs that came here before `hasLog` was false of them go. */
  dropArrivals(hasLog: (name: string) => boolean): void {
    for (const name of [...this.#arrivals.keys()]) if (!hasLog(name)) this.hasArrived(name)
  }
}
