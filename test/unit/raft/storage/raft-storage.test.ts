import { crc32 } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import { createSimulation, type SimulatedHost, type Simulation } from '../../../../src/platform/simulated/index.ts'
import {
  encodeMembership,
  type LogIndex,
  MemoryStore,
  type RaftStorage,
  RaftStorageError,
  RaftStorage as Storage,
  type Term,
} from '../../../../src/raft/index.ts'
import {
  contentOf,
  directory,
  entry,
  hardState,
  keepChunksOf,
  membership,
  openOn,
  ready,
  snapshot,
} from './store-fixture.ts'

function simulated(seed = 1): { simulation: Simulation; host: SimulatedHost } {
  const simulation = createSimulation({ seed })
  return { simulation, host: simulation.host('a') }
}

/** Runs `work` on a storage that is opened before and closed after it. */
async function withStorage<T>(host: SimulatedHost, work: (storage: RaftStorage) => Promise<T> | T): Promise<T> {
  const storage = await openOn(host.platform)
  try {
    return await work(storage)
  } finally {
    await storage.close()
  }
}

/** A small log with a vote, entries of two terms, one replaced tail and a snapshot of the first entries. */
async function fill(storage: RaftStorage): Promise<void> {
  await storage.persist(ready({ hardState: hardState(1, 2) }))
  await storage.persist(ready({ entries: [entry(1, 1, '', 'noop'), entry(2, 1), entry(3, 1)] }))
  await storage.persist(ready({ entries: [entry(3, 2), entry(4, 2)], hardState: hardState(2, 3, 2) }))
  await storage.saveSnapshot(2 as LogIndex, Buffer.from('state at 2'), 1)
  await storage.persist(ready({ entries: [entry(5, 2)], hardState: hardState(2, 3, 4) }))
}

