import { defineConfig } from 'rolldown'

// The package's JavaScript, in few files: to load the hundred small ones that a short command needs takes half of its time.
// The declarations of types come from tsc.
export default defineConfig({
  input: {
    index: 'src/index.ts',
    vitest: 'src/vitest.ts',
    'cli/main': 'src/cli/main.ts',
    // Beside the chunks that start them, as their sources are.
    'chunks/offload-worker': 'src/platform/real/offload-worker.ts',
    'chunks/thread-main': 'src/platform/real/thread-main.ts',
    // Tasks of workers: only as entries are all their exports kept, under the names by which workers look for them.
    'chunks/compression-task': 'src/protocol/compression.ts',
    'chunks/repack-task': 'src/log/repack.ts',
    'chunks/control-program': 'src/node/control-program.ts',
  },
  platform: 'node',
  external: /^[^./]/, // packages: some are native, and users update them by themselves
  output: {
    dir: 'dist',
    chunkFileNames: 'chunks/[name]-[hash].js', // one folder deep, as cli/program.ts is: it looks for package.json
    minifyInternalExports: false,
    sourcemap: true,
  },
})
