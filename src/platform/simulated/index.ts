/**
 * platform/simulated: hosts in one process, driven by one seed. For tests: a node loads the real platform only.
 *
 *   const simulation = createSimulation({ seed })
 *   const a = simulation.host('a')
 *   const node = await simulation.run(startNode(a.platform))
 *   a.crash()
 *   const again = await simulation.run(startNode(a.restart()))
 *
 * `Simulation` owns virtual time and runs one event after the other, and after each all promises that can settle; a
 * `SimulatedHost` has a disk, a clock and one process at a time, whose `platform` it gives; faults are methods of the
 * host (crash, kill, pause, jumpClock), of its disk (failNext, capacityBytes, syncUs) and of the network (cut, partition, delay).
 *
 * Invariants:
 * - Two runs of one seed do the same calls at the same virtual times with the same bytes: `traceHash` is equal. For that the
 *   code under test awaits nothing of the real world (a dynamic import, a real timer) during a run.
 * - A crashed process reaches nothing: no disk, no socket, no timer.
 * - Unsynced bytes and names may be there after a crash or not, each draw of the seed within what a journaling file
 *   system may do; synced ones are there.
 *
 *   simulation.ts   the loop, hosts, checks          host.ts        crash, restart, pause, clock; a process's platform
 *   scheduler.ts    virtual time                     process.ts     what dies at a crash
 *   event-queue.ts  heap by (time, sequence)         disk.ts        names, space, faults; disk-file.ts: unsynced content
 *   trace.ts        the running hash                 files.ts       the port over a disk
 *   prng.ts         sfc32                            network.ts     links, listeners; socket.ts: a connection's end
 */
export type { DiskFault, SimulatedDisk } from './disk.ts'
export type { SimulatedHost } from './host.ts'
export type { SimulatedNetwork } from './network.ts'
export { HostCrashedError } from './process.ts'
export {
  createSimulation,
  type RunOptions,
  Simulation,
  type SimulationOptions,
  SimulationStuckError,
} from './simulation.ts'
