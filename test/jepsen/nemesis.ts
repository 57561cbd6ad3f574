import { until } from '../support/condition.ts'
import { type Way, waysBetween, waysFrom } from '../support/links.ts'
import { pause } from './clients/session.ts'
import { type FaultyCluster, nodeIds } from './cluster.ts'

/** Uniform in [0, 1), from a seed (mulberry32). */
export function randomFrom(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

/** What it is inflicted on. */
export interface Target {
  readonly cluster: FaultyCluster
  readonly random: () => number
  /** Whether every node knows every partition with all its replicas in sync. */
  readonly isInSync: () => Promise<boolean>
}

interface Means extends Target {
  /** A node, any but `others`. */
  readonly pick: (...others: number[]) => number
  /** Whole milliseconds, evenly between. */
  readonly between: (minMs: number, maxMs: number) => number
}

/** Does something bad to the cluster for a while; when it resolves all is as before, but that nodes may not run. */
type Fault = (means: Means) => Promise<void>

/** For how long disks of nodes and what they hold up are bad. */
const shortMs = [500, 4000] as const
/** Past the session timeout of brokers, some of them. */
const longMs = [1000, 9000] as const

/** How long the quorum, and replicas, may take to become what they are to be. */
const patienceMs = 60_000

/** By name. Each is as probable as the others; more kinds go here. */
const faults: Readonly<Record<string, Fault>> = {
  'kill one': async ({ cluster, pick, between }) => {
    const id = pick()
    await cluster.kill(id)
    await pause(between(0, 6000))
  },
  'kill one again and again': async ({ cluster, pick, between }) => {
    const id = pick()
    for (let round = 0; round < 3; round++) {
      await cluster.kill(id)
      await pause(between(0, 500))
      cluster.launch(id)
      await pause(between(200, 3000))
    }
  },
  'kill two': async ({ cluster, pick, between }) => {
    const spared = pick()
    await Promise.all(nodeIds.filter((id) => id !== spared).map((id) => cluster.kill(id)))
    await pause(between(...shortMs))
  },
  'kill all': async ({ cluster, between }) => {
    await Promise.all(nodeIds.map((id) => cluster.kill(id)))
    await pause(between(0, 2000))
  },
  'suspend one': async ({ cluster, pick, between }) => {
    await suspended(cluster, pick(), () => pause(between(...longMs)))
  },
  'suspend one and kill another': async ({ cluster, pick, between }) => {
    const id = pick()
    await suspended(cluster, id, async () => {
      await pause(between(...shortMs))
      await cluster.kill(pick(id))
      await pause(between(0, 2000))
    })
  },
  'suspend one after the other': async ({ cluster, pick, between }) => {
    for (let round = 0; round < 4; round++) {
      await suspended(cluster, pick(), () => pause(between(200, 2500)))
      await pause(between(0, 500))
    }
  },
  'cut one off': ({ cluster, pick, between }) => {
    const id = pick()
    return held(cluster, waysBetween([id], others(id)), () => pause(between(...longMs)))
  },
  'one hears nobody': ({ cluster, pick, between }) => {
    const id = pick()
    return held(cluster, waysFrom(others(id), [id]), () => pause(between(...longMs)))
  },
  'nobody hears one': ({ cluster, pick, between }) => {
    const id = pick()
    return held(cluster, waysFrom([id], others(id)), () => pause(between(...longMs)))
  },
  'cut between two': ({ cluster, pick, between }) => {
    const id = pick()
    return held(cluster, waysBetween([id], [pick(id)]), () => pause(between(...longMs)))
  },
  'one does not hear another': ({ cluster, pick, between }) => {
    const id = pick()
    return held(cluster, waysFrom([pick(id)], [id]), () => pause(between(...longMs)))
  },
  'in a circle': ({ cluster, between }) => {
    const circle: readonly Way[] = ['1>2', '2>3', '3>1']
    return held(cluster, circle, () => pause(between(...longMs)))
  },
  'cut one off and kill another': ({ cluster, pick, between }) => {
    const id = pick()
    return held(cluster, waysBetween([id], others(id)), async () => {
      await pause(between(...shortMs))
      await cluster.kill(pick(id))
      await pause(between(0, 2000))
    })
  },
  'cut off one after the other': async ({ cluster, pick, between }) => {
    for (let round = 0; round < 4; round++) {
      const id = pick()
      await held(cluster, waysBetween([id], others(id)), () => pause(between(200, 3000)))
      await pause(between(0, 300))
    }
  },
  'slow links': async ({ cluster, pick, between }) => {
    const id = pick()
    cluster.links.delay(waysBetween([id], others(id)), between(20, 400))
    await pause(between(...longMs))
    cluster.links.heal()
  },
  'connections break': async ({ cluster, pick, between }) => {
    for (let round = 0; round < 10; round++) {
      const id = pick()
      cluster.links.reset(id, pick(id))
      await pause(between(0, 400))
    }
  },
  'disk errors': ({ cluster, pick, between, random }) => {
    const code = random() < 0.5 ? 'EIO' : 'ENOSPC'
    const path = ['', '__cluster_metadata-0', 'orders-', '__consumer_offsets-'][Math.floor(random() * 4)]!
    const share = random() < 0.5 ? 1 : 0.05
    return withDisk(cluster, pick(), { code, path, share, slowMs: 0 }, () => pause(between(...shortMs)))
  },
  'slow disk': ({ cluster, pick, between }) =>
    withDisk(cluster, pick(), { path: '', share: 1, slowMs: between(50, 1500) }, () => pause(between(...longMs))),
  'full disk': async ({ cluster, pick, between }) => {
    if (!cluster.hasOwnDisks) return
    const id = pick()
    await cluster.fillDisk(id, between(0, 200_000))
    await pause(between(...longMs))
    await cluster.emptyDisk(id)
    await startAnew(cluster, id)
  },
  'rolling restart': async ({ cluster, isInSync }) => {
    for (const id of nodeIds) {
      await cluster.stop(id)
      await cluster.launch(id).whenServing()
      await until(isInSync, `all replicas are in sync after the restart of node ${id}`)
    }
  },
  'restart one after the other': async ({ cluster, between }) => {
    for (const id of nodeIds) {
      await cluster.stop(id)
      cluster.launch(id)
      await pause(between(0, 3000))
    }
  },
  'vote taken and given': async ({ cluster, pick, between }) => {
    const id = pick()
    await withoutVote(cluster, id)
    await pause(between(0, 4000))
    await withVote(cluster, id)
  },
  'votes taken and given in turn': async ({ cluster, between }) => {
    for (const id of nodeIds) {
      await withoutVote(cluster, id)
      await pause(between(0, 1000))
      await withVote(cluster, id)
    }
  },
  'vote taken and another one killed': async ({ cluster, pick, between }) => {
    const id = pick()
    await withoutVote(cluster, id)
    const other = pick(id)
    await cluster.kill(other)
    await pause(between(...shortMs))
    cluster.launch(other)
    await withVote(cluster, id)
  },
  'wiped disk': async ({ cluster, pick, between, isInSync }) => {
    // What was on the disk has to be on the others: all of them run, and have it.
    await until(isInSync, 'all replicas are in sync before a disk is wiped', patienceMs)
    const id = pick()
    await cluster.kill(id)
    await cluster.wipe(id)
    await pause(between(0, 6000))
    cluster.launch(id)
    await withVote(cluster, id)
    await until(isInSync, `the replicas of node ${id} are copied to its new disk`, patienceMs)
  },
  'vote taken before the disk is wiped': async ({ cluster, pick, between, isInSync }) => {
    const id = pick()
    await withoutVote(cluster, id)
    await until(isInSync, 'all replicas are in sync before a disk is wiped', patienceMs)
    await cluster.stop(id)
    await cluster.wipe(id)
    await pause(between(0, 2000))
    cluster.launch(id)
    await withVote(cluster, id)
    await until(isInSync, `the replicas of node ${id} are copied to its new disk`, patienceMs)
  },
  'stop two': async ({ cluster, pick, between }) => {
    const spared = pick()
    await Promise.all(nodeIds.filter((id) => id !== spared).map((id) => cluster.stop(id)))
    await pause(between(0, 3000))
  },
}

export const faultNames: readonly string[] = Object.keys(faults)

/** Throws when the cluster doesn't come to what the fault waits for. */
export function inflict(name: string, target: Target): Promise<void> {
  const { random } = target
  const pick = (...excluded: number[]) => {
    const left = nodeIds.filter((id) => !excluded.includes(id))
    return left[Math.floor(random() * left.length)]!
  }
  const between = (minMs: number, maxMs: number) => Math.round(minMs + random() * (maxMs - minMs))
  return faults[name]!({ ...target, pick, between })
}

function others(id: number): number[] {
  return nodeIds.filter((other) => other !== id)
}

async function held(cluster: FaultyCluster, ways: readonly Way[], meanwhile: () => Promise<void>): Promise<void> {
  cluster.links.hold(ways)
  await meanwhile()
  cluster.links.heal()
}

async function suspended(cluster: FaultyCluster, id: number, meanwhile: () => Promise<void>): Promise<void> {
  cluster.signal(id, 'SIGSTOP')
  await meanwhile()
  cluster.signal(id, 'SIGCONT')
}

async function withDisk(
  cluster: FaultyCluster,
  id: number,
  fault: Parameters<FaultyCluster['setDiskFault']>[1] & object,
  meanwhile: () => Promise<void>,
): Promise<void> {
  await cluster.setDiskFault(id, fault)
  await meanwhile()
  await cluster.setDiskFault(id, undefined)
  if (fault.code !== undefined) await startAnew(cluster, id)
}

/** Takes the vote that a node has, with whichever disk. What is refused meanwhile is asked for again, as people do. */
async function withoutVote(cluster: FaultyCluster, id: number): Promise<void> {
  await untilDone(`node ${id} has no vote`, async () => {
    const voter = await cluster.voterDirectory(id)
    if (voter === undefined) return true
    await cluster.removeVoter(id, voter)
    return false
  })
}

/** Gives a node a vote with the disk that it has now; one that it has with another is taken first. */
async function withVote(cluster: FaultyCluster, id: number): Promise<void> {
  await untilDone(`node ${id} has a vote`, async () => {
    const [voter, own] = [await cluster.voterDirectory(id), await cluster.directory(id)]
    if (voter === own) return true
    if (voter === undefined) await cluster.addVoter(id, own)
    else await cluster.removeVoter(id, voter)
    return false
  })
}

async function untilDone(what: string, attempt: () => Promise<boolean>): Promise<void> {
  let refusal = ''
  const isDone = async () => {
    try {
      return await attempt()
    } catch (error) {
      refusal = (error as Error).message
      await pause(200)
      return false
    }
  }
  await until(isDone, what, patienceMs).catch((error: Error) => {
    throw new Error(`${error.message}: ${refusal}`)
  })
}

/** What people do about a node whose disk failed, once it is whole: they start it again. */
async function startAnew(cluster: FaultyCluster, id: number): Promise<void> {
  await cluster.stop(id)
  cluster.launch(id)
}
