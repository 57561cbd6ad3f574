import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { decodeSnapshot, encodeSnapshot } from '../../../src/coordination/raft/metadata-snapshot.ts'
import { emptyImage, imageOfSnapshot, MetadataFormatError } from '../../../src/metadata/index.ts'
import { describeImage, draws, imageOf, registration, replayDraws, topicRecords, uuid } from '../metadata/support.ts'

const noTurn = async () => {}

describe('the data of a snapshot', () => {
  test('makes the image again', async () => {
    await fc.assert(
      fc.asyncProperty(draws, async (list) => {
        const image = replayDraws(list).images.at(-1) ?? emptyImage
        const data = await encodeSnapshot(image, noTurn)
        const again = imageOfSnapshot(decodeSnapshot(data), image.index, image.term)
        expect(describeImage(again)).toEqual(describeImage(image))
      }),
      { numRuns: 100 },
    )
  })

  test('of a large image is made in many turns, and is of the image as it was', async () => {
    const partitions = Array<number[]>(5000).fill([1])
    const image = imageOf(registration(1), ...topicRecords('orders', uuid(1), partitions))
    let turns = 0
    const data = await encodeSnapshot(image, async () => {
      turns++
    })
    expect(turns).toBeGreaterThanOrEqual(10)
    expect(describeImage(imageOfSnapshot(decodeSnapshot(data), 1, 1))).toEqual(describeImage(image))
  })

  test('that is cut off is refused, unless between two chunks', async () => {
    const image = imageOf(registration(1), ...topicRecords('orders', uuid(1), [[1], [1]]))
    const data = await encodeSnapshot(image, noTurn)
    for (let length = 1; length < data.length; length++) {
      expect(() => [...decodeSnapshot(data.subarray(0, length))]).toThrow(MetadataFormatError)
    }
  })
})
