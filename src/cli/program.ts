import { createRequire } from 'node:module'
import { Argument, Command, CommanderError, InvalidArgumentError, Option } from 'commander'
import { isUuid, type Uuid } from '../base/index.ts'
import type { ClusterOptions } from './commands/cluster.ts'
import type { CompletionOptions, Shell } from './commands/completion.ts'
import type * as configs from './commands/configs.ts'
import type { ConsumeOptions } from './commands/consume.ts'
import type { DoctorOptions } from './commands/doctor.ts'
import type * as groupCommands from './commands/groups.ts'
import type { ElectOptions } from './commands/leaders.ts'
import type { DumpOptions, VerifyOptions } from './commands/log.ts'
import type { OffsetsOptions } from './commands/offsets.ts'
import type { ProduceOptions } from './commands/produce.ts'
import type { AddVoterOptions, RemoveVoterOptions } from './commands/quorum.ts'
import type * as reassignCommands from './commands/reassign.ts'
import type { StartOptions } from './commands/start.ts'
import type * as topicCommands from './commands/topics.ts'
import type { ClusterCommandOptions } from './connect.ts'
import { dataFormats, parseSeparator } from './data-format.ts'
import { exitCodes } from './exit.ts'

/**
 * cli: the `rookery` program. This file says which commands and options there are; each command is a file of `commands/`,
 * loaded when it is called.
 *
 *     main.ts        entry: what must be set before anything is loaded
 *     commands/      start, topics, produce, consume, groups, offsets, configs, cluster, reassign, leaders, quorum,
 *                    doctor, log, completion
 *     client/        what the commands ask brokers, any Kafka broker: cluster, producer, fetcher, groups, configs
 *     log-files/     a data folder read without a broker: batches, and whether all is as it should be
 *     doctor/        what the doctor looks at
 *     completion/    scripts for shells, made of this file's declarations
 *     record-text.ts, data-format.ts, lines.ts   records as text and JSON, both ways
 *     settings.ts    key=value texts
 *     table.ts, output.ts        results for people and for programs
 *     exit.ts, fault-report.ts   exit codes, and a sentence for each fault
 *
 * Results go to the standard output, remarks to the standard error. Exit codes: 0, 1 something failed, 2 settings or
 * arguments can't be used.
 */
export async function run(args: readonly string[]): Promise<void> {
  // Set to nothing is how some environments unset what they inherit.
  if (process.env.KAFKA_BOOTSTRAP_SERVERS === '') delete process.env.KAFKA_BOOTSTRAP_SERVERS
  try {
    await createProgram().parseAsync([...args], { from: 'user' })
  } catch (error) {
    // Commander has printed its own: help and version are no errors for whoever called.
    if (error instanceof CommanderError) {
      if (error.code === 'commander.unknownOption' && args[0]?.startsWith('-') === true) {
        process.stderr.write('(options come after the command, as in `rookery topics list -b localhost:9092`)\n')
      }
      process.exitCode = error.exitCode === 0 ? exitCodes.ok : exitCodes.usage
      return
    }
    // Loaded only now: it knows the faults of every part.
    const { reportOf } = await import('./fault-report.ts')
    const { exitCode, text } = reportOf(error)
    process.stderr.write(`rookery: ${text}\n`)
    process.exitCode = exitCode
  }
}

/** Parses and runs one command line; throws `CommanderError` instead of leaving the process. */
export function createProgram(): Command {
  const program = new Command('rookery')
    .description('A Kafka-compatible event streaming broker, and commands for any Kafka cluster')
    .version(version(), '-V, --version')
    .exitOverride()
    .showHelpAfterError('(--help shows what is allowed)')
  addStart(program)
  addTopics(program)
  addProduce(program)
  addConsume(program)
  addGroups(program)
  addOffsets(program)
  addConfigs(program)
  addCluster(program)
  addReassign(program)
  addLeaders(program)
  addQuorum(program)
  addDoctor(program)
  addLog(program)
  addCompletion(program)
  return program
}

function addStart(program: Command): void {
  program
    .command('start')
    .description('run a broker in this terminal, until Ctrl-C')
    .option('-c, --config <file>', 'a server.properties file with keys of Kafka')
    .option(
      '-o, --override <key=value>',
      'a setting, stronger than the file and ROOKERY_ variables; repeatable',
      collect,
    )
    .option(
      '-t, --topic <spec>',
      'a topic to create: name, name:partitions or name:partitions:key=value; repeatable',
      collect,
    )
    .option('--topics-file <file>', 'topics to create: a JSON list of names, or of {name, partitions, configs}')
    .addOption(
      choice('--log-level <level>', 'the least that is logged', ['debug', 'info', 'warn', 'error', 'silent'], 'info'),
    )
    .addOption(
      choice('--log-format <format>', 'for people or for programs; by default what the output is', ['human', 'json']),
    )
    .action(async (options: StartOptions) => {
      const { start } = await import('./commands/start.ts')
      await start({ ...options, version: version() })
    })
}

