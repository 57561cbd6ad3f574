import { describe, expect, test } from 'vitest'
import { coordinationOver, newTopic, openStorage, platform, registrationOf } from './support.ts'

const timeoutMs = 10_000

describe('Raft coordination of one node', () => {
  test('a topic is in the image, and has been told to listeners, when its creation is answered', async () => {
    const { coordination } = coordinationOver(await openStorage(platform), platform)
    const seen: string[] = []
    coordination.onMetadata((delta, image) => {
      expect(coordination.image).toBe(image)
      for (const { topic } of delta.changedTopics.values()) seen.push(topic.name)
    })
    await coordination.start(registrationOf(platform))
    const [result] = await coordination.admin.createTopics([newTopic('orders', 3)], { timeoutMs })
    expect(result).toMatchObject({ ok: true, name: 'orders', partitionCount: 3, replicationFactor: 1 })
    expect(seen).toEqual(['orders'])
    const topic = coordination.image.topics.byName('orders')
    expect(topic?.partitions.map(({ leader, isr }) => [leader, isr])).toEqual(Array(3).fill([1, [1]]))
    expect(coordination.image.clusterId).toBe('test-cluster')
    expect(coordination.image.features).toEqual(new Map([['metadata.version', 1]]))
    expect(coordination.state).toMatchObject({ mode: 'raft', controllerId: 1, appliedIndex: coordination.image.index })
    await coordination.stop('controlled')
  })
})
