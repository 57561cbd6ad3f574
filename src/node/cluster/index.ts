/**
 * node/cluster: several nodes in one process, for the tests of programs. Each is a whole node as `start-node.ts` puts it
 * together, with gRPC between them; around each stands what a process and a network would be.
 *
 *   local-cluster.ts   `LocalCluster`: settings, start, end
 *   local-node.ts      `LocalNode`: start, stop, kill, pause, resume of one node; its data outlives its runs
 *   links.ts           the ways between nodes, which can be cut; connections of the Kafka protocol over them
 *   switched-rpc.ts    gRPC over them, with names in place of ports
 *
 * Invariants:
 * - A node that is killed runs nothing any more and writes nothing any more, before `kill` resolves: the next run may use its
 *   files. It loses what a killed process loses: nothing that was written.
 * - What goes over a link that is cut waits and is delivered when it is healed, as TCP does it; nobody is told of a cut.
 * - Ports of CONTROLLER listeners are free ones, chosen by the system when a node listens: no test fails for a port that
 *   somebody took meanwhile. The port for clients stays from run to run.
 *
 * gRPC stays between the nodes, though all are in one process: its connections break, and refuse, as those of processes do,
 * which is what the nodes conclude from that a peer has died.
 */
export { clusterNodeConfig, LocalCluster } from './local-cluster.ts'
export type { LocalNode, NodeState } from './local-node.ts'