function addTopics(program: Command): void {
  const topics = program.command('topics').description('list, create, describe, alter and delete topics')
  connected(
    topics
      .command('list', { isDefault: true })
      .description('the topics of the cluster')
      .argument('[topics...]', topicPatterns),
  )
    .option('--internal', "those of Kafka's own too")
    .action(async (names: string[], options: topicCommands.ListOptions) =>
      (await import('./commands/topics.ts')).list(names, options),
    )
  connected(topics.command('create').description('create topics').argument('<topics...>'))
    .option('-p, --partitions <count>', "the broker's num.partitions by default", wholeNumber(1))
    .option('-r, --replication-factor <count>', "the broker's default.replication.factor by default", wholeNumber(1))
    .option('-c, --config <key=value>', 'a setting of the topic; repeatable', collect)
    .option('--if-not-exists', 'a topic that is there already is no error')
    .action(async (names: string[], options: topicCommands.CreateOptions) =>
      (await import('./commands/topics.ts')).create(names, options),
    )
  connected(
    topics
      .command('describe')
      .description('partitions, offsets and settings')
      .argument('[topics...]', `${topicPatterns}; all without one`),
  )
    .option('-a, --all', 'settings of the broker and defaults too')
    .action(async (names: string[], options: topicCommands.DescribeOptions) =>
      (await import('./commands/topics.ts')).describe(names, options),
    )
  connected(topics.command('alter').description('add partitions, change settings').argument('<topics...>'))
    .option('-p, --partitions <count>', 'how many there are afterwards', wholeNumber(1))
    .option('-c, --config <key=value>', 'a setting of the topic; repeatable', collect)
    .option('-d, --delete-config <key>', "a setting that is to be the broker's again; repeatable", collect)
    .action(async (names: string[], options: topicCommands.AlterOptions) =>
      (await import('./commands/topics.ts')).alter(names, options),
    )
  connected(topics.command('delete').description('delete topics with all their records').argument('<topics...>'))
    .option('--if-exists', 'a topic that is not there is no error')
    .option('-y, --yes', 'do not ask; without a terminal nobody is asked')
    .action(async (names: string[], options: topicCommands.DeleteOptions) =>
      (await import('./commands/topics.ts')).remove(names, options),
    )
}

function addProduce(program: Command): void {
  const command = program
    .command('produce')
    .description('write lines of the standard input, or of a file, as records')
    .argument('<topic>')
    .option('-f, --file <file>', 'read lines from a file')
    .option('-k, --key-separator <text>', 'a line is a key, this (\\t is a tab), and a value', parseSeparator)
    .option('--key <text>', 'the key of every record')
    .option('-H, --header <name=value>', 'a header for every record; repeatable', collect)
    .addOption(choice('--key-format <format>', 'how keys are written', dataFormats, 'text'))
    .addOption(choice('--value-format <format>', 'how values are written', dataFormats, 'text'))
    .option('--null <text>', 'a key or a value that is this text is null; a null value deletes its key (a tombstone)')
    .option('-p, --partition <number>', "write to this partition, whatever a record's key", wholeNumber(0))
    .option('-n, --max <count>', 'stop after this many lines', wholeNumber(1))
    .option('--rate <count>', 'at most so many records a second', wholeNumber(1))
    .addOption(choice('-z, --compression <codec>', 'pack batches', ['none', 'gzip', 'snappy', 'lz4', 'zstd'], 'none'))
    .addOption(
      choice('--acks <acks>', 'wait for all in-sync replicas, the leader, or nobody', ['all', '1', '0'], 'all'),
    )
  connected(command, 'lines are JSON objects as `consume --json` prints them; the result is JSON too').action(
    async (topic: string, options: ProduceOptions) => (await import('./commands/produce.ts')).produce(topic, options),
  )
}

