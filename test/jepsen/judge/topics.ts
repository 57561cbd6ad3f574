import { type TopicChange, type TopicListing, told, type Violation, Violations } from './history.ts'

/**
 * Judges the metadata, by topics whose names are used once: each is created, and maybe deleted, by one process, one after the other.
 *
 * - **lost change of topics**: a topic is listed after its creation was acknowledged and before its deletion was sent, and
 *   isn't after that was acknowledged. It counts on the broker that acknowledged, which answers when its own image has the change, and
 *   on every broker in the end: an image never goes back, and a broker that was cut off may be behind.
 * - **topic from nowhere**: nothing is listed before its creation was sent.
 */
export function judgeTopics(changes: readonly TopicChange[], listings: readonly TopicListing[]): readonly Violation[] {
  const violations = new Violations()
  const byName = new Map<string, TopicChange[]>()
  for (const change of changes) byName.set(change.name, [...(byName.get(change.name) ?? []), change])
  for (const listing of listings) {
    if (listing.outcome !== 'ok') continue
    const listed = new Set(listing.names)
    for (const name of listed) {
      if (byName.get(name)?.some(({ invokedMs }) => invokedMs <= listing.completedMs) !== true) {
        violations.add('topic from nowhere', `${name} was told to ${told(listing)}`)
      }
    }
    for (const [name, ofName] of byName) judgeName(name, ofName, listing, listed.has(name), violations)
  }
  return violations.found
}

function judgeName(
  name: string,
  changes: readonly TopicChange[],
  listing: TopicListing,
  isListed: boolean,
  violations: Violations,
): void {
  const creation = changes.find(({ isDeletion }) => !isDeletion)
  const deletion = changes.find(({ isDeletion }) => isDeletion)
  const isKnown = (change: TopicChange | undefined): change is TopicChange =>
    change?.outcome === 'ok' &&
    change.completedMs < listing.invokedMs &&
    (listing.isFinal || change.node === listing.node)
  if (isKnown(deletion) && isListed) {
    violations.add('lost change of topics', `${name} was deleted by ${told(deletion)} and told to ${told(listing)}`)
  }
  const mayBeDeleted = deletion !== undefined && deletion.invokedMs <= listing.completedMs
  if (isKnown(creation) && !mayBeDeleted && !isListed) {
    violations.add('lost change of topics', `${name} was created by ${told(creation)} and not told to ${told(listing)}`)
  }
}
