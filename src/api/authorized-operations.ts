/**
 * Bit sets of what a client may do, as the answers to "include authorized operations" give it: without an authorizer, all
 * that the kind of resource has. A bit's number is that of Kafka's ACL operation.
 */
const read = 1 << 3
const write = 1 << 4
const create = 1 << 5
const remove = 1 << 6
const alter = 1 << 7
const describe = 1 << 8
const clusterAction = 1 << 9
const describeConfigs = 1 << 10
const alterConfigs = 1 << 11
const idempotentWrite = 1 << 12

export const topicOperations = read | write | create | remove | alter | describe | describeConfigs | alterConfigs
export const clusterOperations =
  create | alter | describe | clusterAction | describeConfigs | alterConfigs | idempotentWrite
export const groupOperations = read | remove | describe | describeConfigs | alterConfigs
/** They were not asked for. */
export const operationsNotAsked = -2147483648