describe('RaftStorage', () => {
  test('finds again what was persisted', async () => {
    const { simulation, host } = simulated()
    await simulation.run(withStorage(host, fill))
    const content = await simulation.run(withStorage(host, contentOf))
    expect(content.hardState).toEqual(hardState(2, 3, 4))
    expect(content.entries.map(({ index, term }) => [index, term])).toEqual([
      [2, 1],
      [3, 2],
      [4, 2],
      [5, 2],
    ])
    expect(content.snapshot).toEqual({ ...snapshot(2, 1), data: 'state at 2' })
  })

  test('replaces a tail, also by a shorter one', async () => {
    const { simulation, host } = simulated()
    await simulation.run(
      withStorage(host, async (storage) => {
        await storage.persist(
          ready({ entries: [1, 2, 3, 4].map((index) => entry(index, 1)), hardState: hardState(1, null) }),
        )
        await storage.persist(ready({ entries: [entry(2, 2)], hardState: hardState(2, null) }))
        expect(storage.log.lastIndex).toBe(2)
      }),
    )
    const { entries } = await simulation.run(withStorage(host, contentOf))
    expect(entries.map(({ index, term }) => [index, term])).toEqual([
      [1, 1],
      [2, 2],
    ])
  })

  test("installs a leader's snapshot in place of the whole log, with its membership", async () => {
    const { simulation, host } = simulated()
    const fromLeader = {
      ...snapshot(40, 5, Buffer.alloc(600_000, 7)),
      membership: { voters: membership.voters.slice(1) },
    }
    await simulation.run(
      withStorage(host, async (storage) => {
        await fill(storage)
        await keepChunksOf(storage, fromLeader)
        await storage.persist(
          ready({ snapshot: fromLeader, entries: [entry(41, 5)], hardState: hardState(5, null, 40) }),
        )
      }),
    )
    const content = await simulation.run(withStorage(host, contentOf))
    expect(content.entries.map(({ index }) => index)).toEqual([41])
    expect(content.snapshot.membership).toEqual(fromLeader.membership)
    expect(content.snapshot.data.length).toBe(600_000)
  })

  test('does not let an own snapshot that was slow replace a newer one from the leader', async () => {
    const { simulation, host } = simulated()
    await simulation.run(
      withStorage(host, async (storage) => {
        await fill(storage)
        const own = storage.saveSnapshot(4 as LogIndex, Buffer.alloc(2_000_000), 0)
        const fromLeader = snapshot(40, 5)
        const parts = ready({ snapshot: fromLeader, hardState: hardState(5, null, 40) })
        const installed = keepChunksOf(storage, fromLeader).then(() => storage.persist(parts))
        await Promise.all([own, installed])
        expect(storage.log.snapshot.index).toBe(40)
      }),
    )
    expect((await simulation.run(withStorage(host, contentOf))).snapshot.index).toBe(40)
  })

  test('keeps the last entries below a snapshot, and knows the term before the first', async () => {
    const { simulation, host } = simulated()
    await simulation.run(
      withStorage(host, async (storage) => {
        const entries = Array.from({ length: 3000 }, (_, i) => entry(i + 1, 1))
        await storage.persist(ready({ entries, hardState: hardState(1, null, 3000) }))
        await storage.saveSnapshot(2500 as LogIndex, Buffer.from('x'), 100)
        expect(storage.log.firstIndex).toBe(2401)
        expect(storage.log.term(2400 as LogIndex)).toBe(1)
        expect(storage.log.term(2399 as LogIndex)).toBe('compacted')
      }),
    )
    await simulation.run(
      withStorage(host, ({ log }) => {
        expect([log.firstIndex, log.lastIndex, log.term(2400 as LogIndex)]).toEqual([2401, 3000, 1])
      }),
    )
  })

  test('writes a commit index that came alone with the next batch, or at the end', async () => {
    const { simulation, host } = simulated()
    await simulation.run(
      withStorage(host, async (storage) => {
        await fill(storage)
        storage.noteCommit(hardState(2, 3, 5))
      }),
    )
    expect((await simulation.run(withStorage(host, contentOf))).hardState.commitIndex).toBe(5)
  })

  test('refuses an empty store without voters to begin with', async () => {
    const { simulation, host } = simulated()
    const opened = Storage.open({
      store: new MemoryStore(),
      quorumState: undefined,
      timers: host.platform.timers,
      bootstrap: undefined,
    })
    await expect(simulation.run(opened)).rejects.toThrow('no voters to begin with')
  })

  test.each(['write', 'sync'])('is poisoned by a failed %s: nothing is tried again', async (operation) => {
    const { simulation, host } = simulated()
    const work = async (): Promise<void> => {
      const storage = await openOn(host.platform)
      await fill(storage)
      host.disk.failNext({ operation, code: operation === 'write' ? 'ENOSPC' : 'EIO', path: /store\.log/ })
      const failed = storage.persist(ready({ entries: [entry(6, 2)] }))
      const queued = storage.persist(ready({ entries: [entry(7, 2)] }))
      await expect(failed).rejects.toThrow(RaftStorageError)
      await expect(queued).rejects.toThrow(RaftStorageError)
      await expect(storage.saveSnapshot(4 as LogIndex, Buffer.from(''), 0)).rejects.toThrow(RaftStorageError)
      expect(storage.log.lastIndex).toBe(5)
      await storage.close()
    }
    await simulation.run(work())
    // What was durable before is still there.
    expect((await simulation.run(withStorage(host, contentOf))).entries.map(({ index }) => index)).toContain(5)
  })

  test('what is durable after a failed sync and a start survives a power loss', async () => {
    for (let seed = 1; seed <= 20; seed++) {
      const { simulation, host } = simulated(seed)
      await simulation.run(
        withStorage(host, async (storage) => {
          await fill(storage)
          host.disk.failNext({ operation: 'sync', code: 'EIO', path: /store\.log/ })
          await expect(storage.persist(ready({ entries: [entry(6, 2)] }))).rejects.toThrow(RaftStorageError)
        }),
      )
      await simulation.run(withStorage(host, (storage) => storage.persist(ready({ hardState: hardState(7, 2) }))))
      host.crash()
      host.restart()
      expect(await simulation.run(withStorage(host, contentOf))).toMatchObject({ hardState: { term: 7, votedFor: 2 } })
    }
  })
})