function addConsume(program: Command): void {
  const command = program
    .command('consume')
    .description('print records as they come, until Ctrl-C')
    .argument('<topics...>', topicPatterns)
    .option('--from <place>', `${placesOption} (default: latest; with --exit or --until: beginning)`)
    .option('--until <place>', 'stop before this offset or time, or at the end if that comes first')
    .option('--last <count>', 'print the last so many records, in the order of their times, and stop', wholeNumber(1))
    .option('-p, --partition <number>', 'only this partition; repeatable', collectNumbers)
    .option('-n, --max <count>', 'stop after this many records', wholeNumber(1))
    .option('-e, --exit', 'read what is there, and stop')
    .option('-g, --group <group>', 'share the partitions with the members of this group, and commit what was printed')
    .option('--no-commit', "leave the group's offsets as they are")
    .option('--key <text>', 'only records with this key')
    .option(
      '-k, --key-separator <text>',
      "print each record's key and this (\\t is a tab) before its value",
      parseSeparator,
    )
    .addOption(choice('--key-format <format>', 'how keys are printed', dataFormats, 'text'))
    .addOption(choice('--value-format <format>', 'how values are printed', dataFormats, 'text'))
    .option('--null <text>', 'what is printed for a key or a value that is null', 'null')
    .option('-d, --details', 'print partition, offset, time, key and headers before each record')
    .option(
      '-f, --format <pattern>',
      'what is printed: %t topic, %p partition, %o offset, %d time, %T the same in ms, %k key, %v value, %h headers',
    )
  connected(command, 'each record as one JSON object a line').action(
    async (topics: string[], options: ConsumeOptions) =>
      (await import('./commands/consume.ts')).consume(topics, options),
  )
}

function addGroups(program: Command): void {
  const groups = program.command('groups').description('list, describe, reset and delete consumer groups')
  connected(groups.command('list', { isDefault: true }).description('the groups of the cluster')).action(
    async (options: groupCommands.GroupsOptions) => (await import('./commands/groups.ts')).list(options),
  )
  connected(
    groups.command('describe').description('members, offsets and lag').argument('[groups...]', 'all without one'),
  ).action(async (ids: string[], options: groupCommands.GroupsOptions) =>
    (await import('./commands/groups.ts')).describe(ids, options),
  )
  connected(
    groups.command('delete').description('delete groups without members, with their offsets').argument('<groups...>'),
  )
    .option('-y, --yes', 'do not ask; without a terminal nobody is asked')
    .action(async (ids: string[], options: groupCommands.DeleteOptions) =>
      (await import('./commands/groups.ts')).remove(ids, options),
    )
  connected(
    groups
      .command('reset-offsets')
      .description('show where a group would go on, and with --execute set it')
      .argument('<group>')
      .requiredOption('--to <place>', `${placesOption}, within each partition`)
      .option('-t, --topic <topic>', 'only this topic; repeatable; by default what the group has committed', collect)
      .option('--execute', 'set the offsets; the group must have no members'),
  ).action(async (id: string, options: groupCommands.ResetOptions) =>
    (await import('./commands/groups.ts')).resetOffsets(id, options),
  )
}

function addOffsets(program: Command): void {
  const command = program
    .command('offsets')
    .description('the first and the next offset of each partition')
    .argument('<topic>')
    .option('--at <place>', `and the offset that this means: ${placesOption}`)
  connected(command).action(async (topic: string, options: OffsetsOptions) =>
    (await import('./commands/offsets.ts')).offsets(topic, options),
  )
}

/** What `parseFroms` takes. */
const placesOption =
  'latest, beginning, an offset, a time (2026-01-31T12:00:00Z, or 90m for that long ago; s, m, h, d), -N for the last N of each partition; or for some partitions: 0:100,1:-5'

/** What `matchingTopics` takes. */
const topicPatterns = "names, or patterns such as 'orders-*'"

const kinds = ['topic', 'broker']

function oneOfKinds(text: string): string {
  if (kinds.includes(text)) return text
  const meant = kinds.find((each) => each[0] === text[0]?.toLowerCase())
  const help = meant === undefined ? `Allowed choices are ${kinds.join(', ')}.` : `Did you mean ${meant}?`
  throw new InvalidArgumentError(help)
}

