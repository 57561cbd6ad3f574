/** The longest text that is compared: a key is never longer, and the work grows with the square. */
const maxComparedLength = 120

/**
 * The one of `candidates` with the fewest edits (insert, delete, replace, swap of neighbours) from `text`, ignoring case;
 * undefined when even that one differs in more than half of its characters.
 */
export function nearestOf(text: string, candidates: Iterable<string>): string | undefined {
  if (text.length > maxComparedLength) return undefined
  const wanted = text.toLowerCase()
  let nearest: string | undefined
  let fewest = Number.POSITIVE_INFINITY
  for (const candidate of candidates) {
    if (Math.abs(candidate.length - wanted.length) >= fewest) continue
    const edits = editDistance(wanted, candidate.toLowerCase())
    if (edits < fewest) {
      fewest = edits
      nearest = candidate
    }
  }
  return nearest !== undefined && fewest * 2 <= nearest.length ? nearest : undefined
}

/** Optimal string alignment distance, three rows at a time. */
function editDistance(left: string, right: string): number {
  let beforeLast: number[] = []
  let last = Array.from({ length: right.length + 1 }, (_, column) => column)
  for (let row = 1; row <= left.length; row++) {
    const current = [row]
    for (let column = 1; column <= right.length; column++) {
      const same = left[row - 1] === right[column - 1]
      let edits = Math.min(last[column]! + 1, current[column - 1]! + 1, last[column - 1]! + (same ? 0 : 1))
      const swapped =
        row > 1 && column > 1 && left[row - 1] === right[column - 2] && left[row - 2] === right[column - 1]
      if (swapped) edits = Math.min(edits, beforeLast[column - 2]! + 1)
      current.push(edits)
    }
    beforeLast = last
    last = current
  }
  return last[right.length]!
}
