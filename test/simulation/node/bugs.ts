import { HandlePool, type LogManagerOptions, openLogManager, type PooledFile } from '../../../src/log/index.ts'
import type { FileHandle, Files, OpenMode, Platform } from '../../../src/platform/index.ts'
import { overriding } from './overriding.ts'
import type { RunOptions } from './run.ts'

/** What a wrong node would do: put between the real one and its parts, so that nothing in the node knows of it. */
export type InjectedBug = Pick<RunOptions, 'wrapPlatform' | 'openLogs'>

/** Not the metadata log's. */
const partitionFolder = /^\/data\/kafka\/(?!__cluster)[\w.-]+-\d+$/
const segmentFile = /\.log$/

export const bugs: Readonly<Record<string, InjectedBug>> = {
  'an answer comes before the sync': {
    wrapPlatform: (platform) => withFiles(platform, (files) => overriding(files, withEarlySync(files))),
  },

  "a partition's folder is not synced": {
    wrapPlatform: (platform) =>
      withFiles(platform, (files) =>
        overriding(files, {
          syncDirectory: (path) => (partitionFolder.test(path) ? Promise.resolve() : files.syncDirectory(path)),
        }),
      ),
  },

  'a compacted segment replaces others before it is synced': {
    wrapPlatform: (platform) =>
      withFiles(platform, (files) =>
        overriding(files, {
          openSync: (path, mode) => {
            const handle = files.openSync(path, mode)
            return path.endsWith('.cleaned') ? overriding(handle, { sync: () => Promise.resolve() }) : handle
          },
        }),
      ),
  },

  'a duplicate is answered before its original is durable': {
    openLogs: async (options) => {
      const logs = await openLogManager(options)
      return overriding(logs, {
        getOrCreate: async (spec) => {
          const log = await logs.getOrCreate(spec)
          return overriding(log, {
            appendAsLeader: (records, appendOptions) => {
              const result = log.appendAsLeader(records, appendOptions)
              if (result instanceof Promise || !result.ok || !result.duplicate) return result
              return { ...result, lastOffset: -1 } // nothing to wait for
            },
          })
        },
      })
    },
  },

  'a handle with unsynced bytes is evicted': {
    openLogs: (options: LogManagerOptions) =>
      openLogManager({ ...options, handles: new CarelessPool(options.platform.files, { maxOpen: 2 }) }),
  },
}

function withFiles(platform: Platform, wrap: (files: Files) => Files): Platform {
  return { ...platform, files: wrap(platform.files) }
}

/** Syncs of segments are told as done when they begin. */
function withEarlySync(files: Files): Partial<Files> {
  const wrap = (handle: FileHandle): FileHandle => {
    const syncs = new Set<Promise<void>>()
    return overriding(handle, {
      sync: async () => {
        const sync = handle.sync().finally(() => syncs.delete(sync))
        syncs.add(sync)
      },
      close: async () => {
        await Promise.all(syncs)
        await handle.close()
      },
    })
  }
  return {
    open: async (path: string, mode: OpenMode) => {
      const handle = await files.open(path, mode)
      return segmentFile.test(path) ? wrap(handle) : handle
    },
    openSync: (path: string, mode: OpenMode) => {
      const handle = files.openSync(path, mode)
      return segmentFile.test(path) ? wrap(handle) : handle
    },
  }
}

class CarelessPool extends HandlePool {
  protected override mayClose(file: PooledFile): boolean {
    return file.leases === 0
  }
}
