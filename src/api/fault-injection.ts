import { ConfigError, nearestOf } from '../config/index.ts'
import type { ConnectionFacts } from '../network/index.ts'
import type { Timers } from '../platform/index.ts'
import { type ApiMessage, type apis, ErrorCode, type MessageInput } from '../protocol/index.ts'
import type { Reply, RequestContext, ServedApi } from './api.ts'
import { answerWithErrors, type InjectedError, injectedError } from './injected-errors.ts'
import { type Fields, splitRequest, type TopicNames } from './request-subjects.ts'

/** The name of an API that the broker serves, as Kafka's documentation has it. */
export type FaultyApi = Exclude<keyof typeof apis, 'SaslHandshake' | 'SaslAuthenticate'>
/** The name of one of Kafka's error codes. */
export type InjectableError = Exclude<keyof typeof ErrorCode, 'NONE'>

/** Which requests a fault is for; all that is given has to hold, and nothing given is every request. */
export interface FaultMatch {
  readonly api?: FaultyApi
  /** Requests that name this topic. One that asks for all topics names none. */
  readonly topic?: string
  /** Requests that name this group. */
  readonly group?: string
  /** Requests of clients that call themselves so. */
  readonly clientId?: string
  /** How many requests it is for: 1 or more. `failNext` is for one unless this says more, the others until they are removed. */
  readonly times?: number
}

const matchNames: ReadonlySet<string> = new Set(['api', 'topic', 'group', 'clientId', 'times'])

function suggestion(name: string | undefined, candidates: Iterable<string>): string {
  const nearest = name === undefined ? undefined : nearestOf(name, candidates)
  return nearest === undefined ? '' : `; did you mean ${nearest}?`
}

/** A fault that was asked for. */
export interface Fault {
  /** Requests that it was for so far. */
  readonly hits: number
  /** It is for no request any more, and those that it delays are handled now. Harmless when called again. */
  remove(): void
}

/** Faults that a broker makes on purpose. They are looked at in the order in which they were asked for. */
export interface Faults {
  /**
   * Answers with an error instead of doing what was asked: for the topic or group that is named, while the rest of the request is
   * carried out. A Produce with acks=0, which has no answer, closes its connection.
   */
  failNext(match: FaultMatch & { readonly error: InjectableError }): Fault
  /** Waits before a request is handled. Later requests of its connection wait behind it. */
  delay(match: FaultMatch, ms: number): Fault
  /**
   * Closes the connection: before the request is handled, or with `when: 'after'` when it was, so that only its answer is lost.
   */
  disconnect(match: FaultMatch, options?: { readonly when?: 'before' | 'after' }): Fault
  /** Removes all. */
  clear(): void
}

type Effect =
  | { readonly kind: 'fail'; readonly errorCode: ErrorCode }
  | { readonly kind: 'delay'; readonly delayMs: number }
  | { readonly kind: 'disconnect'; readonly when: 'before' | 'after' }

interface Rule extends Fault {
  readonly match: FaultMatch
  readonly effect: Effect
  hits: number
  /** Ends the waits of requests that it delays. */
  readonly releases: Set<() => void>
}

/** What becomes of one request. */
interface Plan {
  readonly delays: readonly Rule[]
  readonly disconnect: 'before' | 'after' | undefined
  readonly errors: readonly InjectedError[]
  /** What is carried out; undefined for nothing. */
  readonly rest: Fields | undefined
}

type Handled = Reply<MessageInput<ApiMessage>>

const closed: Handled = { close: 'A fault that was asked for' }

/**
 * Makes the faults that a test asks for, between the decoding of a request and its handler. Where nothing is asked for, the
 * dispatcher looks at one field for each request.
 */
export class FaultInjector implements Faults {
  /** False: requests may pass it by. */
  isActive = false
  readonly #timers: Timers
  readonly #topicName: TopicNames
  readonly #apiNames: ReadonlySet<string>
  readonly #rules = new Set<Rule>()
  /** When the last request of a connection that was delayed may begin: requests of a connection keep their order. */
  readonly #lastDelay = new Map<ConnectionFacts, Promise<unknown>>()

  constructor(options: {
    readonly timers: Timers
    readonly topicName: TopicNames
    readonly apiNames: Iterable<string>
  }) {
    this.#timers = options.timers
    this.#topicName = options.topicName
    this.#apiNames = new Set(options.apiNames)
  }

  failNext({ error, ...match }: FaultMatch & { readonly error: InjectableError }): Fault {
    const errorCode = (ErrorCode as Readonly<Record<string, ErrorCode | undefined>>)[error]
    if (errorCode === undefined || errorCode === ErrorCode.NONE)
      throw unusable(`error: ${error} is no error of Kafka's${suggestion(error, Object.keys(ErrorCode))}`)
    return this.#add({ times: 1, ...match }, { kind: 'fail', errorCode })
  }

  delay(match: FaultMatch, ms: number): Fault {
    if (!(Number.isFinite(ms) && ms >= 0)) throw unusable(`delay: ${ms} ms: allowed is 0 or more`)
    return this.#add(match, { kind: 'delay', delayMs: ms })
  }

  disconnect(match: FaultMatch, { when = 'before' }: { readonly when?: 'before' | 'after' } = {}): Fault {
    if (when !== 'before' && when !== 'after') throw unusable(`when: ${when}: allowed is before or after`)
    return this.#add(match, { kind: 'disconnect', when })
  }