describe('RaftStorage with a snapshot that is coming', () => {
  const data = Buffer.from(Array.from({ length: 1000 }, (_, i) => i % 256))
  const header = {
    index: 40 as LogIndex,
    term: 5 as Term,
    membership: { voters: membership.voters.slice(1) },
    totalBytes: data.length,
    dataCrc: crc32(data),
  }
  const chunk = (offset: number, end: number) => ({ header, offset, data: data.subarray(offset, end) })
  const keep = (storage: RaftStorage, ...snapshotChunks: ReturnType<typeof chunk>[]) =>
    storage.persist({ ...ready({}), snapshotChunks })

  test('keeps it apart, over a restart, until it is whole and installed', async () => {
    const { simulation, host } = simulated()
    const before = await simulation.run(
      withStorage(host, async (storage) => {
        await fill(storage)
        await keep(storage, chunk(0, 300), chunk(300, 600))
        return contentOf(storage)
      }),
    )
    await simulation.run(
      withStorage(host, async (storage) => {
        expect(contentOf(storage)).toEqual(before)
        expect(storage.partialSnapshot).toEqual({ header, nextOffset: 600 })
        expect(await storage.assembleSnapshot(header.index)).toBeUndefined()
        await keep(storage, chunk(600, 1000))
        const whole = await storage.assembleSnapshot(header.index)
        expect(whole).toMatchObject({ index: 40, term: 5, membership: header.membership })
        expect(Buffer.from(whole!.data).equals(data)).toBe(true)
        await storage.persist({ ...ready({ hardState: hardState(5, null, 40) }), snapshot: whole })
        expect(storage.partialSnapshot).toBeUndefined()
      }),
    )
    // The first chunk of the next one may come along with it.
    await simulation.run(
      withStorage(host, async (storage) => {
        const first = { ...header, index: 60 as LogIndex }
        await keep(storage, { header: first, offset: 0, data })
        const whole = await storage.assembleSnapshot(first.index)
        const next = { header: { ...header, index: 70 as LogIndex }, offset: 0, data: data.subarray(0, 9) }
        const state = hardState(5, null, 60)
        await storage.persist({ ...ready({ hardState: state }), snapshot: whole, snapshotChunks: [next] })
        expect(storage.partialSnapshot).toEqual({ header: next.header, nextOffset: 9 })
        expect(storage.log.snapshot.index).toBe(60)
      }),
    )
    const { snapshot: found } = await simulation.run(withStorage(host, contentOf))
    expect(found).toMatchObject({ index: 60, data: data.toString('latin1') })
  })

  test('throws it away for another one, for an own one that is newer, and when its bytes are not what was announced', async () => {
    const { simulation, host } = simulated()
    await simulation.run(
      withStorage(host, async (storage) => {
        await fill(storage)
        await keep(storage, chunk(0, 300))
        const newer = { ...header, index: 50 as LogIndex }
        await storage.persist({
          ...ready({}),
          snapshotChunks: [{ header: newer, offset: 0, data: data.subarray(0, 9) }],
        })
        expect(storage.partialSnapshot).toEqual({ header: newer, nextOffset: 9 })
        const wrong = { ...header, dataCrc: 1 }
        await storage.persist({ ...ready({}), snapshotChunks: [{ header: wrong, offset: 0, data }] })
        expect(await storage.assembleSnapshot(wrong.index)).toBeUndefined()
        expect(storage.partialSnapshot).toBeUndefined()
        const low = { ...header, index: 4 as LogIndex }
        await storage.persist({ ...ready({}), snapshotChunks: [{ header: low, offset: 0, data: data.subarray(0, 9) }] })
        await storage.saveSnapshot(4 as LogIndex, Buffer.from('own'), 0)
        expect(storage.partialSnapshot).toBeUndefined()
      }),
    )
    expect((await simulation.run(withStorage(host, contentOf))).snapshot).toMatchObject({ index: 4, data: 'own' })
  })

  test('saves with an own snapshot who voted at its entry', async () => {
    const { simulation, host } = simulated()
    const two = { voters: membership.voters.slice(1) }
    await simulation.run(
      withStorage(host, async (storage) => {
        const change = { ...entry(2, 1, '', 'config'), data: encodeMembership(two) }
        await storage.persist(ready({ entries: [entry(1, 1), change, entry(3, 1)], hardState: hardState(1, null, 3) }))
        await storage.saveSnapshot(1 as LogIndex, Buffer.from('1'), 10)
        expect(storage.log.snapshot.membership).toEqual(membership)
        await storage.saveSnapshot(3 as LogIndex, Buffer.from('3'), 0)
      }),
    )
    expect((await simulation.run(withStorage(host, contentOf))).snapshot.membership).toEqual(two)
  })

  test('drops what is damaged of it, as nothing was promised, and loses nothing else', async () => {
    const { simulation, host } = simulated()
    const store = new MemoryStore()
    const open = async (values: readonly (readonly [Buffer, Buffer])[]) => {
      const copy = new MemoryStore()
      for (const [key, value] of values) copy.apply([{ type: 'put', key, value }])
      const { timers } = host.platform
      return await Storage.open({ store: copy, quorumState: undefined, timers, bootstrap: undefined })
    }
    const work = async () => {
      const { timers } = host.platform
      const storage = await Storage.open({ store, quorumState: undefined, timers, bootstrap: membership })
      await fill(storage)
      await keep(storage, chunk(0, 30), chunk(30, 60))
      const content = contentOf(storage)
      const values: [Buffer, Buffer][] = []
      for await (const [key, value] of store.iterate(new Uint8Array(0), Uint8Array.of(255))) {
        values.push([Buffer.from(key), Buffer.from(value)])
      }
      const isOfPartial = (key: Buffer) => key[0] === 0x70 || (key[0] === 0x73 && key[8] === 40)
      expect(values.filter(([key]) => isOfPartial(key))).toHaveLength(3)
      for (const [lost, value] of values.filter(([key]) => isOfPartial(key))) {
        const without = await open(values.filter(([key]) => key !== lost))
        expect(contentOf(without)).toEqual(content)
        expect(without.partialSnapshot?.nextOffset ?? 0).toBeLessThan(60)
        for (let position = 0; position < value.length; position++) {
          const damaged = Buffer.from(value)
          damaged[position]! ^= 0x10
          const found = await open(values.map(([key, other]) => [key, key === lost ? damaged : other] as const))
          expect(contentOf(found)).toEqual(content)
          expect(found.partialSnapshot?.nextOffset ?? 0).toBeLessThan(60)
        }
      }
    }
    await simulation.run(work())
  })
})

