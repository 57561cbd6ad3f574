import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { FileError, Files } from '../../../../src/platform/index.ts'
import { createSimulation, type Simulation } from '../../../../src/platform/simulated/index.ts'

const path = '/data/file'

const contentSteps = fc.array(
  fc.oneof(
    {
      weight: 5,
      arbitrary: fc.record({ kind: fc.constant('write' as const), position: fc.nat(20), length: fc.nat(6) }),
    },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('truncate' as const), sizeBytes: fc.nat(24) }) },
    { weight: 2, arbitrary: fc.record({ kind: fc.constant('sync' as const) }) },
  ),
  { maxLength: 12 },
)

test('after a crash a file holds what was synced, and of each later change all, nothing or a part', async () => {
  await fc.assert(
    fc.asyncProperty(fc.integer(), contentSteps, async (seed, steps) => {
      const simulation = createSimulation({ seed })
      const host = simulation.host('a')
      const file = await simulation.run(makeDurableFile(host.platform.files))
      // All contents that a crash may leave: a change adds the outcomes of its parts, a sync leaves one.
      let current = ''
      let possible = new Set([''])
      let marker = 0
      for (const step of steps) {
        if (step.kind === 'sync') {
          await simulation.run(file.sync())
          possible = new Set([current])
        } else if (step.kind === 'truncate') {
          file.truncateSync(step.sizeBytes)
          current = resized(current, step.sizeBytes)
          for (const content of [...possible]) possible.add(resized(content, step.sizeBytes))
        } else {
          const bytes = Buffer.alloc(step.length, 65 + (marker++ % 50))
          file.writeSync([bytes], step.position)
          current = overwritten(current, bytes.toString('latin1'), step.position)
          for (const content of [...possible]) {
            for (let part = 1; part <= step.length; part++) {
              possible.add(overwritten(content, bytes.toString('latin1', 0, part), step.position))
            }
          }
        }
        if (possible.size > 20_000) break
      }
      expect(await contentOf(simulation)).toBe(current)
      host.crash()
      host.restart()
      const left = await contentOf(simulation)
      expect(possible.has(left)).toBe(true)
      // What survived one crash is on the disk: it survives the next.
      host.crash()
      host.restart()
      expect(await contentOf(simulation)).toBe(left)
    }),
    { numRuns: 400 },
  )
})

test('a crash loses, keeps and tears unsynced writes, and leaves holes', async () => {
  const seen = { lost: 0, kept: 0, torn: 0, hole: 0 }
  for (let seed = 0; seed < 200; seed++) {
    const simulation = createSimulation({ seed })
    const host = simulation.host('a')
    const file = await simulation.run(makeDurableFile(host.platform.files))
    file.writeSync([Buffer.alloc(1000, 'a')], 0)
    file.writeSync([Buffer.alloc(1000, 'b')], 1000)
    host.crash()
    host.restart()
    const left = await contentOf(simulation)
    if (left === '') seen.lost++
    else if (left === 'a'.repeat(1000) + 'b'.repeat(1000)) seen.kept++
    else if (left.startsWith('\0'.repeat(1000))) seen.hole++
    else if (left.length % 1000 !== 0) seen.torn++
  }
  for (const count of Object.values(seen)) expect(count).toBeGreaterThan(5)
})

test('a sync covers the writes before its call, not those while it runs', async () => {
  let lostCount = 0
  for (let seed = 0; seed < 60; seed++) {
    const simulation = createSimulation({ seed })
    const host = simulation.host('a')
    const file = await simulation.run(makeDurableFile(host.platform.files))
    file.writeSync([Buffer.from('before')], 0)
    const synced = file.sync()
    file.writeSync([Buffer.from('during')], 6)
    await simulation.run(synced)
    host.crash()
    host.restart()
    const left = await contentOf(simulation)
    expect(left.slice(0, 6)).toBe('before')
    if (left === 'before') lostCount++
  }
  expect(lostCount).toBeGreaterThan(5)
})

