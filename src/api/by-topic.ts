/** What is said of partitions one by one, as answers have it: by topic, in the order in which topics come up first. */
export function byTopic<Result, Answer>(
  results: Iterable<Result>,
  topicOf: (result: Result) => string,
  answerOf: (result: Result) => Answer,
): Map<string, Answer[]> {
  const topics = new Map<string, Answer[]>()
  for (const result of results) {
    const topic = topicOf(result)
    const answers = topics.get(topic)
    if (answers === undefined) topics.set(topic, [answerOf(result)])
    else answers.push(answerOf(result))
  }
  return topics
}