describe('RaftStorage after damage', () => {
  /** The files of a small storage that was stopped cleanly, and what is in it. */
  async function written() {
    const { simulation, host } = simulated()
    await simulation.run(withStorage(host, fill))
    const content = await simulation.run(withStorage(host, contentOf))
    const read = async (name: string) => (await host.platform.files.readFile(`${directory}/${name}`, 1 << 20))!
    const files = {
      'store.log': await simulation.run(read('store.log')),
      'quorum-state': await simulation.run(read('quorum-state')),
    }
    return { content, files }
  }

  /** Puts `files` on a fresh disk and opens it: the content, or undefined when it was refused with the right error. */
  async function reopen(files: Readonly<Record<string, Uint8Array | undefined>>) {
    const { simulation, host } = simulated()
    const work = async () => {
      await host.platform.files.makeDirectory(directory)
      for (const [name, bytes] of Object.entries(files)) {
        if (bytes === undefined) continue
        const file = await host.platform.files.open(`${directory}/${name}`, 'create')
        await file.write([bytes], 0)
        await file.close()
      }
      try {
        return await withStorage(host, contentOf)
      } catch (error) {
        if (error instanceof RaftStorageError) return undefined
        throw error
      }
    }
    return await simulation.run(work())
  }

  test('refuses each flipped byte of its log, or has lost nothing', async () => {
    const { content, files } = await written()
    let refused = 0
    for (let position = 0; position < files['store.log'].length; position++) {
      const damaged = Buffer.from(files['store.log'])
      damaged[position]! ^= 0x40
      const found = await reopen({ ...files, 'store.log': damaged })
      if (found === undefined) refused++
      else expect(found, `byte ${position}`).toEqual(content)
    }
    expect(refused).toBeGreaterThan(files['store.log'].length / 2)
  })

  test('refuses a log that is cut off anywhere, or has lost nothing', async () => {
    const { content, files } = await written()
    for (let length = 0; length < files['store.log'].length; length++) {
      const found = await reopen({ ...files, 'store.log': files['store.log'].subarray(0, length) })
      if (found !== undefined) expect(found, `length ${length}`).toEqual(content)
    }
    expect(await reopen({ ...files, 'store.log': undefined })).toBeUndefined()
    expect(await reopen(files)).toEqual(content)
  })

  test('refuses a quorum-state file that is damaged, cut off or gone', async () => {
    const { files } = await written()
    const whole = files['quorum-state']
    for (let position = 0; position < whole.length; position++) {
      const damaged = Buffer.from(whole)
      damaged[position]! ^= 0x01
      expect(await reopen({ ...files, 'quorum-state': damaged }), `byte ${position}`).toBeUndefined()
      expect(
        await reopen({ ...files, 'quorum-state': whole.subarray(0, position) }),
        `length ${position}`,
      ).toBeUndefined()
    }
    expect(await reopen({ ...files, 'quorum-state': undefined })).toBeUndefined()
  })

  test('refuses a store that lost or changed any one value, or has lost nothing', async () => {
    const { simulation, host } = simulated()
    const bounds = [new Uint8Array(0), Uint8Array.of(255)] as const
    const timers = host.platform.timers
    // The witness of this one is what the whole store says, kept in memory.
    const { content, files } = await written()
    const open = async (alter: (key: Buffer, value: Buffer) => Buffer | undefined) => {
      const fresh = simulated()
      const work = async () => {
        await fresh.host.platform.files.makeDirectory(directory)
        const file = await fresh.host.platform.files.open(`${directory}/quorum-state`, 'create')
        await file.write([files['quorum-state']], 0)
        await file.close()
        const store = new MemoryStore()
        for (const [key, value] of values) {
          const altered = alter(key, value)
          if (altered !== undefined) store.apply([{ type: 'put', key, value: altered }])
        }
        return await openOn(fresh.host.platform, membership, async () => store).then(contentOf, (error: unknown) => {
          if (error instanceof RaftStorageError) return undefined
          throw error
        })
      }
      return await fresh.simulation.run(work())
    }
    const store = new MemoryStore()
    const filled = async () => {
      const storage = await Storage.open({ store, quorumState: undefined, timers, bootstrap: membership })
      await fill(storage)
      const found: [Buffer, Buffer][] = []
      for await (const [key, value] of store.iterate(...bounds)) found.push([Buffer.from(key), Buffer.from(value)])
      return found
    }
    const values = await simulation.run(filled())
    expect(await open((_key, value) => value)).toEqual(content)
    for (const [lostKey, lostValue] of values) {
      const found = await open((key, value) => (key.equals(lostKey) ? undefined : value))
      const isFirst = lostKey.equals(Buffer.from('6c0000000000000001', 'hex')) // it is in the snapshot
      if (isFirst) expect(found?.entries).toEqual(content.entries.slice(1))
      else expect(found, lostKey.toString('latin1')).toBeUndefined()
      for (let position = 0; position < lostValue.length; position++) {
        const damaged = Buffer.from(lostValue)
        damaged[position]! ^= 0x10
        const after = await open((key, value) => (key.equals(lostKey) ? damaged : value))
        expect(after, `${lostKey.toString('latin1')} byte ${position}`).toBeUndefined()
      }
    }
  })

  test.each([
    { what: 'a vote, at once', parts: { hardState: hardState(2, 1) }, afterMs: 0, error: /vote of term 2/ },
    { what: 'a term, at once', parts: { hardState: hardState(7, null) }, afterMs: 0, error: /term is 2, and was 7/ },
    { what: 'an entry, soon', parts: { entries: [entry(6, 2)] }, afterMs: 200, error: /6 to 6 are missing/ },
    { what: 'a new tail, soon', parts: { entries: [entry(5, 2, 'new')] }, afterMs: 200, error: /older one/ },
  ])('after a crash misses $what, when the log below lost it', async ({ parts, afterMs, error }) => {
    const { simulation, host } = simulated()
    const path = `${directory}/store.log`
    const size = async () => (await host.platform.files.stat(path))!.sizeBytes
    const storage = await simulation.run(openOn(host.platform))
    await simulation.run(fill(storage))
    await simulation.run(storage.persist(ready({ hardState: hardState(2, null) })))
    const before = await simulation.run(size())
    await simulation.run(storage.persist(ready(parts)))
    await simulation.runFor(afterMs)
    host.crash()
    host.restart()
    // What a flipped byte in the last record of Level's log does.
    const file = await simulation.run(host.platform.files.open(path, 'write'))
    await simulation.run(file.truncate(before))
    await simulation.run(file.close())
    await expect(simulation.run(openOn(host.platform))).rejects.toThrow(error)
  })

  test('tells what to do', async () => {
    const { simulation, host } = simulated()
    await simulation.run(withStorage(host, fill))
    await simulation.run(host.platform.files.remove(`${directory}/store.log`))
    await expect(simulation.run(openOn(host.platform))).rejects.toThrow(
      /was used.*remove this voter.*restore the folder/s,
    )
  })
})

