import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { parse, parseAllDocuments } from 'yaml'
import { createProgram } from '../../src/cli/program.ts'
import { type ParsedConfig, parseConfig } from '../../src/config/index.ts'
import { runProgram } from '../support/programs.ts'
import { root } from '../support/readme.ts'

// As far as it goes without a container engine: what is in the files is read as Rookery, and sh, would read it.

type Environment = Record<string, string>

interface Service {
  readonly environment: Environment
  readonly ports: readonly string[]
  readonly volumes: readonly string[]
}

interface Compose {
  readonly services: Record<string, Service>
  readonly volumes: Record<string, unknown>
}

const read = (name: string): string => readFileSync(join(root, 'docker', name), 'utf8')

function composeOf(name: string): Compose {
  return parse(read(name), { merge: true }) as Compose
}

/** With the variables of the image. */
function configOf(environment: Environment): ParsedConfig {
  const texts = Object.entries({ ...imageVariables(), ...environment }).map(([name, value]) => [name, `${value}`])
  return parseConfig({ env: Object.fromEntries(texts) as Environment })
}

/** Instructions of the Dockerfile, with the lines that go on in one. */
function instructions(): { readonly name: string; readonly rest: string }[] {
  const lines = read('Dockerfile').replaceAll('\\\n', ' ').split('\n')
  return lines
    .filter((line) => /^[A-Z]+ /.test(line))
    .map((line) => ({ name: line.split(' ', 1)[0]!, rest: line.slice(line.indexOf(' ') + 1).trim() }))
}

function imageVariables(): Environment {
  const set = instructions().filter(({ name, rest }) => name === 'ENV' && rest.startsWith('ROOKERY_'))
  return Object.fromEntries(
    set.map(({ rest }) => [rest.slice(0, rest.indexOf('=')), rest.slice(rest.indexOf('=') + 1)]),
  )
}

/** Throws for a command or an option that the program does not have. */
function expectKnown(args: readonly string[]): void {
  const [name, ...rest] = args
  const command = createProgram().commands.find((each) => each.name() === name)!
  const { unknown } = command.parseOptions(rest)
  const isParent = unknown.length > 0
  const target = isParent ? command.commands.find((each) => each.name() === rest[0])! : command
  const options = isParent ? rest.slice(1) : rest
  expect(target.parseOptions(options).unknown, args.join(' ')).toEqual([])
}

describe('the image', () => {
  test('runs as a user that is not root, and owns its data only', () => {
    const [user] = instructions().filter(({ name }) => name === 'USER')
    expect(user!.rest).toMatch(/^[1-9]\d*:[1-9]\d*$/)
    expect(read('Dockerfile')).toContain(`install -d -o ${user!.rest.replace(':', ' -g ')} /var/lib/rookery`)
    expect(statSync(join(root, 'docker/rookery')).mode & 0o111).toBe(0o111)
  })

  test('copies what there is, and all that the package has', () => {
    const copies = instructions().filter(({ name }) => name === 'COPY')
    const local = copies
      .filter(({ rest }) => !rest.startsWith('--from'))
      .flatMap(({ rest }) => rest.split(' ').slice(0, -1))
    expect(local.filter((path) => statSync(join(root, path), { throwIfNoEntry: false }) === undefined)).toEqual([])
    const { files } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { files: string[] }
    const targets = new Set(copies.map(({ rest }) => rest.split(' ').at(-1)))
    expect(files.filter((file) => !/\.md$|^LICENSE$/.test(file) && !targets.has(file))).toEqual([])
  })

  test('has settings, a start and a health check that Rookery takes', () => {
    const { listeners, logDirs } = configOf({})
    expect(listeners).toMatchObject([{ host: '0.0.0.0', port: 9092, advertisedHost: 'localhost' }])
    expect(logDirs).toEqual(['/var/lib/rookery/data'])
    const [health] = instructions().filter(({ name }) => name === 'HEALTHCHECK')
    const [program, ...args] = JSON.parse(health!.rest.slice(health!.rest.indexOf('['))) as string[]
    expect(program).toBe('rookery')
    expectKnown(args)
    const [command] = instructions().filter(({ name }) => name === 'CMD')
    expectKnown(JSON.parse(command!.rest) as string[])
  })
})

