import type { Recorder } from './recorder.ts'

/** Sends requests to one broker; what it waits for and what it sends must not depend on which broker that is. */
export type Scenario = (broker: Recorder) => Promise<void>
/** By their titles, which say what is asked. */
export type Scenarios = Readonly<Record<string, Scenario>>
