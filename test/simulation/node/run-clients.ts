/** Somebody who works until the run ends, or its work is done. */
export interface NamedClient {
  readonly name: string
  run(): Promise<void>
}

type Make = (name: string) => { run(): Promise<void> }

export function named(name: string, make: Make): NamedClient {
  const client = make(name)
  return { name, run: () => client.run() }
}

/** `count` of them, named `base0`, `base1` ... */
export function numbered(base: string, count: number, make: Make): NamedClient[] {
  return Array.from({ length: count }, (_, i) => named(`${base}${i}`, make))
}

/** Lets everybody loose. `unfinished` has the names of those who are still at work. */
export async function runAll(clients: readonly NamedClient[], unfinished: Set<string>): Promise<void> {
  for (const { name } of clients) unfinished.add(name)
  await Promise.all(
    clients.map(async (client) => {
      await client.run()
      unfinished.delete(client.name)
    }),
  )
}
