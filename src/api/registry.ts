import type { ServedApi } from './api.ts'
import { apiVersions } from './api-versions.ts'
import { createTopics } from './create-topics.ts'
import { deleteTopics } from './delete-topics.ts'
import { describeCluster } from './describe-cluster.ts'
import { describeConfigs } from './describe-configs.ts'
import { fetch } from './fetch.ts'
import { initProducerId } from './init-producer-id.ts'
import { listOffsets } from './list-offsets.ts'
import { metadata } from './metadata.ts'
import { produce } from './produce.ts'

/** Every API that is served, by key: what ApiVersions answers and the table in the README is made of. */
export const servedApis: readonly ServedApi[] = [
  produce,
  fetch,
  listOffsets,
  metadata,
  apiVersions(() => servedApis),
  createTopics,
  deleteTopics,
  initProducerId,
  describeConfigs,
  describeCluster,
].sort((left, right) => left.api.key - right.api.key)
