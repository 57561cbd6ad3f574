/** How many of `voterCount` voters decide: more than half. */
export function majority(voterCount: number): number {
  return (voterCount >> 1) + 1
}

/** The highest number that a majority of the voters has reached, each with how far it is in `reached` (any order). 0 without voters. */
export function reachedByMajority<T extends number>(reached: readonly T[]): T {
  if (reached.length === 0) return 0 as T
  const descending = [...reached].sort((a, b) => b - a)
  return descending[majority(descending.length) - 1]!
}

/** 'lost' as soon as the votes still open can't make a majority. */
export function tally(votes: Iterable<boolean>, voterCount: number): 'won' | 'lost' | 'open' {
  let granted = 0
  let refused = 0
  for (const vote of votes) {
    if (vote) granted++
    else refused++
  }
  const needed = majority(voterCount)
  if (granted >= needed) return 'won'
  return voterCount - refused < needed ? 'lost' : 'open'
}
