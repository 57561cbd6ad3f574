import type { Command } from 'commander'
import { bashCompletion } from '../completion/bash.ts'
import { fishCompletion } from '../completion/fish.ts'
import { completedCommands } from '../completion/model.ts'
import { zshCompletion } from '../completion/zsh.ts'
import { UsageError } from '../exit.ts'
import { endWithReader, write } from '../output.ts'

export type Shell = 'bash' | 'zsh' | 'fish'

export interface CompletionOptions {
  /** Asked for by the scripts. */
  readonly names?: 'topics' | 'groups'
  readonly bootstrapServer: string
}

/** Whoever waits for a completion doesn't wait longer. */
const timeoutMs = 1500

const scripts = { bash: bashCompletion, zsh: zshCompletion, fish: fishCompletion } as const

/** The script that makes a shell complete this program's commands. */
export async function completion(
  shell: Shell | undefined,
  options: CompletionOptions,
  program: Command,
): Promise<void> {
  endWithReader()
  if (options.names !== undefined) await names(options.names, options.bootstrapServer)
  else if (shell === undefined) throw new UsageError('Which shell? bash, zsh or fish')
  else await write(scripts[shell](completedCommands(program)))
}

/** A name a line; nothing at all when the cluster can't be asked. */
async function names(kind: 'topics' | 'groups', bootstrapServers: string): Promise<void> {
  const { createRealPlatform } = await import('../../platform/index.ts')
  const { Cluster } = await import('../client/cluster.ts')
  const ending = setTimeout(() => process.exit(0), timeoutMs)
  try {
    const cluster = await Cluster.connect({ platform: createRealPlatform(), bootstrapServers, timeoutMs })
    const found =
      kind === 'topics'
        ? (await cluster.allTopics()).map(({ name }) => name)
        : (await (await import('../client/groups.ts')).listGroups(cluster)).map(({ groupId }) => groupId)
    cluster.close()
    // A name with other characters would be several words, or a command, to the shell.
    await write(
      found
        .filter((name) => /^[\w.:@/+-]+$/.test(name))
        .map((name) => `${name}\n`)
        .join(''),
    )
  } catch {
    // Silence: the line that is being typed is not the place for a sentence.
  } finally {
    clearTimeout(ending)
  }
}
