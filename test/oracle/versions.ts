import { servedApis } from '../../src/api/registry.ts'
import type { Api, ApiMessage } from '../../src/protocol/index.ts'
import type { Fields } from '../../src/protocol/schema.ts'
import { inRange } from '../../src/protocol/versions.ts'

/** Every version of an API that Rookery serves, lowest first; `from` leaves the lower ones out. */
export function versionsOf(api: Pick<Api, 'key'>, from = 0, to = 99): number[] {
  const served = servedApis.find((each) => each.api.key === api.key)
  if (served === undefined) throw new Error(`API ${api.key} is not served`)
  const { min, max } = served.versions
  const first = Math.max(min, from)
  return Array.from({ length: Math.max(0, Math.min(max, to) - first + 1) }, (_, i) => first + i)
}

/** `body` without what `version` of the message doesn't have: so one body serves all versions. */
export function fitToVersion(message: ApiMessage, version: number, body: unknown): Record<string, unknown> {
  return pruned(message.fields, version, body as Record<string, unknown>)
}

function pruned(fields: Fields, version: number, value: Record<string, unknown>): Record<string, unknown> {
  const kept: Record<string, unknown> = {}
  for (const [name, field] of Object.entries(fields)) {
    const inner = value[name]
    if (inner === undefined || !inRange(field.versions, version)) continue
    if (field.kind === 'array' && inner !== null) {
      kept[name] = (inner as Record<string, unknown>[]).map((each) => pruned(field.fields, version, each))
    } else if (field.kind === 'struct' && inner !== null) {
      kept[name] = pruned(field.fields, version, inner as Record<string, unknown>)
    } else kept[name] = inner
  }
  return kept
}
