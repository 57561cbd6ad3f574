/** One line of what the doctor found. */
export interface DoctorFinding {
  /** What was looked at: `reach`, `clock`, `disk`. */
  readonly check: string
  readonly status: 'ok' | 'warn' | 'fail'
  /** A sentence without its full stop. */
  readonly message: string
  /** What to do; for what is in order there is nothing. */
  readonly advice?: string
}

export function ok(check: string, message: string): DoctorFinding {
  return { check, status: 'ok', message }
}

export function warn(check: string, message: string, advice: string): DoctorFinding {
  return { check, status: 'warn', message, advice }
}

export function fail(check: string, message: string, advice: string): DoctorFinding {
  return { check, status: 'fail', message, advice }
}
