/** Versions of a message, both ends included. */
export interface VersionRange {
  readonly min: number
  readonly max: number
}

/** Reads `3`, `2-7` or `4+`. */
export function versionRange(text: string): VersionRange {
  const [min = '', max = min] = text.replace(/\+$/, '-32767').split('-')
  return { min: Number(min), max: Number(max) }
}

export function inRange(range: VersionRange | undefined, version: number): boolean {
  return range !== undefined && version >= range.min && version <= range.max
}