test('a sync that a crash interrupts promises nothing', async () => {
  const left = new Set<string>()
  for (let seed = 0; seed < 60; seed++) {
    const simulation = createSimulation({ seed })
    const host = simulation.host('a')
    const file = await simulation.run(makeDurableFile(host.platform.files))
    file.writeSync([Buffer.from('x')], 0)
    void file.sync()
    await simulation.runFor(0.1)
    host.crash()
    host.restart()
    left.add(await contentOf(simulation))
  }
  expect(left).toEqual(new Set(['', 'x']))
})

test('after a failed sync nothing more of the file is durable, and the handle fails each later sync', async () => {
  let lostCount = 0
  for (let seed = 0; seed < 60; seed++) {
    const simulation = createSimulation({ seed })
    const host = simulation.host('a')
    const file = await simulation.run(makeDurableFile(host.platform.files))
    file.writeSync([Buffer.from('x')], 0)
    host.disk.failNext({ operation: 'sync', path, code: 'EIO' })
    await expect(simulation.run(file.sync())).rejects.toMatchObject({ systemCode: 'EIO' })
    await expect(simulation.run(file.sync())).rejects.toMatchObject({ systemCode: 'EIO' })
    const again = await simulation.run(host.platform.files.open(path, 'write'))
    await simulation.run(again.sync())
    host.crash()
    host.restart()
    if ((await contentOf(simulation)) === '') lostCount++
  }
  expect(lostCount).toBeGreaterThan(5)
})

const folders = ['/data/x', '/data/y'] as const
type Folder = (typeof folders)[number]
const place = fc.record({ folder: fc.constantFrom(...folders), name: fc.constantFrom('a', 'b', 'c') })
const nameSteps = fc.array(
  fc.oneof(
    { weight: 3, arbitrary: fc.record({ kind: fc.constant('create' as const), at: place }) },
    { weight: 3, arbitrary: fc.record({ kind: fc.constant('rename' as const), at: place, to: place }) },
    { weight: 2, arbitrary: fc.record({ kind: fc.constant('remove' as const), at: place }) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('sync' as const), folder: fc.constantFrom(...folders) }) },
  ),
  { maxLength: 14 },
)

test('after a crash each folder holds a prefix of its changes, a synced one at least, and a rename is whole', async () => {
  await fc.assert(
    fc.asyncProperty(fc.integer(), nameSteps, async (seed, steps) => {
      const simulation = createSimulation({ seed })
      const host = simulation.host('a')
      const { files } = host.platform
      for (const folder of folders) await simulation.run(files.makeDirectory(folder))
      await simulation.run(files.syncDirectory('/data'))

      // Each change is its steps in the folders it touches: name -> content, or undefined for removed.
      const changes: { folder: Folder; name: string; content: string | undefined }[][] = []
      const countOf = (folder: Folder): number =>
        changes.filter((change) => change.some((step) => step.folder === folder)).length
      const synced: Record<Folder, number> = { '/data/x': 0, '/data/y': 0 }
      const now = new Map<string, string>()
      let marker = 0
      for (const step of steps) {
        if (step.kind === 'sync') {
          await simulation.run(files.syncDirectory(step.folder))
          synced[step.folder] = countOf(step.folder)
          continue
        }
        const at = `${step.at.folder}/${step.at.name}`
        if (step.kind === 'create') {
          if (now.has(at)) continue
          const content = `${marker++}`
          const file = await simulation.run(files.open(at, 'create'))
          file.writeSync([Buffer.from(content)], 0)
          await simulation.run(file.sync())
          now.set(at, content)
          changes.push([{ ...step.at, content }])
        } else if (step.kind === 'remove') {
          await simulation.run(files.remove(at))
          if (now.delete(at)) changes.push([{ ...step.at, content: undefined }])
        } else {
          const content = now.get(at)
          const to = `${step.to.folder}/${step.to.name}`
          if (content === undefined || at === to) continue
          await simulation.run(files.rename(at, to))
          now.delete(at)
          now.set(to, content)
          changes.push([
            { ...step.at, content: undefined },
            { ...step.to, content },
          ])
        }
      }
      expect(await namesOf(simulation)).toBe(describeNames(now))
      host.crash()
      host.restart()
      const left = await namesOf(simulation)

      const possible = new Set<string>()
      for (let x = synced['/data/x']; x <= countOf('/data/x'); x++) {
        for (let y = synced['/data/y']; y <= countOf('/data/y'); y++) {
          const names = namesAfter(changes, { '/data/x': x, '/data/y': y })
          if (names !== undefined) possible.add(describeNames(names))
        }
      }
      expect([...possible]).toContain(left)
    }),
    { numRuns: 300 },
  )
})

