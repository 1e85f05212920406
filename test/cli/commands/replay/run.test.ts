import { describe, expect, it } from 'vitest'
import { RelayError } from '../../../../src/base/errors.js'
import { openDestination } from '../../../../src/old/commands/replay/destination.js'
import { run } from '../../../../src/old/commands/replay/run.js'
import type { Item } from '../../../../src/old/commands/replay/select-items.js'
import { readPlan } from '../../../../src/old/commands/replay/send-plan.js'
import type { SendFlags } from '../../../../src/old/commands/replay/send-options.js'
import { testContext } from '../../../helpers/context.js'
import { startTarget } from '../../../helpers/target.js'

const there: Item = {
  name: '#1',
  load: async () => ({
    provider: 'github',
    event: 'push',
    deliveryId: 'id',
    headers: [],
    body: Buffer.from('{}'),
  }),
}
/** Swept away since it was chosen. */
const gone: Item = { name: '#2', load: async () => undefined }

interface Running {
  readonly concurrency?: string
  readonly signal?: AbortSignal
  readonly onReady?: () => void
}

async function running(
  items: readonly Item[],
  { concurrency = '1', signal = new AbortController().signal, onReady = () => {} }: Running = {},
) {
  await using target = await startTarget()
  const { context, err } = testContext({ env: { RELAY_WEBHOOK_SECRET: 'secret' }, signal })
  const flags: SendFlags = { color: 'never', expect: '2xx', times: '1', concurrency, to: target.url }
  const plan = readPlan(flags)
  await using destination = await openDestination(context, flags, plan)
  onReady()
  const ended = await run(context, flags, plan, items, destination).catch((error: unknown) => error)
  return { ended, received: target.received.length, err: err() }
}

describe('run', () => {
  it('leaves out what is gone from the journal when its turn comes', async () => {
    expect(await running([gone, there, gone, there])).toEqual({
      ended: undefined,
      received: 2,
      err: '2 sent\n',
    })
    expect(await running([gone, gone], { concurrency: '2' })).toEqual({
      ended: expect.objectContaining({ kind: 'no_match' }),
      received: 0,
      err: '',
    })
  })

  it('sends nothing when it was interrupted while files were read', async () => {
    const stop = new AbortController()
    const reason = new RelayError('cancelled', 'Interrupted')
    let loaded = 0
    const item: Item = { name: 'a.json', load: () => (loaded++, there.load()) }
    // As a signal is heard: in the next turn of the event loop, and there was none while files were read.
    const onReady = () => void setImmediate(() => stop.abort(reason))
    const ran = await running([item], { signal: stop.signal, onReady })
    expect({ ...ran, loaded }).toEqual({ ended: reason, received: 0, err: '', loaded: 0 })
  })

  it('reports how many were sent when it is interrupted after that', async () => {
    const stop = new AbortController()
    const reason = new RelayError('cancelled', 'Interrupted')
    const last: Item = {
      name: 'last',
      load: () => {
        stop.abort(reason)
        return there.load()
      },
    }
    expect(await running([there, last], { signal: stop.signal })).toEqual({
      ended: reason,
      received: 1,
      err: '1 sent\n',
    })
  })
})
