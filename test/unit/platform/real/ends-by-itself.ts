import { createRealPlatform } from '../../../../src/platform/index.ts'
import { sumTask } from '../../../conformance/offload-tasks.ts'

// Leaves a timer, an idle worker and a listener that is closed: the process ends all the same.
const { timers, offload, network } = createRealPlatform()
timers.set(60_000, () => process.stdout.write('timer\n'))
const listener = await network.listen({ host: 'localhost', port: 0 }, () => {})
await listener.close()
const { sum } = await offload.run(sumTask, { bytes: Buffer.from([1, 2]) })
process.stdout.write(`sum ${sum}\n`)
