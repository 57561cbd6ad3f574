import { supportedFeatures } from '../metadata/index.ts'
import { type ApiVersionsResponse, apis, ErrorCode, type MessageInput } from '../protocol/index.ts'
import { defineApi, type RequestContext, type ServedApi } from './api.ts'

/**
 * ApiVersions, 0 to 4.
 *
 *   1  throttle time     3  flexible; the client's name and version; features     4  features whose lowest level is 0
 *
 * Trips clients: the response's header never has tags, since its reader doesn't know yet what it gets. A version above 4
 * is answered in the layout of version 0 with UNSUPPORTED_VERSION and this API's own range, whatever its body
 * (`apiVersionsFallback`); newer clients open with 5, so that is on their every connection. In no other API is an unknown
 * version answered.
 *
 * Features: those that this broker supports, and the cluster's levels of those that have one. Transactions of version 2 and the new
 * group protocol are not among them, so clients stay with the ones that are built.
 */
export function apiVersions(served: () => readonly ServedApi[]): ServedApi {
  return defineApi({
    api: apis.ApiVersions,
    versions: { min: 0, max: 4 },
    brief: true,
    handle(request, context) {
      const { clientSoftwareName: name, clientSoftwareVersion: version } = request
      if (context.apiVersion >= 3 && !(softwareText.test(name) && softwareText.test(version))) {
        return { body: { errorCode: ErrorCode.INVALID_REQUEST, apiKeys: [] } }
      }
      const { peer } = context.connection
      context.services.log.debug({ peer, clientId: context.clientId, name, version }, 'client asked for versions')
      return { body: { errorCode: ErrorCode.NONE, apiKeys: served().map(rangeOf), ...features(context) } }
    },
    fault: (_request, errorCode) => ({ errorCode, apiKeys: [] }),
  })
}

type Body = MessageInput<typeof ApiVersionsResponse>

const softwareText = /^[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?$/

function rangeOf({ api, versions }: ServedApi) {
  return { apiKey: api.key, minVersion: versions.advertisedMin ?? versions.min, maxVersion: versions.max }
}

function features({ apiVersion, services }: RequestContext): Partial<Body> {
  const { image } = services.coordination
  // A reader of version 3 takes a lowest level of 0 for a fault.
  const told = supportedFeatures.filter(({ minLevel }) => apiVersion >= 4 || minLevel > 0)
  return {
    supportedFeatures: told.map(({ name, minLevel, maxLevel }) => ({
      name,
      minVersion: minLevel,
      maxVersion: maxLevel,
    })),
    finalizedFeaturesEpoch: image.index,
    finalizedFeatures: [...image.features]
      .filter(([, level]) => level > 0)
      .map(([name, level]) => ({ name, maxVersionLevel: level, minVersionLevel: level })),
  }
}

/** What a version of ApiVersions that isn't served gets, in version 0: enough to ask again with one that is. */
export function apiVersionsFallback(own: ServedApi): Body {
  return { errorCode: ErrorCode.UNSUPPORTED_VERSION, apiKeys: [rangeOf(own)] }
}
