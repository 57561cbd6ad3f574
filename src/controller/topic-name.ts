const maxLength = 249
const legal = /^[a-zA-Z0-9._-]+$/

/** Why `name` can't be a topic's; undefined when it can. It becomes a directory's name, hence the length. */
export function topicNameFault(name: string): string | undefined {
  if (name === '') return 'Topic name is empty; allowed are 1 to 249 characters'
  if (name === '.' || name === '..') return `Topic name ${name} is not allowed`
  if (name.length > maxLength) return `Topic name has ${name.length} characters; allowed are 1 to ${maxLength}`
  if (!legal.test(name)) {
    return `Topic name ${JSON.stringify(name)} has characters other than ASCII letters, digits, '.', '_' and '-'`
  }
  return undefined
}
