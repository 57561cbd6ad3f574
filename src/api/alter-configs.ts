import { apis } from '../protocol/index.ts'
import { defineApi } from './api.ts'
import { allRefused, alterResources } from './config-resources.ts'

/**
 * AlterConfigs, 0 to 2.
 *
 *   2  flexible
 *
 * Any broker takes it for topics, each for itself, and any for '', the default of all brokers. The request replaces: what
 * is set and not in it is removed, so a client reads all, changes some and writes all back. Kafka 4.4 never answers a
 * request with a resource twice; here both are refused. Settings of brokers that nothing would act on are refused,
 * also unknown names, which Kafka keeps.
 */
export const alterConfigs = defineApi({
  api: apis.AlterConfigs,
  versions: { min: 0, max: 2 },
  async handle({ resources, validateOnly }, context) {
    const responses = await alterResources(
      resources,
      ({ configs }) => {
        const changes = new Map<string, string>()
        for (const { name, value } of configs) {
          if (value === null) return { ok: false, message: `Null is no value: ${name}` }
          changes.set(name, value)
        }
        return { ok: true, changes, replaces: true }
      },
      validateOnly,
      context,
    )
    return { body: { responses } }
  },
  fault: ({ resources }, errorCode) => ({ responses: allRefused(resources, errorCode) }),
})
