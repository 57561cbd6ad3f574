let crypto: typeof import('node:crypto') | undefined

/** Overwrites all of `target` with random bytes. node:crypto takes 8 ms to import, and most short commands need nothing of it. */
export function fillWithRandomBytes(target: Uint8Array): void {
  crypto ??= process.getBuiltinModule('node:crypto')
  crypto.randomFillSync(target)
}
