import { readFileSync, statSync } from 'node:fs'
import { createServer } from 'node:net'
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
  readonly healthcheck?: { readonly test: readonly string[] }
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
  readonly metadata: { readonly name: string }
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
          readonly livenessProbe: { readonly exec?: { readonly command: readonly string[] } }
        }[]
        readonly volumes: readonly { readonly name: string }[]
      }
    }
    readonly volumeClaimTemplates: readonly { readonly metadata: { readonly name: string } }[]
  }
}

/** What is in a file of Kubernetes, and what it says that is wrong in itself. */
function manifestsOf(name: string): { readonly errors: unknown[]; readonly objects: readonly StatefulSet[] } {
  const documents = parseAllDocuments(read(name))
  return {
    errors: documents.flatMap(({ errors }) => errors),
    objects: documents.map((document) => document.toJS() as StatefulSet),
  }
}

/** All pods start at once, as a user that is not root, with volumes that there are. */
function expectSafe({ spec }: StatefulSet): void {
  const pod = spec.template.spec
  const [container] = pod.containers
  expect(spec.podManagementPolicy).toBe('Parallel')
  expect(pod.securityContext).toMatchObject({ runAsNonRoot: true, runAsUser: 10001 })
  expect(spec.template.metadata.labels).toEqual(spec.selector.matchLabels)
  const provided = [
    ...pod.volumes.map(({ name }) => name),
    ...spec.volumeClaimTemplates.map((each) => each.metadata.name),
  ]
  expect(container!.volumeMounts.map(({ name }) => name).toSorted()).toEqual(provided.toSorted())
  const { exec } = container!.livenessProbe
  if (exec === undefined) return
  const [program, ...args] = exec.command
  expect(program).toBe('rookery')
  expectKnown(args)
}

/** The settings of each pod, as its shell would give them to Rookery. */
async function configsOf({ metadata, spec }: StatefulSet): Promise<ParsedConfig[]> {
  const [container] = spec.template.spec.containers
  // A string each: anything else is refused by Kubernetes.
  expect(container!.env.every(({ value }) => typeof value === 'string')).toBe(true)
  const environment = Object.fromEntries(container!.env.map(({ name, value }) => [name, `${value}`]))
  const configs: ParsedConfig[] = []
  for (let ordinal = 0; ordinal < spec.replicas; ordinal++) {
    const [shell, flags, script] = container!.command
    const shown = script!.replace('exec rookery start', 'exec env')
    expect(shown).not.toBe(script)
    const env = { ...environment, HOSTNAME: `${metadata.name}-${ordinal}` }
    const { exitCode, stdout, output } = await runProgram(shell!, [flags!, shown], { env })
    expect(exitCode, output).toBe(0)
    const lines = stdout.split('\n').filter((line) => line.startsWith('ROOKERY_'))
    configs.push(configOf(Object.fromEntries(lines.map((line) => line.split(/=(.*)/s) as [string, string]))))
  }
  return configs
}

describe('statefulset.yaml', () => {
  const { errors, objects } = manifestsOf('statefulset.yaml')
  const set = objects.find(({ kind }) => kind === 'StatefulSet')!

  test('is well-formed, starts all pods at once and as a user that is not root', () => {
    expect(errors).toEqual([])
    expect(objects.map(({ kind }) => kind)).toEqual(['Service', 'Service', 'PodDisruptionBudget', 'StatefulSet'])
    expectSafe(set)
  })

  test('gives each pod the settings of its voter', async () => {
    const configs = await configsOf(set)
    expect(configs.map(({ nodeId }) => nodeId)).toEqual([1, 2, 3])
    configs.forEach(({ quorumVoters, listeners, controllerListeners, unused }, ordinal) => {
      expect(unused).toEqual([])
      expect(quorumVoters).toHaveLength(set.spec.replicas)
      const host = `rookery-${ordinal}.${set.spec.serviceName}`
      expect(quorumVoters[ordinal]).toEqual({ nodeId: ordinal + 1, host, port: controllerListeners[0]!.port })
      expect(listeners).toMatchObject([{ advertisedHost: host }])
    })
  })
})

