import { threadId } from 'node:worker_threads'
import { describe, expect, test } from 'vitest'
import { createRealThreads, type Thread } from '../../../../src/platform/index.ts'
import { preloads } from '../../../../src/platform/real/threads.ts'
import { until } from '../../../support/condition.ts'
import { echoProgram, endingProgram, hangingProgram } from './thread-programs.ts'

const threads = createRealThreads()

/** What comes from `thread`, and how it ended. */
function watch(thread: Thread) {
  const messages: unknown[] = []
  const ends: { readonly error: Error | undefined; readonly messageCount: number }[] = []
  thread.onMessage((message) => messages.push(message))
  thread.onEnd((error) => ends.push({ error, messageCount: messages.length }))
  return { messages, ends }
}

describe('a thread', () => {
  test('runs its program elsewhere, with its input, and takes and gives messages in order', async () => {
    const thread = threads.start(echoProgram, { greeting: 'hello' })
    thread.post('first') // it waits until the program is there
    const { messages, ends } = watch(thread)
    for (let i = 0; i < 100; i++) thread.post(i)
    await until(() => messages.length === 102, 'all came back')
    expect(messages[0]).toMatchObject({ greeting: 'hello' })
    expect(messages[0]).not.toMatchObject({ threadId })
    expect(messages.slice(1)).toEqual(['first', ...Array(100).keys()])
    await thread.stop()
    expect(ends).toEqual([{ error: undefined, messageCount: 102 }])
    thread.post('too late')
    await thread.stop()
    expect(ends).toHaveLength(1)
  })

  test('takes memory that is moved, which is gone here', async () => {
    const thread = threads.start(echoProgram, { greeting: '' })
    const { messages } = watch(thread)
    const bytes = Uint8Array.of(1, 2, 3)
    thread.post({ bytes }, [bytes.buffer])
    expect(bytes.byteLength).toBe(0)
    await until(() => messages.length === 2, 'it came back')
    expect(messages[1]).toEqual({ bytes: Uint8Array.of(1, 2, 3) })
    expect(() => thread.post(() => undefined)).toThrow('could not be cloned')
    await thread.stop()
  })

  test.each([
    ['throws', 'thrown in the thread'],
    ['rejects', 'rejected in the thread'],
    ['exits', undefined],
  ] as const)('that %s has ended, with what nobody caught', async (how, message) => {
    const { messages, ends } = watch(threads.start(endingProgram, how))
    await until(() => ends.length > 0, 'it ended')
    expect(messages).toEqual(['a last word'])
    expect(ends).toHaveLength(1)
    expect(ends[0]?.error?.message).toBe(message)
    expect(ends[0]?.messageCount).toBe(1)
  })

  test('that finds no program has ended', async () => {
    const { ends } = watch(threads.start({ ...echoProgram, name: 'another' }, { greeting: '' }))
    await until(() => ends.length > 0, 'it ended')
    expect(ends[0]?.error?.message).toContain('exports no program another')
  })

  test('is stopped though it hangs', async () => {
    const thread = threads.start(hangingProgram, undefined)
    const { messages, ends } = watch(thread)
    await until(() => messages.length === 1, 'it hangs')
    await thread.stop()
    expect(ends).toHaveLength(1)
  })
})

test('a thread loads what the process was told to load first, and gets no other option', () => {
  const options = ['--max-semi-space-size=16', '--import', './a.ts', '--inspect', '-r', './b.cjs', '--require=./c.cjs']
  expect(preloads(options)).toEqual(['--import', './a.ts', '-r', './b.cjs', '--require=./c.cjs'])
})
