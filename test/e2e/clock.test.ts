import path from 'node:path'
import { describe, expect, it } from 'vitest'
import { emptyFolder } from '../helpers/context.js'
import { githubDelivery, post } from '../helpers/delivery.js'
import type { Program } from '../helpers/program.js'
import { journalOf, serve, unfinished } from '../helpers/serve.js'
import { startTarget } from '../helpers/target.js'

const CLOCK = path.resolve('test/e2e/programs/clock.mjs')
const HOUR = 3_600_000

/** Starts what it wraps with a clock that is set `ahead`, at once or at that signal. */
const clockSet = (ahead: number, at = ''): string[] => [
  'env',
  `NODE_OPTIONS=--import=${CLOCK}`,
  `TEST_CLOCK=${ahead}`,
  `TEST_CLOCK_AT=${at}`,
]

describe('a clock that is set ahead by a day', () => {
  it('neither fails what waits nor removes what is to stay, also when that is before a restart', async () => {
    const home = emptyFolder()
    await using target = await startTarget()
    await target.down()
    const flags = ['--forward', `push=${target.url}`, '--keep', '2h']
    const ids = async (): Promise<string[]> => (await journalOf(home)).map(({ deliveryId }) => deliveryId)
    const tried = (relay: Program, state: string) => relay.object({ type: 'attempt', n: 2, state })

    await using first = serve(home, clockSet(25 * HOUR, 'SIGUSR2'), flags)
    const webhook = `${await first.url()}/webhook`
    const send = (id: string, event: string) => post(webhook, githubDelivery({ id, event }))
    await send('kept', 'ping')
    await send('waits', 'push')
    await send('newest', 'ping')
    await tried(first, 'waiting')
    first.child.kill('SIGUSR2')
    await first.objects({ type: 'attempt', n: 2 }, 2)
    await first.stop()
    expect([await ids(), await unfinished(home)]).toEqual([['kept', 'waits', 'newest'], [2]])

    await using second = serve(home, clockSet(50 * HOUR), flags)
    await tried(second, 'waiting')
    await second.stop()
    expect([await ids(), await unfinished(home)]).toEqual([['kept', 'waits', 'newest'], [2]])

    await target.up()
    await using third = serve(home, [], flags)
    await tried(third, 'succeeded')
    expect(await ids()).toEqual(['kept', 'waits', 'newest'])
  })
})
