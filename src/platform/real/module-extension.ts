import { setFlagsFromString } from 'node:v8'

/** Of the files that run: `.ts` in development, `.js` when compiled. Worker threads begin with files of the same. */
export const moduleExtension = import.meta.url.slice(import.meta.url.lastIndexOf('.'))

// In development Node strips types by WebAssembly, anew in each thread. V8 13.6 has one cache of the wrappers of functions that
// WebAssembly imports for all threads, and frees a wrapper that is called often enough to be compiled better. With threads that
// come and go this ends the process now and then, by the failed check `jit_page.has_value()` or SIGSEGV: none is compiled better.
if (moduleExtension === '.ts') setFlagsFromString('--wasm-wrapper-tiering-budget=2147483647')
