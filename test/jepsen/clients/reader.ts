import { fetchOnce } from './fetching.ts'
import { pause, Session, type World } from './session.ts'

/** Reads one partition to its end and on, and goes back to some earlier offset now and then. */
export class Reader {
  readonly name: string
  readonly #session: Session
  readonly #partition: number
  #position = 0

  constructor(world: World, name: string, partition: number) {
    this.name = name
    this.#session = new Session(world)
    this.#partition = partition
  }

  /** The highest offset that it has come to. */
  progress = 0

  async run(): Promise<void> {
    const { world } = this.#session
    while (!world.isDraining) {
      const read = await fetchOnce(this.#session, this.name, this.#partition, this.#position)
      if (read?.outcome !== 'ok') {
        await pause(20)
        continue
      }
      const last = read.records.at(-1)
      if (last !== undefined) this.#position = last.offset + 1
      this.progress = Math.max(this.progress, this.#position)
      if (world.random() < 0.01) this.#position = Math.floor(this.#position * (1 - world.random() * 0.2))
      await pause(20)
    }
    this.#session.close()
  }
}