describe('compose-roles.yaml', () => {
  const { services, volumes } = composeOf('compose-roles.yaml')
  const nodes = Object.entries(services).map(([host, service]) => ({
    host,
    service,
    config: configOf(service.environment),
  }))
  const controllers = nodes.filter(({ config }) => config.roles.controller)
  const brokers = nodes.filter(({ config }) => config.roles.broker)

  test('has three controllers and three brokers of one cluster, each with data of its own', () => {
    expect([controllers.length, brokers.length, nodes.length]).toEqual([3, 3, 6])
    expect(new Set(nodes.map(({ config }) => config.nodeId)).size).toBe(6)
    const voters = controllers.map(({ host, config }) => {
      return { nodeId: config.nodeId, host, port: config.controllerListeners[0]!.port }
    })
    for (const { config } of nodes) {
      expect(config.unused).toEqual([])
      expect(config.quorumVoters).toEqual(voters)
      // What the controller decides by is the same, whichever leads.
      expect([config.values.defaultReplicationFactor, config.values.minInsyncReplicas]).toEqual([3, 2])
    }
    const mounted = nodes.flatMap(({ service }) => service.volumes.map((volume) => volume.split(':')))
    expect(mounted.map(([volume]) => volume).toSorted()).toEqual(Object.keys(volumes).toSorted())
    expect(mounted.every(([, path]) => path === '/var/lib/rookery')).toBe(true)
  })

  test('publishes brokers as compose-three.yaml does, and no controller', () => {
    for (const { host, service, config } of brokers) {
      const [internal, outside] = config.listeners
      expect(internal).toMatchObject({ advertisedHost: host, advertisedPort: internal!.port })
      expect(service.ports).toEqual([`127.0.0.1:${outside!.advertisedPort}:${outside!.port}`])
      expect(outside).toMatchObject({ advertisedHost: 'localhost', port: 9092 })
      expect(config.interBrokerListenerName).toBe(internal!.name)
    }
    expect(new Set(brokers.flatMap(({ service }) => service.ports)).size).toBe(3)
    for (const { host, service, config } of controllers) {
      expect(service.ports).toBeUndefined()
      expect(config.listeners).toEqual([])
      expect(config.controllerListeners).toMatchObject([{ advertisedHost: host }])
    }
  })

  test('looks after controllers in a way of its own, which tells whether one listens', async () => {
    for (const { host, service } of brokers) expect(service.healthcheck, host).toBeUndefined()
    for (const { service, config } of controllers) {
      const [how, program, ...args] = service.healthcheck!.test
      expect([how, program]).toEqual(['CMD', 'node'])
      const listener = createServer((socket) => socket.end())
      await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve))
      const { port } = listener.address() as { port: number }
      const here = args.map((arg) => arg.replace(`${config.controllerListeners[0]!.port}`, `${port}`))
      expect(here).not.toEqual(args)
      expect((await runProgram(process.execPath, here)).exitCode).toBe(0)
      await new Promise((resolve) => listener.close(resolve))
      expect((await runProgram(process.execPath, here)).exitCode).toBe(1)
    }
  })
})

describe('statefulset-roles.yaml', () => {
  const { errors, objects } = manifestsOf('statefulset-roles.yaml')
  const setOf = (name: string) =>
    objects.find(({ kind, metadata }) => kind === 'StatefulSet' && metadata.name === name)!
  const [controllers, brokers] = [setOf('rookery-controller'), setOf('rookery-broker')]

  test('is well-formed, starts all pods at once and as a user that is not root', () => {
    expect(errors).toEqual([])
    const sets = ['PodDisruptionBudget', 'StatefulSet']
    const kinds = ['Service', 'Service', 'Service', ...sets, ...sets]
    expect(objects.map(({ kind }) => kind)).toEqual(kinds)
    for (const set of [controllers, brokers]) {
      expectSafe(set)
      const services = objects.filter(({ kind }) => kind === 'Service').map(({ metadata }) => metadata.name)
      expect(services).toContain(set.spec.serviceName)
    }
  })

  test('gives each pod the settings of its controller or broker', async () => {
    const voters = [0, 1, 2].map((ordinal) => {
      return { nodeId: ordinal + 1, host: `rookery-controller-${ordinal}.rookery-controller`, port: 9093 }
    })
    const asControllers = await configsOf(controllers)
    const asBrokers = await configsOf(brokers)
    expect(asControllers.map(({ nodeId }) => nodeId as number)).toEqual([1, 2, 3])
    expect(asBrokers.map(({ nodeId }) => nodeId as number)).toEqual([11, 12, 13])
    for (const config of [...asControllers, ...asBrokers]) {
      expect(config.unused).toEqual([])
      expect(config.quorumVoters).toEqual(voters)
      expect([config.values.defaultReplicationFactor, config.values.minInsyncReplicas]).toEqual([3, 2])
    }
    asControllers.forEach(({ roles, controllerListeners, nodeId }) => {
      expect(roles).toEqual({ broker: false, controller: true })
      const { host, port } = voters.find((voter) => voter.nodeId === (nodeId as number))!
      expect(controllerListeners).toMatchObject([{ advertisedHost: host, advertisedPort: port }])
    })
    asBrokers.forEach(({ roles, listeners }, ordinal) => {
      expect(roles).toEqual({ broker: true, controller: false })
      const advertisedHost = `rookery-broker-${ordinal}.${brokers.spec.serviceName}`
      expect(listeners).toMatchObject([{ advertisedHost, advertisedPort: 9092 }])
    })
  })
})
