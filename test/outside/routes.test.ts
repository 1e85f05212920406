import { describe, expect, it } from 'vitest'
import { fixtureOf, signedRequest } from 'webhook-relay/testing'
import { place, type Serving } from '../kit/place.js'
import { receiver } from '../kit/receiver.js'
import { prints } from '../kit/run.js'
import { bare, objects } from './example.js'

/** Sends the example of an event. */
async function send(relay: Serving, event: string): Promise<void> {
  const request = signedRequest(fixtureOf(event), { url: `${relay.address}/webhook` })
  expect((await fetch(request)).status).toBe(200)
}

describe('relay routes', () => {
  it('lists the live routes with their state and counts', async () => {
    await using up = await receiver()
    await using down = await receiver('reset')
    await using here = await place({ host: 'none' })
    const forward = ['--forward', up.url, '--forward', `issues=${down.url}`]
    const relay = await here.serve(...forward, '--ignore', 'check_run')
    await send(relay, 'push')
    await relay.object({ type: 'attempt', n: 1 })
    const { code, out, err } = await here.run('routes')
    expect({
      code,
      err,
      out: out.replaceAll(up.url, 'UP').replaceAll(down.url, 'DOWN').replaceAll(/ {2,}/g, '  '),
    }).toEqual({
      code: 0,
      err: '',
      out: [
        'forwarded  failed  waiting  state  target',
        '1  0  0  up  UP',
        '0  0  0  up  issues=DOWN',
        'ignored: check_run',
        '',
      ].join('\n'),
    })
    expect(objects((await here.run('routes', '--json')).out)).toEqual([
      {
        v: 1,
        type: 'route',
        target: up.url,
        match: '*',
        state: 'up',
        waiting: 0,
        succeeded: 1,
        failed: 0,
        since: null,
        nextTryAt: null,
      },
      expect.objectContaining({ target: `issues=${down.url}`, match: 'issues' }),
      { v: 1, type: 'ignore', match: 'check_run' },
    ])
  })

  it('lists the routes of the settings where nothing runs, and says so', async () => {
    const err = 'No relay is running for this profile: these are the routes of the settings\n'
    await using here = await bare()
    const ran = await here.runWith({ env: { RELAY_FORWARD: '3000' } }, 'routes')
    expect({ ...ran, out: ran.out.replaceAll(/ {2,}/g, '  ') }).toEqual({
      code: 0,
      out: 'forwarded  failed  waiting  state  target\n0  0  0  idle  http://localhost:3000\n',
      err,
    })
    expect(await here.run('routes')).toEqual({
      code: 0,
      out: '',
      err: `${err}There are no routes. Start one with relay serve --forward 3000, or set forward in relay.json\n`,
    })
  })
})

describe('relay routes test', () => {
  it('asks the instance, and distinguishes ignored deliveries from those that no route matches', async () => {
    await using target = await receiver()
    await using here = await place({ host: 'none' })
    const relay = await here.serve('--forward', `issues=${target.url}`, '--ignore', 'push')
    for (const event of ['push', 'fork', 'issues.opened']) await send(relay, event)
    const label = `issues=${target.url}`
    expect(await here.run('routes', 'test', '1')).toEqual({
      code: 0,
      out: `no  ${label}  push is ignored by push\n`,
      err: '#1 push goes nowhere: it is ignored by push\n',
    })
    expect(await here.run('routes', 'test', '2')).toEqual({
      code: 0,
      out: `no  ${label}  fork does not match issues\n`,
      err: '#2 fork goes nowhere: no route matches it\n',
    })
    expect(await here.run('routes', 'test', 'last')).toEqual(
      prints(`yes  ${label}  issues.opened matches issues\n`),
    )
    expect((await here.run('routes', 'test', '9')).code).toBe(6)
    const { out } = await here.run('routes', 'test', '1', '--forward', '3000', '--json')
    expect(JSON.parse(out)).toEqual({
      v: 1,
      n: 1,
      event: 'push',
      action: null,
      ignoredBy: null,
      routes: [{ target: 'http://localhost:3000', matched: true, why: 'push matches *' }],
    })
  })
})

describe('GET /instance/routes', () => {
  it('is unknown to who has no proof', async () => {
    await using here = await bare()
    const { address } = await here.serve()
    for (const headers of [{}, { 'X-Relay-Proof': 'f'.repeat(64) }])
      expect((await fetch(`${address}/instance/routes`, { headers })).status).toBe(404)
  })
})
