import type { ConfigChange } from '../coordination/index.ts'
import { apis } from '../protocol/index.ts'
import { defineApi } from './api.ts'
import { allRefused, alterResources } from './config-resources.ts'

/**
 * IncrementalAlterConfigs, 0 to 1.
 *
 *   1  flexible
 *
 * Changes single keys: 0 sets, 1 deletes, 2 appends to a list, 3 subtracts from it. A list that isn't set begins as the
 * built-in default. To delete what isn't set is no error. Another operation is an invalid request, where Kafka answers an
 * unknown error. Resources as in AlterConfigs.
 */
export const incrementalAlterConfigs = defineApi({
  api: apis.IncrementalAlterConfigs,
  versions: { min: 0, max: 1 },
  async handle({ resources, validateOnly }, context) {
    const responses = await alterResources(
      resources,
      ({ configs }) => {
        const changes = new Map<string, ConfigChange>()
        for (const { name, configOperation, value } of configs) {
          const change = changeOf(configOperation, value)
          if (typeof change === 'object' && change !== null && 'fault' in change) {
            return { ok: false, message: `${change.fault}: ${name}` }
          }
          changes.set(name, change)
        }
        return { ok: true, changes, replaces: false }
      },
      validateOnly,
      context,
    )
    return { body: { responses } }
  },
  fault: ({ resources }, errorCode) => ({ responses: allRefused(resources, errorCode) }),
})

const operations = { set: 0, delete: 1, append: 2, subtract: 3 } as const

function changeOf(operation: number, value: string | null): ConfigChange | { readonly fault: string } {
  if (operation === operations.delete) return null
  if (value === null) return { fault: 'Null is no value' }
  if (operation === operations.set) return value
  if (operation === operations.append) return { append: value }
  if (operation === operations.subtract) return { subtract: value }
  return { fault: `There is no operation ${operation}` }
}
