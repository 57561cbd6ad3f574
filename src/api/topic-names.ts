/** Groups keep their state in it. */
export const offsetsTopic = '__consumer_offsets'
/** Transactions keep their state in it. */
const transactionsTopic = '__transaction_state'

/** Kafka's name for the log of the metadata quorum, which no client can read. */
export const metadataTopic = '__cluster_metadata'

/** Topics that the broker writes itself and clients only read. */
export function isInternalTopic(name: string): boolean {
  return name === offsetsTopic || name === transactionsTopic
}

/** 1 to 249 characters of a-z, A-Z, 0-9, '.', '_' and '-', but neither '.' nor '..'. */
export function isLegalTopicName(name: string): boolean {
  return /^[a-zA-Z0-9._-]{1,249}$/.test(name) && name !== '.' && name !== '..'
}