function addConfigs(program: Command): void {
  const command = program.command('configs').description('describe and alter settings of topics and brokers')
  const kind = () => new Argument('<kind>', 'of what').choices(kinds).argParser(oneOfKinds)
  const names = () => new Argument('[topics...]', 'topics, or ids of brokers; no id is what is set for all brokers')
  connected(
    command.command('describe').description('what is set, and by whom').addArgument(kind()).addArgument(names()),
  )
    .option('-a, --all', 'defaults too')
    .action(async (of: configs.ConfigKind, which: string[], options: configs.DescribeOptions) =>
      (await import('./commands/configs.ts')).describe(of, which, options),
    )
  connected(command.command('alter').description('change settings').addArgument(kind()).addArgument(names()))
    .option('-s, --set <key=value>', 'a value; repeatable', collect)
    .option('-d, --delete <key>', 'what is set no longer; repeatable', collect)
    .option('--append <key=elements>', 'elements that are added to a list; repeatable', collect)
    .option('--subtract <key=elements>', 'elements that are taken out of a list; repeatable', collect)
    .option('--dry-run', 'only ask whether it could be done')
    .action(async (of: configs.ConfigKind, which: string[], options: configs.AlterOptions) =>
      (await import('./commands/configs.ts')).alter(of, which, options),
    )
}

function addCluster(program: Command): void {
  connected(
    program
      .command('cluster')
      .description('nodes, partitions that lack something, and the quorum')
      .option('--apis', 'what each node serves, in which versions'),
  ).action(async (options: ClusterOptions) => (await import('./commands/cluster.ts')).cluster(options))
}

function addReassign(program: Command): void {
  const reassign = program.command('reassign').description('move replicas of partitions between brokers')
  connected(reassign.command('list', { isDefault: true }).description('the reassignments that run')).action(
    async (options: reassignCommands.ReassignOptions) => (await import('./commands/reassign.ts')).list(options),
  )
  connected(
    reassign
      .command('plan')
      .description('print a plan that spreads topics over brokers, for `reassign start`')
      .argument('<topics...>', topicPatterns),
  )
    .option('--to <broker>', 'the id of a broker that is to have replicas; repeatable; all by default', collectNumbers)
    .option('-r, --replication-factor <count>', 'as each partition has by default', wholeNumber(1))
    .action(async (names: string[], options: reassignCommands.PlanOptions) =>
      (await import('./commands/reassign.ts')).plan(names, options),
    )
  connected(
    reassign.command('start').description("begin what a plan says: JSON, as of Kafka's own tool").argument('<file>'),
  )
    .option('-w, --wait', 'until it is done')
    .option(
      '-t, --throttle <size>',
      'that much a second, such as 10MiB, of each broker, and wait until it is done',
      size,
    )
    .action(async (path: string, options: reassignCommands.StartOptions) =>
      (await import('./commands/reassign.ts')).start(path, options),
    )
  connected(reassign.command('cancel').description('put replicas back where they were').argument('[file]', 'the plan'))
    .option('-a, --all', 'all that run')
    .action(async (path: string | undefined, options: reassignCommands.CancelOptions) =>
      (await import('./commands/reassign.ts')).cancel(path, options),
    )
}

function addLeaders(program: Command): void {
  const leaders = program.command('leaders').description('elect leaders of partitions')
  connected(
    leaders
      .command('elect')
      .description('have partitions led by their first replica again')
      .argument('[topics...]', topicPatterns),
  )
    .option('-p, --partition <number>', 'only this partition of each; repeatable', collectNumbers)
    .option('--unclean', 'where there is no leader: any replica that lives, though it may lack records')
    .option('-y, --yes', 'do not ask; without a terminal nobody is asked')
    .action(async (names: string[], options: ElectOptions) =>
      (await import('./commands/leaders.ts')).elect(names, options),
    )
}

function addQuorum(program: Command): void {
  const quorum = program.command('quorum').description('the nodes that vote on the metadata')
  connected(
    quorum.command('status', { isDefault: true }).description('who leads, who votes, and how far each is'),
  ).action(async (options: ClusterCommandOptions) => (await import('./commands/quorum.ts')).status(options))
  connected(
    quorum
      .command('add-voter')
      .description('give a vote to a controller that follows the quorum')
      .argument('<id>', 'its node.id', wholeNumber(0)),
  )
    .option('--endpoint <host:port>', 'where the others reach it; what it told of itself by default')
    .option('--directory-id <id>', 'of its metadata folder; that which follows by default', directoryId)
    .option('--replace', 'where the id has a vote with another folder, which was lost: take that first')
    .action(async (id: number, options: AddVoterOptions) => (await import('./commands/quorum.ts')).add(id, options))
  connected(
    quorum
      .command('remove-voter')
      .description('take the vote of a node; it may follow on')
      .argument('<id>', 'its node.id', wholeNumber(0)),
  )
    .option('--directory-id <id>', 'of its metadata folder; that which has the vote by default', directoryId)
    .action(async (id: number, options: RemoveVoterOptions) =>
      (await import('./commands/quorum.ts')).remove(id, options),
    )
}

