/** A promise with its own switches, for an answer that another turn of the loop gives. */
export interface Deferred<T> {
  readonly promise: Promise<T>
  readonly resolve: (value: T | PromiseLike<T>) => void
  readonly reject: (reason: unknown) => void
}

export function deferred<T>(): Deferred<T> {
  return Promise.withResolvers<T>()
}
