import type { Candidates } from './model.ts'

/** In single quotes, for sh, bash and zsh. */
export function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`
}

/** `topics`, or `choices all 1 0`: how the scripts for bash and zsh say it. */
export function candidatesText(candidates: Candidates): string {
  return candidates.kind === 'choices' ? `choices ${candidates.choices.join(' ')}` : candidates.kind
}
