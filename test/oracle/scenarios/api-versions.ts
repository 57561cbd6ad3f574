import { servedApis } from '../../../src/api/registry.ts'
import { type ApiMessage, apis, encodeRequest } from '../../../src/protocol/index.ts'
import type { Scenarios } from '../scenario.ts'
import { versionsOf } from '../versions.ts'

const software = { clientSoftwareName: 'oracle', clientSoftwareVersion: '1.0' }

export const apiVersionsScenarios: Scenarios = {
  'ApiVersions, every version': async (broker) => {
    for (const version of versionsOf(apis.ApiVersions)) await broker.ask(apis.ApiVersions, version, software)
  },

  "ApiVersions with a client's name that is none": async (broker) => {
    for (const version of versionsOf(apis.ApiVersions, 3)) {
      for (const clientSoftwareName of ['', '-x', 'x-', 'a b', 'ä', 'a.b-c', 'A'.repeat(300)]) {
        await broker.ask(apis.ApiVersions, version, { ...software, clientSoftwareName })
        await broker.ask(apis.ApiVersions, version, {
          clientSoftwareName: 'x',
          clientSoftwareVersion: clientSoftwareName,
        })
      }
    }
  },

  'ApiVersions of a version that nobody serves': async (broker) => {
    for (const version of [6, 7, 99, 32767, -1]) {
      // An answer ends with the range that is served, which is Rookery's own.
      await broker.raw(
        `ApiVersions v${version}`,
        frame(18, version, Buffer.from('some bytes that nobody can know'), version >= 3),
        { compared: 14 },
      )
      await broker.raw(`ApiVersions v${version}, no body`, frame(18, version, Buffer.alloc(0), version >= 3), {
        compared: 14,
      })
    }
  },

  'keys and versions that are not served': async (broker) => {
    for (const [key, version] of [
      [0, 0],
      [0, 2],
      [0, 14],
      [0, -1],
      [1, 3],
      [1, 19],
      [2, 0],
      [3, 14],
      [8, 1],
      [9, 0],
      [19, 1],
      [20, 0],
      [32, 0],
      [4, 0],
      [5, 0],
      [6, 0],
      [7, 0],
      [4, 7],
      [999, 0],
      [-1, 0],
      [32767, 3],
    ] as const) {
      await broker.raw(`key ${key} v${version}`, frame(key, version, Buffer.alloc(40)))
    }
  },

  'frames that are no requests': async (broker) => {
    await broker.raw('negative length', Buffer.from('ffffffff', 'hex'))
    await broker.raw('length 2^31-1', Buffer.from('7fffffff', 'hex'))
    await broker.raw('length above the limit', Buffer.from('06400001', 'hex'))
    await broker.raw('length 0', Buffer.from('00000000', 'hex'))
    await broker.raw('length 4', Buffer.from('0000000400120000', 'hex'))
    await broker.raw('length 8, no client id', Buffer.from('000000080012000000000001', 'hex'))
    await broker.raw('client id longer than the frame', Buffer.from('0000000a00120000000000010005', 'hex'))
    await broker.raw('client id null', Buffer.from('0000000a0012000000000001ffff', 'hex'), { compared: 6 })
    await broker.raw('client id -2', Buffer.from('0000000a0012000000000001fffe', 'hex'), { compared: 6 })
  },

  'bodies that are cut off, every API and version': async (broker) => {
    for (const { api } of servedApis) {
      for (const version of versionsOf(api)) {
        await broker.raw(
          `${api.name} v${version}, no body`,
          frame(api.key, version, Buffer.alloc(0), flexible(api.request, version)),
          {
            compared: 6,
          },
        )
      }
    }
  },

  'bytes behind a body': async (broker) => {
    const header = { correlationId: 5, clientId: 'x' }
    const request = Buffer.concat(encodeRequest(apis.Metadata.request, 4, header, { topics: [] }))
    const longer = Buffer.concat([request, Buffer.from('abc')])
    longer.writeInt32BE(longer.length - 4, 0)
    await broker.raw('Metadata v4 and three bytes', longer, { compared: 8 })
  },

  'tags that nobody knows': async (broker) => {
    // Header with tag 9 of two bytes; body of ApiVersions with tag 77 of one byte.
    const body = Buffer.from('06787878787802310 14d0141'.replaceAll(' ', ''), 'hex')
    const header = Buffer.from('0012000300000009000178010902 6162'.replaceAll(' ', ''), 'hex')
    const size = Buffer.alloc(4)
    size.writeInt32BE(header.length + body.length)
    await broker.raw('ApiVersions v3 with unknown tags', Buffer.concat([size, header, body]), { compared: 6 })
  },

  'requests that come before the answers to those before them': async (broker) => {
    const requests = [0, 1, 2, 3, 4, 5].map((correlationId) =>
      Buffer.concat(
        encodeRequest(
          apis.FindCoordinator.request,
          4,
          { correlationId, clientId: null },
          { keyType: 9, coordinatorKeys: ['a'] },
        ),
      ),
    )
    await broker.raw('six FindCoordinator', Buffer.concat(requests), { frames: 6, compared: 4 })
  },
}

function flexible(message: ApiMessage, version: number): boolean {
  return message.isFlexible(version)
}

/** A whole request; the correlation id is 7 and the client is called x. */
function frame(key: number, version: number, body: Buffer, withTags = false): Buffer {
  const header = Buffer.alloc(15)
  header.writeInt32BE(11 + (withTags ? 1 : 0) + body.length, 0)
  header.writeInt16BE(key, 4)
  header.writeInt16BE(version, 6)
  header.writeInt32BE(7, 8)
  header.writeInt16BE(1, 12)
  header.write('x', 14)
  return Buffer.concat([header, Buffer.alloc(withTags ? 1 : 0), body])
}