describe.each([
  ['compose.yaml', 1],
  ['compose-three.yaml', 3],
])('%s', (name, nodeCount) => {
  const { services, volumes } = composeOf(name)
  const nodes = Object.entries(services).map(([host, service]) => ({
    host,
    service,
    config: configOf(service.environment),
  }))

  test('has nodes that are one cluster, each with data of its own', () => {
    expect(nodes).toHaveLength(nodeCount)
    expect(new Set(nodes.map(({ config }) => config.nodeId)).size).toBe(nodeCount)
    expect(new Set(nodes.map(({ config }) => JSON.stringify(config.quorumVoters))).size).toBe(1)
    for (const { host, config } of nodes) {
      expect(config.unused).toEqual([])
      const voter = config.quorumVoters.find(({ nodeId }) => nodeId === config.nodeId)
      if (nodeCount > 1)
        expect(voter).toEqual({ nodeId: config.nodeId, host, port: config.controllerListeners[0]!.port })
    }
    const mounted = nodes.flatMap(({ service }) => service.volumes.map((volume) => volume.split(':')))
    expect(mounted.map(([volume]) => volume).toSorted()).toEqual(Object.keys(volumes).toSorted())
    expect(mounted.every(([, path]) => path === '/var/lib/rookery')).toBe(true)
  })

  test('is reached by containers under the names of the services, and by the host at the published ports', () => {
    for (const { host, service, config } of nodes) {
      const [internal, outside] = config.listeners
      expect(internal).toMatchObject({ advertisedHost: host, advertisedPort: internal!.port })
      expect(service.ports).toEqual([`127.0.0.1:${outside!.advertisedPort}:${outside!.port}`])
      expect(outside!.advertisedHost).toBe('localhost')
      expect(config.interBrokerListenerName).toBe(internal!.name)
      expect(outside!.port).toBe(9092) // which the health check asks
    }
  })
})

interface StatefulSet {
  readonly kind: string
  readonly spec: {
    readonly serviceName: string
    readonly replicas: number
    readonly podManagementPolicy: string
    readonly selector: { readonly matchLabels: unknown }
    readonly template: {
      readonly metadata: { readonly labels: unknown }
      readonly spec: {
        readonly securityContext: { readonly runAsNonRoot: boolean; readonly runAsUser: number }
        readonly containers: readonly {
          readonly command: readonly string[]
          readonly env: readonly { readonly name: string; readonly value: unknown }[]
          readonly volumeMounts: readonly { readonly name: string }[]
          readonly livenessProbe: { readonly exec: { readonly command: readonly string[] } }
        }[]
        readonly volumes: readonly { readonly name: string }[]
      }
    }
    readonly volumeClaimTemplates: readonly { readonly metadata: { readonly name: string } }[]
  }
}

describe('statefulset.yaml', () => {
  const documents = parseAllDocuments(read('statefulset.yaml'))
  const objects = documents.map((document) => document.toJS() as StatefulSet)
  const { spec } = objects.find(({ kind }) => kind === 'StatefulSet')!
  const pod = spec.template.spec
  const [container] = pod.containers

  test('is well-formed, starts all pods at once and as a user that is not root', () => {
    expect(documents.flatMap(({ errors }) => errors)).toEqual([])
    expect(objects.map(({ kind }) => kind)).toEqual(['Service', 'Service', 'PodDisruptionBudget', 'StatefulSet'])
    expect(spec.podManagementPolicy).toBe('Parallel')
    expect(pod.securityContext).toMatchObject({ runAsNonRoot: true, runAsUser: 10001 })
    expect(spec.template.metadata.labels).toEqual(spec.selector.matchLabels)
    const provided = [
      ...pod.volumes.map(({ name }) => name),
      ...spec.volumeClaimTemplates.map((each) => each.metadata.name),
    ]
    expect(container!.volumeMounts.map(({ name }) => name).toSorted()).toEqual(provided.toSorted())
    const [program, ...args] = container!.livenessProbe.exec.command
    expect(program).toBe('rookery')
    expectKnown(args)
  })

  test('gives each pod the settings of its voter', async () => {
    // A string each: anything else is refused by Kubernetes.
    expect(container!.env.every(({ value }) => typeof value === 'string')).toBe(true)
    const environment = Object.fromEntries(container!.env.map(({ name, value }) => [name, `${value}`]))
    const configs: ParsedConfig[] = []
    for (let ordinal = 0; ordinal < spec.replicas; ordinal++) {
      const [shell, flags, script] = container!.command
      const shown = script!.replace('exec rookery start', 'exec env')
      expect(shown).not.toBe(script)
      const env = { ...environment, HOSTNAME: `rookery-${ordinal}` }
      const { exitCode, stdout, output } = await runProgram(shell!, [flags!, shown], { env })
      expect(exitCode, output).toBe(0)
      const lines = stdout.split('\n').filter((line) => line.startsWith('ROOKERY_'))
      configs.push(configOf(Object.fromEntries(lines.map((line) => line.split(/=(.*)/s) as [string, string]))))
    }
    expect(configs.map(({ nodeId }) => nodeId)).toEqual([1, 2, 3])
    configs.forEach(({ quorumVoters, listeners, controllerListeners, unused }, ordinal) => {
      expect(unused).toEqual([])
      expect(quorumVoters).toHaveLength(spec.replicas)
      const host = `rookery-${ordinal}.${spec.serviceName}`
      expect(quorumVoters[ordinal]).toEqual({ nodeId: ordinal + 1, host, port: controllerListeners[0]!.port })
      expect(listeners).toMatchObject([{ advertisedHost: host }])
    })
  })
})