describe('RaftStorage over power losses', () => {
  /** Random work until the power goes; what must be found again. */
  async function work(
    storage: RaftStorage,
    random: { int(end: number): number },
    promised: { term: number; vote: number | null; last: [number, number] },
  ) {
    let { term } = storage.hardState
    for (let step = 0; step < 40; step++) {
      const { log } = storage
      const kind = random.int(10)
      if (kind === 0) {
        term = (term + 1) as typeof term
        const vote = random.int(2) === 0 ? null : 1 + random.int(3)
        await storage.persist(ready({ hardState: hardState(term, vote, storage.hardState.commitIndex) }))
        promised.vote = vote
      } else if (kind === 1 && log.lastIndex > log.snapshot.index + 3) {
        const from = log.lastIndex - random.int(log.lastIndex - log.snapshot.index)
        term = (term + 1) as typeof term
        promised.last = [from - 1, log.term((from - 1) as LogIndex) as number]
        await storage.persist(ready({ entries: [entry(from, term)], hardState: hardState(term, null) }))
        promised.vote = null
      } else if (kind === 2 && log.lastIndex > log.snapshot.index) {
        const index = (log.snapshot.index + 1 + random.int(log.lastIndex - log.snapshot.index)) as LogIndex
        await storage.saveSnapshot(index, Buffer.alloc(random.int(300_000)), random.int(5))
      } else if (kind === 3) {
        term = (term + 1) as typeof term
        const index = log.lastIndex + 1 + random.int(10)
        promised.last = [0, 0]
        await keepChunksOf(storage, snapshot(index, term))
        await storage.persist(ready({ snapshot: snapshot(index, term), hardState: hardState(term, null, index) }))
        promised.vote = null
      } else {
        const count = 1 + random.int(4)
        if (term === 0) continue
        const entries = Array.from({ length: count }, (_, i) => entry(log.lastIndex + 1 + i, term))
        await storage.persist(ready({ entries }))
      }
      promised.term = storage.hardState.term
      promised.last = [log.lastIndex, log.term(log.lastIndex) as number]
    }
  }

  test('never loses what it persisted, and never refuses its own disk', async () => {
    for (let seed = 1; seed <= 150; seed++) {
      const { simulation, host } = simulated(seed)
      const promised: Parameters<typeof work>[2] = { term: 0, vote: null, last: [0, 0] }
      for (let life = 0; life < 4; life++) {
        const storage = await simulation.run(openOn(host.platform))
        const { log } = storage
        expect(storage.hardState.term, `seed ${seed}`).toBeGreaterThanOrEqual(promised.term)
        if (storage.hardState.term === promised.term && promised.vote !== null)
          expect(storage.hardState.votedFor).toBe(promised.vote)
        const [index, term] = promised.last
        expect(log.lastIndex, `seed ${seed}`).toBeGreaterThanOrEqual(index)
        expect([term, 'compacted']).toContain(log.term(index as LogIndex))
        promised.vote = storage.hardState.votedFor // a batch that nobody was told of may be there
        promised.term = storage.hardState.term
        void work(storage, host.platform.random, promised)
        await simulation.runFor(host.platform.random.int(60))
        host.crash()
        host.restart()
      }
    }
  })
})
