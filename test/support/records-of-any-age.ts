/**
 * For brokers of tests whose records have made-up timestamps. Retention looks for the first time half a minute after a start: on a
 * machine that is slow enough it would delete such records in the midst of a test.
 */
export const recordsOfAnyAge = { 'log.initial.task.delay.ms': 24 * 60 * 60 * 1000 }
