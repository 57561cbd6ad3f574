import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { describeWithPeer, findPeer } from '../../support/peers.ts'

test('findPeer names what is missing and the command that brings it', () => {
  expect(findPeer('kafka', join(import.meta.dirname, 'no-such-folder'))).toEqual({
    missing: "Apache Kafka's tools",
    remedy: 'scripts/kafka-jars.sh',
  })
})

describeWithPeer('kcat', 'kcat', (kcat) => {
  test('starts and has the codecs that the tests need', () => {
    const version = spawnSync(kcat.command, [...kcat.args, '-V'], { encoding: 'utf8' })
    for (const codec of ['gzip', 'snappy', 'lz4', 'zstd']) expect(version.stdout).toContain(codec)
  })
})

describeWithPeer('kafka', "Apache Kafka's tools", (kafka) => {
  test('start', () => {
    const tool = 'org.apache.kafka.tools.TopicCommand'
    const run = spawnSync(kafka.command, [...kafka.args, tool, '--version'], { encoding: 'utf8' })
    expect(run.stdout).toMatch(/^4\.4\.0/m)
  })
})
