import { readFile } from 'node:fs/promises'

/**
 * The soft limit of files and sockets of this process (RLIMIT_NOFILE); infinity when there is none or it isn't told. Node raises its
 * soft limit to the hard one when it begins, so this is what an administrator allows.
 */
export async function maxOpenFiles(): Promise<number> {
  return (await fromProc()) ?? fromReport()
}

/** Linux only; a report would take some milliseconds of the start. */
async function fromProc(): Promise<number | undefined> {
  try {
    const limits = await readFile('/proc/self/limits', 'utf8')
    const soft = /^Max open files +(\d+|unlimited) /m.exec(limits)?.[1]
    return soft === undefined ? undefined : numberOf(soft)
  } catch {
    return undefined // another system, or one without /proc
  }
}

function fromReport(): number {
  const report = process.report as NodeJS.ProcessReport & { excludeNetwork: boolean }
  const asksDns = report.excludeNetwork
  report.excludeNetwork = true
  const { userLimits } = report.getReport() as { userLimits?: { open_files?: { soft?: number | string } } }
  report.excludeNetwork = asksDns
  return numberOf(String(userLimits?.open_files?.soft ?? ''))
}

function numberOf(text: string): number {
  return /^\d+$/.test(text) ? Number(text) : Number.POSITIVE_INFINITY
}
