import { UsageError } from './exit.ts'

/** Values by key, of texts such as `retention.ms=1000`. Throws `UsageError`, which names `option`, for any other text. */
export function parseSettings(option: string, texts: readonly string[] = []): ReadonlyMap<string, string> {
  return new Map(
    texts.map((text) => {
      const equals = text.indexOf('=')
      if (equals < 1) throw new UsageError(`${option} ${text}: allowed is key=value`)
      return [text.slice(0, equals).trim(), text.slice(equals + 1)]
    }),
  )
}
