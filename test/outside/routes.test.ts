import { describe, expect, it } from 'vitest'
import { place } from '../kit/place.js'
import { receiver } from '../kit/receiver.js'
import { prints } from '../kit/run.js'
import { bare, objects } from './example.js'
import { json, notes } from './fixture.js'

describe('relay routes', () => {
  it('lists the live routes with their state and counts', async () => {
    await using up = await receiver()
    await using down = await receiver('reset')
    await using here = await place({ host: 'none' })
    const forward = ['--forward', up.url, '--forward', `issues=${down.url}`]
    const relay = await here.serve(...forward, '--ignore', 'check_run')
    await relay.deliver()
    await relay.object({ type: 'attempt', n: 1 })
    const ran = await here.run('routes')
    const shown = `forwarded  failed  waiting  state  target
1  0  0  up  ${up.url}
0  0  0  up  issues=${down.url}
ignored: check_run
`
    expect({ ...ran, out: ran.out.replaceAll(/ {2,}/g, '  ') }).toEqual(prints(shown))
    const counts = { waiting: 0, succeeded: 1, failed: 0, since: null, nextTryAt: null, waitsFor: null }
    expect(objects((await here.run('routes', '--json')).out)).toEqual([
      { v: 1, type: 'route', target: up.url, match: '*', state: 'up', ...counts },
      expect.objectContaining({ target: `issues=${down.url}`, match: 'issues' }),
      { v: 1, type: 'ignore', match: 'check_run' },
    ])
  })

  it('lists the routes of the settings where nothing runs, and says so', async () => {
    const none = 'No relay is running for this profile: these are the routes of the settings\n'
    await using here = await bare()
    const ran = await here.runWith({ env: { RELAY_FORWARD: '3000' } }, 'routes')
    const out = 'forwarded  failed  waiting  state  target\n0  0  0  idle  http://localhost:3000\n'
    expect({ ...ran, out: ran.out.replaceAll(/ {2,}/g, '  ') }).toEqual({ ...notes(none), out })
    const start = 'Start one with relay serve --forward 3000, or set forward in relay.json\n'
    expect(await here.run('routes')).toEqual(notes(`${none}There are no routes. ${start}`))
  })
})

describe('relay routes test', () => {
  it('asks the instance, and distinguishes ignored deliveries from those that no route matches', async () => {
    await using target = await receiver()
    await using here = await place({ host: 'none' })
    const relay = await here.serve('--forward', `issues=${target.url}`, '--ignore', 'push')
    for (const event of ['push', 'fork']) await relay.deliver({ event })
    await relay.deliver({ event: 'issues', body: '{"action":"opened"}' })
    const label = `issues=${target.url}`
    const test = async (n: string) => here.run('routes', 'test', n)
    expect([await test('1'), await test('2'), await test('last')]).toEqual([
      {
        code: 0,
        out: `no  ${label}  push is ignored by push\n`,
        err: '#1 push goes nowhere: it is ignored by push\n',
      },
      {
        code: 0,
        out: `no  ${label}  fork does not match issues\n`,
        err: '#2 fork goes nowhere: no route matches it\n',
      },
      prints(`yes  ${label}  issues.opened matches issues\n`),
    ])
    expect((await test('9')).code).toBe(6)
    const routes = [{ target: 'http://localhost:3000', matched: true, why: 'push matches *' }]
    const found = await json(here.run('routes', 'test', '1', '--forward', '3000', '--json'))
    expect(found).toEqual({ v: 1, n: 1, event: 'push', action: null, ignoredBy: null, routes })
  })
})
