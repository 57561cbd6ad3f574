import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { apis } from '../../src/protocol/index.ts'
import { BrokerProcess } from '../support/broker-process.ts'
import { connect } from '../support/kafka-connection.ts'
import { runProgram } from '../support/programs.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

const clusterId = async (folder: string) =>
  /^cluster\.id=(\S+)$/m.exec(await readFile(join(folder, 'meta.properties'), 'utf8'))?.[1] ?? ''

test('a second process on the same folder is refused, and the first serves on', async () => {
  await using parent = await temporaryFolder()
  const folder = join(parent.path, 'data')
  await using first = await BrokerProcess.start({ folder })
  await using second = new BrokerProcess({ folder })
  const { exitCode, stderr } = await second.program.ended()
  expect(exitCode).toBe(1)
  expect(stderr).toMatch(/^rookery: [^\n]+\n$/)
  for (const each of [folder, `process ${first.program.pid}`]) expect(stderr).toContain(each)
  const client = await connect(first.bootstrapServers)
  expect((await client.request(apis.Metadata, 9, { topics: null })).brokers).toHaveLength(1)
  client.close()
})

test('a folder of another cluster is refused with both ids, and the command that the refusal names mends it', async () => {
  await using parent = await temporaryFolder()
  const folder = join(parent.path, "it's data")
  await using first = await BrokerProcess.start({ folder })
  await first.stop()
  const stored = await clusterId(folder)
  const config = { 'cluster.id': 'MkU3OEVBNTcwNTJENDM2Qg' }
  await using second = new BrokerProcess({ folder, config })
  const { exitCode, stderr } = await second.program.ended()
  expect(exitCode).toBe(1)
  expect(stderr).toMatch(/^rookery: [^\n]+\n$/)
  for (const each of [stored, config['cluster.id'], folder]) expect(stderr).toContain(each)

  const command = /mv .+$/.exec(stderr.trimEnd())?.[0] ?? ''
  const mended = await runProgram('sh', ['-c', command])
  expect(mended.exitCode, mended.output).toBe(0)
  await using third = await BrokerProcess.start({ folder, config })
  expect(await clusterId(folder)).toBe(config['cluster.id'])
  expect(await clusterId(`${folder}.${stored}`)).toBe(stored)
  await third.stop()
})
