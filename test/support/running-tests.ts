import type { Reporter, TestModule } from 'vitest/node'

/** A file that runs longer is named while it still does. */
const longMs = 5 * 60_000
const lookEveryMs = 60_000

/**
 * A reporter that names the test files that are still running: those that take long, and all of them when the run is ended
 * from outside. vitest itself says nothing then, so that a test that hangs couldn't be told from its log. Files and not
 * tests: a test that never gives the event loop a turn can't say that it has begun.
 */
export class RunningTests implements Reporter {
  readonly #startedMs = new Map<string, number>()
  readonly #timer = setInterval(() => this.#tell(longMs), lookEveryMs).unref()
  readonly #onSignal = () => this.#tell(0)

  onInit(): void {
    process.once('SIGTERM', this.#onSignal)
  }

  onTestModuleQueued({ relativeModuleId }: TestModule): void {
    this.#startedMs.set(relativeModuleId, performance.now())
  }

  onTestModuleEnd({ relativeModuleId }: TestModule): void {
    this.#startedMs.delete(relativeModuleId)
  }

  onTestRunEnd(): void {
    clearInterval(this.#timer)
    process.off('SIGTERM', this.#onSignal)
  }

  #tell(atLeastMs: number): void {
    for (const [file, startedMs] of this.#startedMs) {
      const ranMs = performance.now() - startedMs
      if (ranMs >= atLeastMs) process.stderr.write(`Running for ${Math.round(ranMs / 1000)} s: ${file}\n`)
    }
  }
}
