import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { partitionFor } from '../../src/group/index.ts'
import { startKafkaBroker } from '../support/kafka-broker.ts'
import { describeWithPeer } from '../support/peers.ts'
import { rookery } from '../support/rookery-process.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

describeWithPeer('kafka', 'the command line with Apache Kafka', (peer) => {
  test('does everything with its broker, and reads its data folder', async () => {
    await using folder = await temporaryFolder()
    const data = join(folder.path, 'data')
    const config = { 'log.dirs': data, 'log.segment.bytes': 1_048_576, 'log.index.interval.bytes': 512 }
    {
      await using kafka = await startKafkaBroker(peer, { config })
      const run = async (args: readonly string[], input = '') => {
        const { code, stdout, stderr } = await rookery([...args, '-b', kafka.bootstrapServers], { input })
        expect({ args, code, stderr: code === 0 ? '' : stderr }).toEqual({ args, code: 0, stderr: '' })
        return stdout
      }
      await run(['topics', 'create', 'orders', '-p', '2', '-c', 'retention.ms=-1'])
      const lines = Array.from({ length: 20_000 }, (_, i) => `k${i % 100}:value ${i} ${'x'.repeat(100)}\n`)
      for (const codec of ['none', 'gzip', 'snappy', 'lz4', 'zstd']) {
        await run(['produce', 'orders', '-k', ':', '-z', codec], lines.join(''))
      }
      const read = await run(['consume', 'orders', '-k', ':', '--from', 'beginning', '--exit', '-g', 'readers'])
      const everything = Array.from({ length: 5 }, () => lines).flat()
      expect(read.split('\n').sort()).toEqual([...everything.map((line) => line.trimEnd()), ''].sort())
      const jsonLine = `{"partition":1,"timestamp":5,"keyBase64":"/w==","value":null,"headers":[{"key":"a","value":"b"}]}\n`
      await run(['produce', 'orders', '--json'], jsonLine)
      expect(JSON.parse(await run(['consume', 'orders', '--from', '1:-1', '--exit', '--json']))).toMatchObject(
        JSON.parse(jsonLine) as object,
      )
      expect(await run(['groups', 'describe', 'readers'])).toMatch(/^readers: Empty, lag 1, 0 members/)
      expect(await run(['groups', 'reset-offsets', 'readers', '--to', 'beginning', '--execute'])).toContain(
        'NEW OFFSET',
      )
      await run(['topics', 'alter', 'orders', '-p', '3', '-c', 'retention.ms=1000000'])
      expect(await run(['topics', 'describe', 'orders'])).toContain('retention.ms=1000000')
      expect(JSON.parse(await run(['cluster', '--json']))).toMatchObject({ controllerId: 1, quorum: { leaderId: 1 } })
      const findings = JSON.parse(await run(['doctor', '--write', '--json'])) as { status: string; check: string }[]
      expect(findings.filter(({ status }) => status === 'fail')).toEqual([])
      expect(findings.map(({ check }) => check)).toEqual(expect.arrayContaining(['reach', 'clock', 'disk', 'write']))
      const live = await rookery(['log', 'verify', data, '--records'])
      expect(live).toMatchObject({ code: 0, stdout: expect.stringContaining('no faults') })
      if (process.platform === 'linux') expect(live.stderr).toContain('is in use by process')
      await run(['groups', 'delete', 'readers'])
    }
    // It has stopped in order.
    const { code, stdout } = await rookery(['log', 'verify', data, '--records', '--json'])
    const report = JSON.parse(stdout) as { faults: number; inUseBy: string | null; segments: number; records: number }
    expect({ code, ...report }).toMatchObject({ code: 0, faults: 0, inUseBy: null })
    expect(report.records).toBeGreaterThan(100_000)
    expect((await readdir(join(data, 'orders-0'))).filter((name) => name.endsWith('.log')).length).toBeGreaterThan(1)
    const partition = join(data, `__consumer_offsets-${partitionFor('readers', 50)}`)
    const dumped = await rookery(['log', 'dump', partition, '-r'])
    expect(dumped).toMatchObject({ code: 0, stdout: expect.stringContaining('"group":"readers","topic":"orders"') })
  }, 180_000)
})