  clear(): void {
    for (const rule of [...this.#rules]) rule.remove()
  }

  /** Handles a request in place of its API, with what was asked for. Begins requests of one connection in their order. */
  intercept(served: ServedApi, request: object, context: RequestContext): Handled | Promise<Handled> {
    const plan = this.#plan(served, request as Fields, context)
    const { connection } = context
    const before = this.#lastDelay.get(connection)
    const run = () => carryOut(plan, served, request, context, this.#topicName)
    if (plan.delays.length === 0 && before === undefined) return run()
    const due = Promise.all([before, ...plan.delays.map((rule) => this.#wait(rule, connection.signal))])
    this.#lastDelay.set(connection, due)
    return due.then(() => {
      if (this.#lastDelay.get(connection) === due) this.#lastDelay.delete(connection)
      this.#noteActivity()
      return run()
    })
  }

  #add(match: FaultMatch, effect: Effect): Fault {
    const { api, times = Number.POSITIVE_INFINITY } = match
    // A name that is overlooked would make the fault one for every request.
    const other = Object.keys(match).find((name) => !matchNames.has(name))
    if (other !== undefined) throw unusable(`${other} matches nothing: allowed are ${[...matchNames].join(', ')}`)
    if (api !== undefined && !this.#apiNames.has(api)) {
      throw unusable(`api: ${api} is not served${suggestion(api, this.#apiNames)}`)
    }
    if (times !== Number.POSITIVE_INFINITY && !(Number.isSafeInteger(times) && times >= 1)) {
      throw unusable(`times: ${times}: allowed is 1 or more`)
    }
    const releases = new Set<() => void>()
    const rule: Rule = {
      match: { ...match, times },
      effect,
      hits: 0,
      releases,
      remove: () => {
        this.#rules.delete(rule)
        for (const release of [...releases]) release()
        this.#noteActivity()
      },
    }
    this.#rules.add(rule)
    this.#noteActivity()
    return rule
  }

  /** Counts the request with each rule that is for it. */
  #plan(served: ServedApi, request: Fields, context: RequestContext): Plan {
    const delays: Rule[] = []
    const errors: InjectedError[] = []
    let rest: Fields | undefined = request
    for (const rule of [...this.#rules]) {
      const { match, effect } = rule
      if (match.api !== undefined && match.api !== served.api.name) continue
      if (match.clientId !== undefined && match.clientId !== context.clientId) continue
      // An error for what is left of the request by the ones before; anything else is for all of it.
      const subject: Fields | undefined = effect.kind === 'fail' ? rest : request
      const split = subject === undefined ? undefined : this.#split(served, subject, match, context)
      if (split === undefined) continue
      this.#count(rule)
      if (effect.kind === 'delay') {
        delays.push(rule)
      } else if (effect.kind === 'disconnect') {
        return { delays, disconnect: effect.when, errors, rest }
      } else {
        const injected = injectedError(served.api.name, split, effect.errorCode, match.topic, context.apiVersion)
        errors.push(injected.error)
        rest = injected.rest
      }
    }
    return { delays, disconnect: undefined, errors, rest }
  }

  /** A fetch in a session is about all that the session remembers, which the request itself needn't name. */
  #split(served: ServedApi, subject: Fields, match: FaultMatch, { services }: RequestContext) {
    const { name } = served.api
    const split = splitRequest(name, subject, match, this.#topicName)
    if (split !== undefined || name !== 'Fetch' || match.topic === undefined || match.group !== undefined) return split
    for (const { topic } of services.fetchSessions.partitionsOf(subject.sessionId as number)) {
      if (topic === match.topic) return { part: subject, rest: undefined }
    }
    return undefined
  }

  #count(rule: Rule): void {
    rule.hits++
    if (rule.hits < rule.match.times!) return
    // Not `remove`: a request that it delays goes on waiting.
    this.#rules.delete(rule)
    this.#noteActivity()
  }

  /** Until the delay is over, its rule is removed, or nobody waits for the answer any more. */
  #wait(rule: Rule, signal: AbortSignal): Promise<void> {
    const { effect, releases } = rule
    return new Promise((resolve) => {
      const end = () => {
        timer.cancel()
        releases.delete(end)
        signal.removeEventListener('abort', end)
        resolve()
      }
      const timer = this.#timers.set(effect.kind === 'delay' ? effect.delayMs : 0, end)
      releases.add(end)
      signal.addEventListener('abort', end)
      if (signal.aborted) end()
    })
  }

  #noteActivity(): void {
    this.isActive = this.#rules.size > 0 || this.#lastDelay.size > 0
  }
}

function carryOut(
  { disconnect, errors, rest }: Plan,
  served: ServedApi,
  request: object,
  context: RequestContext,
  topicName: TopicNames,
): Handled | Promise<Handled> {
  if (disconnect === 'before') return closed
  const complete = (reply: Handled | undefined): Handled => {
    if (disconnect === undefined && errors.length === 0) return reply!
    const hasNoAnswer = served.api.name === 'Produce' && (request as Fields).acks === 0
    if (disconnect === 'after' || hasNoAnswer) {
      if (reply !== undefined && typeof reply === 'object' && 'release' in reply) reply.release?.()
      return closed
    }
    return answerWithErrors(reply, errors, served, context, topicName)
  }
  if (rest === undefined) return complete(undefined)
  const reply = served.handle(rest as never, context)
  return reply instanceof Promise ? reply.then(complete) : complete(reply)
}

function unusable(message: string): ConfigError {
  return new ConfigError([{ key: undefined, message }])
}
