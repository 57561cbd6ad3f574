import { once } from 'node:events'
import { createServer, type Server } from 'node:net'

/** Below those that systems give to connections: one of these is nobody's while the process that has it is away. */
const [firstPort, endPort] = [10_000, 32_000]

/** Ports that were free on 127.0.0.1 a moment ago, all different. */
export async function freePorts(count: number): Promise<number[]> {
  const servers: Server[] = []
  const ports: number[] = []
  try {
    while (ports.length < count) {
      const port = firstPort + Math.floor(Math.random() * (endPort - firstPort))
      const server = createServer().listen(port, '127.0.0.1')
      try {
        await once(server, 'listening')
      } catch {
        continue // somebody's
      }
      servers.push(server)
      ports.push(port)
    }
    return ports
  } finally {
    await Promise.all(servers.map((server) => new Promise((closed) => server.close(closed))))
  }
}
