import { expect, test } from 'vitest'
import { formatTable } from '../../../src/cli/table.ts'

const columns = [
  { title: 'NAME', value: (row: { name: string; count: number | null }) => row.name },
  { title: 'COUNT', value: (row: { name: string; count: number | null }) => row.count },
]

test('text stands to the left and numbers to the right, without blanks at the end', () => {
  const rows = [
    { name: 'a', count: 1000 },
    { name: 'längst', count: null },
  ]
  expect(formatTable(columns, rows, { colors: false })).toBe('NAME    COUNT\na        1000\nlängst      -\n')
})

test('a table without rows is its titles', () => {
  expect(formatTable(columns, [], { colors: false })).toBe('NAME  COUNT\n')
})

test('nothing that others named steers the terminal', () => {
  const text = formatTable(columns, [{ name: '\u001b[2J\nx', count: 1 }], { colors: false })
  expect(text.split('\n')).toHaveLength(3)
  expect(text).not.toContain('\u001b')
})
