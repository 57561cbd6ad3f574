import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'vitest'

/** A program of others that tests run Rookery against. `kafka-compiled`: Apache Kafka, for a Java program of the test's own. */
export type PeerName = 'bash' | 'zsh' | 'fish' | 'kcat' | 'openssl' | 'kafka' | 'kafka-compiled'

/** How to start a peer: `spawn(peer.command, [...peer.args, ...])`. */
export interface Peer {
  readonly command: string
  /** For Apache Kafka: the class path; the tool's main class comes next, `org.apache.kafka.tools.DumpLogSegments`. */
  readonly args: readonly string[]
}

/** A peer that can't be started here. */
export interface MissingPeer {
  readonly missing: string
  /** The command that brings it. */
  readonly remedy: string
}

/** Of Apache Kafka; another one for a comparison by hand, when scripts/kafka-jars.sh has brought it. */
const kafkaVersion = process.env.ROOKERY_KAFKA_VERSION ?? '4.4.0'

/** Where scripts/kafka-jars.sh puts them. */
export const kafkaJars = join(import.meta.dirname, `../../node_modules/.cache/kafka-${kafkaVersion}`)

/** Looks for a peer on this machine. */
export function findPeer(name: PeerName, jars = kafkaJars): Peer | MissingPeer {
  if (name === 'kcat' || name === 'openssl' || name === 'bash' || name === 'zsh' || name === 'fish') {
    const versionArgument = { kcat: '-V', openssl: 'version' }[name as string] ?? '--version'
    if (starts(name, versionArgument)) return { command: name, args: [] }
    return { missing: name, remedy: `apt-get install ${name}` }
  }
  if (!existsSync(join(jars, '.complete'))) {
    return { missing: "Apache Kafka's tools", remedy: 'scripts/kafka-jars.sh' }
  }
  if (!starts('java', '-version')) return { missing: 'java', remedy: 'apt-get install default-jre-headless' }
  if (name === 'kafka-compiled' && !starts('javac', '-version')) {
    return { missing: 'the Java compiler', remedy: 'apt-get install default-jdk-headless' }
  }
  return { command: 'java', args: ['-Xmx256m', '-XX:TieredStopAtLevel=1', '-cp', join(jars, '*')] }
}

/**
 * A `describe` of tests that need `name`. Where it is missing they are skipped, and a line says so; with
 * ROOKERY_REQUIRE_PEERS=1 they fail instead.
 */
export function describeWithPeer(name: PeerName, title: string, body: (peer: Peer) => void): void {
  const found = findPeer(name)
  if ('command' in found) {
    describe(title, () => body(found))
    return
  }
  const reason = `${found.missing} is not on this machine; \`${found.remedy}\` brings it`
  if (process.env.ROOKERY_REQUIRE_PEERS === '1') {
    test(title, () => {
      throw new Error(reason)
    })
    return
  }
  console.warn(`SKIPPED: ${title}: ${reason}`)
  test.skipIf(true)(title, () => {
    // Never runs: it is here so that the report counts what was left out.
  })
}

function starts(command: string, argument: string): boolean {
  return spawnSync(command, [argument], { stdio: 'ignore' }).status === 0
}