test('a new file is lost, synced or not, while its folder was not synced', async () => {
  const left = { lost: 0, kept: 0 }
  for (let seed = 0; seed < 40; seed++) {
    for (const isFolderSynced of [false, true]) {
      const simulation = createSimulation({ seed })
      const host = simulation.host('a')
      const { files } = host.platform
      const file = await simulation.run(files.open(path, 'create'))
      file.writeSync([Buffer.from('x')], 0)
      await simulation.run(file.sync())
      if (isFolderSynced) await simulation.run(files.syncDirectory('/data'))
      host.crash()
      const content = await simulation.run(host.restart().files.readFile(path, 10))
      if (isFolderSynced) expect(String(content)).toBe('x')
      else left[content === undefined ? 'lost' : 'kept']++
    }
  }
  expect(left.lost).toBeGreaterThan(5)
  expect(left.kept).toBeGreaterThan(5)
})

test('a killed process leaves all that it wrote, and a loss of power after that takes it', async () => {
  let lostCount = 0
  for (let seed = 0; seed < 40; seed++) {
    const simulation = createSimulation({ seed })
    const host = simulation.host('a')
    const file = await simulation.run(makeDurableFile(host.platform.files))
    file.writeSync([Buffer.from('x')], 0)
    host.kill()
    host.restart()
    expect(await contentOf(simulation)).toBe('x')
    host.crash() // also while the host is down
    host.crash()
    host.restart()
    if ((await contentOf(simulation)) === '') lostCount++
  }
  expect(lostCount).toBeGreaterThan(5)
})

test('a full disk takes what fits, says ENOSPC, and goes on when there is room', async () => {
  const simulation = createSimulation({ seed: 1 })
  const { disk, platform } = simulation.host('a')
  const file = await simulation.run(makeDurableFile(platform.files))
  disk.capacityBytes = 1000
  file.writeSync([Buffer.alloc(900)], 0)
  expect(() => file.writeSync([Buffer.alloc(200)], 900)).toThrow(
    expect.objectContaining({ systemCode: 'ENOSPC', operation: 'write' } satisfies Partial<FileError>),
  )
  expect(file.sizeSync()).toBe(1000)
  file.writeSync([Buffer.alloc(500, 1)], 100) // in place: needs no room
  await expect(simulation.run(file.truncate(1001))).rejects.toMatchObject({ systemCode: 'ENOSPC' })
  expect(await simulation.run(platform.files.space('/data'))).toEqual({ freeBytes: 0, totalBytes: 1000 })
  await simulation.run(file.truncate(100))
  file.writeSync([Buffer.alloc(200)], 100)
  await simulation.run(platform.files.remove(path))
  expect(disk.usedBytes).toBe(0)
})

