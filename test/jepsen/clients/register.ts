import { commit, committedOffsets } from './committing.ts'
import { pause, Session, type World } from './session.ts'

/** Commits one offset after the other to a group of its own, without being a member, and looks at what is there. */
export class Register {
  readonly name: string
  readonly #session: Session
  #offset = 0
  #acknowledgedCount = 0

  constructor(world: World, name: string) {
    this.name = name
    this.#session = new Session(world)
  }

  get progress(): number {
    return this.#acknowledgedCount
  }

  async run(): Promise<void> {
    const { world } = this.#session
    while (!world.isDraining) {
      const id = await this.#session.coordinator(this.name)
      const client = id === undefined ? undefined : await this.#session.connection(id).catch(() => undefined)
      if (client === undefined) {
        await pause(20)
        continue
      }
      const committer = { process: this.name, group: this.name, memberId: '', generation: -1 }
      const next = () => ({ offset: this.#offset++, leaderEpoch: -1 })
      while (!world.isDraining && (await commit(world, client, committer, 0, next()))) {
        this.#acknowledgedCount++
        if (world.random() < 0.3) await committedOffsets(world, client, this.name, this.name, [0], true)
        await pause(30 * world.random())
      }
      await pause(20)
    }
    this.#session.close()
  }
}