function addDoctor(program: Command): void {
  connected(
    program
      .command('doctor')
      .description('can clients from here work with this cluster? addresses, clock, disks, limits, replication')
      .option('-c, --config <file>', "the broker's server.properties: look at its folders and its process too")
      .option('--write', 'write and read back a record, in a topic that is deleted afterwards'),
  ).action(async (options: DoctorOptions) => (await import('./commands/doctor.ts')).doctor(options))
}

function addLog(program: Command): void {
  const log = program.command('log').description("look into a broker's data folder, without a broker")
  log
    .command('dump')
    .description('the batches of segments or partitions, and with --records what is in them')
    .argument('<paths...>', 'segments, such as orders-0/00000000000000000000.log, or folders such as orders-0')
    .option('-r, --records', "each batch's records too, those of __consumer_offsets decoded")
    .option('--from <offset>', 'from this offset on', wholeNumber(0, 15))
    .option('--to <offset>', 'up to this offset', wholeNumber(0, 15))
    .option('--json', 'each batch, and each record, as one JSON object a line')
    .action(async (paths: string[], options: DumpOptions) => (await import('./commands/log.ts')).dump(paths, options))
  log
    .command('verify')
    .description('check every batch, index, snapshot and checkpoint; exit with 1 when something is wrong')
    .argument('<path>', 'a folder of log.dirs, one of a partition, or a segment')
    .option('-r, --records', 'unpack batches and check each record too')
    .option('--json', 'JSON instead of text')
    .action(async (path: string, options: VerifyOptions) => (await import('./commands/log.ts')).verify(path, options))
}

function addCompletion(program: Command): void {
  program
    .command('completion')
    .description('a script that makes a shell complete commands, options, topics and groups')
    .addArgument(new Argument('[shell]', 'eval "$(rookery completion bash)"').choices(['bash', 'zsh', 'fish']))
    .addOption(new Option('--names <kind>', 'what the scripts ask for').choices(['topics', 'groups']).hideHelp())
    .addOption(bootstrapServer().hideHelp())
    .action(async (shell: Shell | undefined, options: CompletionOptions) =>
      (await import('./commands/completion.ts')).completion(shell, options, program),
    )
}

/** What every command that asks a broker has. */
function connected(command: Command, json = 'JSON instead of a table'): Command {
  return command
    .addOption(bootstrapServer())
    .option('--timeout <seconds>', 'how long an answer may take', wholeNumber(1), 30)
    .option('--json', json)
}

function directoryId(text: string): Uuid {
  if (!isUuid(text)) throw new InvalidArgumentError('Allowed are 22 characters, as rookery quorum status shows them.')
  return text
}

function bootstrapServer(): Option {
  return new Option('-b, --bootstrap-server <servers>', 'host:port of a broker, or several with commas')
    .default('localhost:9092')
    .env('KAFKA_BOOTSTRAP_SERVERS')
}

function choice(flags: string, description: string, choices: readonly string[], initial?: string): Option {
  const option = new Option(flags, description).choices(choices)
  return initial === undefined ? option : option.default(initial)
}

function collect(value: string, previous: readonly string[] = []): readonly string[] {
  return [...previous, value]
}

function collectNumbers(value: string, previous: readonly number[] = []): readonly number[] {
  return [...previous, wholeNumber(0)(value)]
}

function wholeNumber(min: number, maxDigits = 10): (text: string) => number {
  return (text) => {
    if (/^\d+$/.test(text) && text.length <= maxDigits && Number(text) >= min) return Number(text)
    throw new InvalidArgumentError(`Allowed is a whole number from ${min}.`)
  }
}

const sizeFactors: Readonly<Record<string, number>> = { '': 1, k: 2 ** 10, m: 2 ** 20, g: 2 ** 30 }

/** Bytes, of `1048576`, `1024k`, `1.5MiB`. */
function size(text: string): number {
  const [, digits, unit = ''] = /^(\d{1,12}(?:\.\d{1,6}(?= ?[kmg]))?) ?(?:([kmg])i?)?b?$/i.exec(text) ?? []
  const bytes = Math.floor(Number(digits) * sizeFactors[unit.toLowerCase()]!)
  if (digits !== undefined && bytes >= 1 && Number.isSafeInteger(bytes)) return bytes
  throw new InvalidArgumentError('Allowed is a number of bytes, such as 500000, 512KiB or 10MiB.')
}

function version(): string {
  // From source and from the built package alike, package.json lies two folders up.
  return (createRequire(import.meta.url)('../../package.json') as { version: string }).version
}