test('an armed fault hits the calls that match, as often as it says, and can be taken back', async () => {
  const simulation = createSimulation({ seed: 1 })
  const { disk, platform } = simulation.host('a')
  const file = await simulation.run(makeDurableFile(platform.files))
  disk.failNext({ operation: 'write', path: /\/fi/, code: 'EIO', skip: 1, times: 2 })
  const write = (): void => file.writeSync([Buffer.alloc(10, 1)], 0)
  write()
  expect(write).toThrow('Cannot write /data/file (EIO)')
  expect(write).toThrow('EIO')
  write()
  disk.failNext({ operation: 'open', code: 'EMFILE' })()
  disk.failNext({ operation: 'open', path: '/data/other', code: 'EMFILE' })
  await simulation.run(platform.files.open(path, 'read'))
  await expect(simulation.run(platform.files.open('/data/other', 'create'))).rejects.toMatchObject({
    systemCode: 'EMFILE',
  })
})

test('an asynchronous write takes its bytes when it completes', async () => {
  const simulation = createSimulation({ seed: 1 })
  const file = await simulation.run(makeDurableFile(simulation.host('a').platform.files))
  const bytes = Buffer.from('first')
  const written = file.write([bytes], 0)
  bytes.write('later')
  await simulation.run(written)
  expect(await contentOf(simulation)).toBe('later')
})

async function makeDurableFile(files: Files): ReturnType<Files['open']> {
  const file = await files.open(path, 'create')
  await files.syncDirectory('/data')
  return file
}

async function contentOf(simulation: Simulation): Promise<string> {
  const content = await simulation.run(simulation.host('a').platform.files.readFile(path, 10_000))
  return content!.toString('latin1')
}

function resized(content: string, sizeBytes: number): string {
  return content.slice(0, sizeBytes).padEnd(sizeBytes, '\0')
}

function overwritten(content: string, bytes: string, position: number): string {
  if (bytes === '') return content
  return content.slice(0, position).padEnd(position, '\0') + bytes + content.slice(position + bytes.length)
}

async function namesOf(simulation: Simulation): Promise<string> {
  const { files } = simulation.host('a').platform
  const names = new Map<string, string>()
  for (const folder of folders) {
    for (const { name } of (await simulation.run(files.list(folder))) ?? []) {
      names.set(`${folder}/${name}`, String(await simulation.run(files.readFile(`${folder}/${name}`, 10))))
    }
  }
  return describeNames(names)
}

function describeNames(names: ReadonlyMap<string, string>): string {
  return [...names]
    .map(([at, content]) => `${at}=${content}`)
    .sort((a, b) => (a < b ? -1 : 1))
    .join(' ')
}

/** The names after the first `counts` changes of each folder; undefined when that would split a rename. */
function namesAfter(
  changes: readonly (readonly { folder: Folder; name: string; content: string | undefined }[])[],
  counts: Readonly<Record<Folder, number>>,
): Map<string, string> | undefined {
  const names = new Map<string, string>()
  const indexes: Record<Folder, number> = { '/data/x': 0, '/data/y': 0 }
  for (const change of changes) {
    const touched = [...new Set(change.map((step) => step.folder))]
    const isKept = touched.map((folder) => indexes[folder]++ < counts[folder])
    if (isKept.includes(true) && isKept.includes(false)) return undefined
    if (isKept.includes(false)) continue
    for (const { folder, name, content } of change) {
      if (content === undefined) names.delete(`${folder}/${name}`)
      else names.set(`${folder}/${name}`, content)
    }
  }
  return names
}

test('a disk that was wiped holds nothing, after a crash neither', async () => {
  const simulation = createSimulation({ seed: 1 })
  const host = simulation.host('a')
  await simulation.run(makeDurableFile(host.platform.files))
  host.kill()
  host.disk.wipe()
  expect(host.disk.usedBytes).toBe(0)
  expect(host.disk.find(path)).toBeUndefined()
  host.disk.crash()
  const { files } = host.restart()
  expect(await simulation.run(files.readFile(path, 100))).toBeUndefined()
  await simulation.run(makeDurableFile(files))
  expect(host.disk.find(path)).toBeDefined()
})
