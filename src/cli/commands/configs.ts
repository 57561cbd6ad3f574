import {
  alterConfigs,
  type ConfigChange,
  type ConfigEntry,
  type ConfigResource,
  describeConfigs,
  titleOf,
} from '../client/configs.ts'
import { type ClusterCommandOptions, withCluster } from '../connect.ts'
import { exitCodes, UsageError } from '../exit.ts'
import { note, show, table } from '../output.ts'
import { parseSettings } from '../settings.ts'
import { printable } from '../table.ts'

export type ConfigKind = ConfigResource['kind']

export interface DescribeOptions extends ClusterCommandOptions {
  readonly all?: boolean
}

/** Without `all`, only what someone has set. */
export async function describe(kind: ConfigKind, names: readonly string[], options: DescribeOptions): Promise<void> {
  const resources = resourcesOf(kind, names)
  await withCluster(options, async (cluster) => {
    const described: { readonly resource: ConfigResource; readonly configs: readonly ConfigEntry[] }[] = []
    for (const resource of resources) {
      const configs = await describeConfigs(cluster, resource)
      described.push({
        resource,
        configs: configs.filter(({ source }) => options.all === true || source !== 'default'),
      })
    }
    const results = described.map(({ resource, configs }) => ({ ...resource, configs }))
    await show(options, results, () =>
      described.map(({ resource, configs }) => describedText(resource, configs)).join('\n'),
    )
  })
}

export interface AlterOptions extends ClusterCommandOptions {
  /** `key=value` texts. */
  readonly set?: readonly string[]
  readonly delete?: readonly string[]
  readonly append?: readonly string[]
  readonly subtract?: readonly string[]
  readonly dryRun?: boolean
}

export async function alter(kind: ConfigKind, names: readonly string[], options: AlterOptions): Promise<void> {
  const changes: readonly ConfigChange[] = [
    ...changesOf('set', parseSettings('--set', options.set)),
    ...(options.delete ?? []).map((key) => ({ operation: 'delete', key, value: null }) as const),
    ...changesOf('append', parseSettings('--append', options.append)),
    ...changesOf('subtract', parseSettings('--subtract', options.subtract)),
  ]
  if (changes.length === 0) throw new UsageError('Nothing to change: name --set, --delete, --append or --subtract')
  const resources = resourcesOf(kind, names)
  await withCluster(options, async (cluster) => {
    const results: { readonly resource: ConfigResource; readonly error: string | undefined }[] = []
    for (const resource of resources) {
      const refused = await alterConfigs(cluster, resource, changes, options.dryRun === true)
      results.push({ resource, error: refused?.message })
    }
    const done = options.dryRun === true ? 'can be altered so' : 'altered'
    await show(
      options,
      results.map(({ resource, error }) => (error === undefined ? resource : { ...resource, error })),
      () =>
        results
          .filter(({ error }) => error === undefined)
          .map(({ resource }) => `Settings of ${printable(titleOf(resource))} ${done}\n`)
          .join(''),
    )
    for (const { error } of results) {
      if (error === undefined) continue
      note(`rookery: ${error}`)
      process.exitCode = exitCodes.fault
    }
  })
}

function resourcesOf(kind: ConfigKind, names: readonly string[]): readonly ConfigResource[] {
  if (kind === 'topic') {
    if (names.length === 0) throw new UsageError('Which topic? Name one, or several')
    return names.map((name) => ({ kind, name }))
  }
  const other = names.find((name) => !/^\d{1,10}$/.test(name))
  if (other !== undefined) throw new UsageError(`Broker ${other}: a broker is named by its id, a whole number`)
  return names.length === 0 ? [{ kind, name: '' }] : names.map((name) => ({ kind, name }))
}

function changesOf(operation: 'set' | 'append' | 'subtract', settings: ReadonlyMap<string, string>): ConfigChange[] {
  return [...settings].map(([key, value]) => ({ operation, key, value }))
}

function describedText(resource: ConfigResource, configs: readonly ConfigEntry[]): string {
  const title = titleOf(resource)
  if (configs.length === 0) return `Nothing is set for ${printable(title)}; --all shows the defaults\n`
  const columns = [
    { title: 'KEY', value: ({ key }: ConfigEntry) => key },
    { title: 'VALUE', value: ({ value, sensitive }: ConfigEntry) => (sensitive ? '(hidden)' : value) },
    { title: 'SET BY', value: ({ source }: ConfigEntry) => source },
    { title: 'ALTERABLE', value: ({ readOnly }: ConfigEntry) => (readOnly ? 'no' : 'yes') },
  ]
  return `${printable(title)}\n${table(columns, configs)}`
}
