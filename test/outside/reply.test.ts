import { createHmac } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, it } from 'vitest'
import { secretVariable } from '../kit/delivery.js'
import { linesOf } from '../kit/journal.js'
import { place, type Serving } from '../kit/place.js'
import { type Answering, receiver, valuesOf } from '../kit/receiver.js'
import { fresh } from './fixture.js'

const SECRET = 'S3cr3t_Key_0123456789abcdef'
const SOURCE = ['--source', 'shop=hmac header=X-Signature event=$.type id=$.id']
const OK = { status: 200, type: 'application/json', body: '{"ok":true}' }

const here = fresh(() => place({ host: 'none', env: { [secretVariable('shop')]: SECRET } }))

async function serving(route: object): Promise<Serving> {
  writeFileSync(
    path.join(here.cwd, 'relay.json'),
    JSON.stringify({ routes: [{ match: 'shop/*', reply: '2s', ...route }] }),
  )
  return here.serve(...SOURCE)
}

async function ask(relay: Serving, method: string, query = '', body?: string, signed = true) {
  const response = await fetch(`${relay.address}/webhook/shop${query}`, {
    method,
    redirect: 'manual',
    headers: {
      'content-type': 'application/json',
      authorization: 'Bearer canary',
      ...(body !== undefined &&
        signed && { 'x-signature': createHmac('sha256', SECRET).update(body).digest('hex') }),
    },
    ...(body !== undefined && { body }),
  })
  return {
    status: response.status,
    type: response.headers.get('content-type'),
    body: await response.text(),
    headers: Object.fromEntries(response.headers),
  }
}
const send = (relay: Serving, id: string) => ask(relay, 'POST', '', JSON.stringify({ type: 'made', id }))

const ANSWERS: readonly (readonly [string, Answering, object])[] = [
  [
    'JSON',
    { headers: { 'Content-Type': 'application/json', 'X-Own': 'a' }, body: '{"response_action":"errors"}' },
    { status: 200, type: 'application/json', body: '{"response_action":"errors"}', own: 'a' },
  ],
  [
    'XML',
    { headers: { 'Content-Type': 'text/xml' }, body: '<Response/>' },
    { status: 200, type: 'text/xml', body: '<Response/>' },
  ],
  ['another status', 422, { status: 422, body: '' }],
  ['nothing', 204, { status: 204, type: null, body: '' }],
  ['a failure', { status: 503, body: 'down' }, { status: 503, body: 'down' }],
  ['more than 64 KiB', { body: 'x'.repeat(70_000) }, OK],
  ['never', 'hang', OK],
  ['no answer', 'reset', OK],
]

describe('a route with reply', () => {
  it.each(ANSWERS)('gives the sender what the program answers, or 200: %s', async (_, answer, expected) => {
    await using target = await receiver(answer)
    const relay = await serving({ forward: target.url, ...(answer === 'hang' && { reply: '200ms' }) })
    const { headers, ...given } = await send(relay, 'd-1')
    const { own, ...rest } = { own: undefined, ...expected }
    expect(given).toMatchObject(rest)
    expect(headers['x-own']).toBe(own)
    expect(await linesOf(here)).toMatchObject([{ provider: 'shop', delivery: 'd-1' }])
  })

  it('passes on no cookie, nothing of the connection, and nothing that a browser would run', async () => {
    const set = {
      'Set-Cookie': 'a=b',
      'Keep-Alive': 'timeout=9',
      'Content-Type': 'text/html',
      'X-Relay-Own': 'a',
    }
    await using target = await receiver({ headers: set, body: '<script>1</script>' })
    const relay = await serving({ forward: target.url })
    const { headers } = await send(relay, 'd-1')
    expect(headers).toMatchObject({
      'x-content-type-options': 'nosniff',
      'content-security-policy': 'sandbox',
    })
    expect([headers['set-cookie'], headers['x-relay-own']]).toEqual([undefined, undefined])
  })

  it('has the delivery once, stored before the program gets it', async () => {
    const stored: number[] = []
    await using target = await receiver(async () => {
      stored.push((await linesOf(here)).length)
      return { body: 'own' }
    })
    const relay = await serving({ forward: target.url })
    expect(await send(relay, 'd-1')).toMatchObject({ status: 200, body: 'own' })
    expect(await send(relay, 'd-1')).toMatchObject(OK)
    expect(stored).toEqual([1])
    expect(target.received).toHaveLength(1)
  })

  it('is answered 200 while the program is down, and forwards later', async () => {
    const gone = await receiver()
    await gone[Symbol.asyncDispose]()
    const relay = await serving({ forward: gone.url })
    expect(await send(relay, 'd-1')).toMatchObject(OK)
    await relay.object({ type: 'target', state: 'down' })
    await relay.stop()
    await using back = await receiver({ body: 'back' }, { port: Number(new URL(gone.url).port) })
    await using again = await here.serve(...SOURCE)
    await back.has(1)
    expect(await send(again, 'd-2')).toMatchObject({ status: 200, body: 'back' })
  })

  it('does not wait behind what the program leaves unanswered', async () => {
    await using target = await receiver(({ body }) => (body.includes('slow') ? 'hang' : { body: 'quick' }))
    const relay = await serving({ forward: target.url, reply: '300ms' })
    expect(await send(relay, 'slow')).toMatchObject(OK)
    expect(await send(relay, 'quick')).toMatchObject({ status: 200, body: 'quick' })
  })

  it('gives what a command prints, if it succeeds', async () => {
    const routes = JSON.stringify([
      {
        match: 'shop/*',
        exec: 'case $RELAY_DELIVERY in bad) echo no; exit 1;; esac; echo \'{"a":1}\'',
        reply: true,
      },
    ])
    const relay = await here.serveWith({ env: { RELAY_ROUTES: routes } }, ...SOURCE)
    expect(await send(relay, 'good')).toMatchObject({ ...OK, body: '{"a":1}\n' })
    expect(await send(relay, 'bad')).toMatchObject(OK)
  })

  it('passes requests of other methods on, and stores none', async () => {
    await using target = await receiver(({ method, path: asked }) => ({
      headers: { 'WebHook-Allowed-Origin': 'a.example', 'Content-Type': 'text/plain' },
      body: `${method} ${asked}`,
    }))
    const relay = await serving({ forward: `${target.url}/hooks?key=1` })
    expect(await ask(relay, 'GET', '?own=abc')).toMatchObject({
      status: 200,
      type: 'text/plain',
      body: 'GET /hooks?key=1&own=abc',
      headers: { 'webhook-allowed-origin': 'a.example' },
    })
    expect(await ask(relay, 'PUT', '', '{"a":1}')).toMatchObject({ status: 200, body: 'PUT /hooks?key=1' })
    expect(await ask(relay, 'HEAD')).toMatchObject({ status: 200, body: '' })
    expect(await ask(relay, 'POST', '', '{}', false)).toMatchObject({ status: 401 })
    expect(target.received.map((each) => [each.method, valuesOf(each, 'Authorization')])).toEqual([
      ['GET', []],
      ['PUT', []],
      ['HEAD', []],
    ])
    expect(await ask(relay, 'PUT', '', 'x'.repeat(65_537))).toMatchObject({ status: 413 })
    expect(await linesOf(here)).toEqual([])
  })

  it('answers questions of other methods 503 without the program', async () => {
    await using target = await receiver('hang')
    const relay = await serving({ forward: target.url, reply: '200ms' })
    expect(await ask(relay, 'GET')).toMatchObject({
      status: 503,
      body: '{"error":"The program has not answered"}',
    })
  })

  it('is set for a source on the command line', async () => {
    await using target = await receiver({ body: 'own' })
    const relay = await here.serve(...SOURCE, '--forward', `shop/*=${target.url}`, '--reply', 'shop=2s')
    expect(await send(relay, 'd-1')).toMatchObject({ status: 200, body: 'own' })
    expect((await here.run('routes')).out).toContain('reply within 2s')
  })

  it.each([
    ['shop', [], '--reply shop: no route takes what shop sends'],
    ['shop', ['shop/a=1', 'shop/b=2'], 'both take what shop sends, and its sender gets one answer'],
    ['shop=1h', ['shop/*=1'], 'up to 30s'],
    ['Shop', ['shop/*=1'], 'must be a source'],
  ])('is no flag that no route, or several, would fit: --reply %s', async (text, targets, why) => {
    const forwards = targets.flatMap((each) => ['--forward', each])
    const { code, err } = await here.run('serve', ...SOURCE, ...forwards, '--reply', text)
    expect([code, err]).toEqual([2, expect.stringContaining(why)])
  })

  it.each([
    ['sentry', 1000, 'half a second', 500],
    ['hmac header=X-Signature event=$.type id=$.id', undefined, 'the usual time', 2500],
  ])('that is true waits as long as the sender does: %s', async (scheme, _, __, within) => {
    await using target = await receiver('hang')
    await using own = await place({ host: 'none', env: { [secretVariable('shop')]: SECRET } })
    const relay = await own.serve(
      '--source',
      `shop=${scheme}`,
      '--forward',
      `shop/*=${target.url}`,
      '--reply',
      'shop',
    )
    const body = JSON.stringify({ type: 'made', id: 'd-1' })
    const digest = createHmac('sha256', SECRET).update(body).digest('hex')
    const headers = {
      'x-signature': digest,
      'sentry-hook-signature': digest,
      'sentry-hook-resource': 'issue',
    }
    const start = performance.now()
    const response = await fetch(`${relay.address}/webhook/shop`, { method: 'POST', headers, body })
    expect([response.status, await response.text()]).toEqual([200, OK.body])
    expect(performance.now() - start).toBeGreaterThanOrEqual(within - 5)
    expect(performance.now() - start < 2400).toBe(within === 500)
  })

  it.each([
    [[{ match: 'shop/a' }, { match: 'shop/b' }], 'both have reply for shop'],
    [[{ match: 'shop/a' }, {}], 'both have reply for shop'],
    [[{ match: 'push' }, { match: 'issues' }], 'both have reply for the code host'],
    [
      [{ match: 'shop/a', reply: '31s' }],
      'routes\\[0\\].reply: must be true, or a duration such as 2500ms, up to 30s',
    ],
    [[{ match: 'shop/a', reply: 2500 }], 'routes\\[0\\].reply: must be true'],
  ])('is refused where a sender would get two answers, or none in time: %j', async (routes, why) => {
    const all = routes.map((route) => ({ forward: 'http://127.0.0.1:1', reply: true, ...route }))
    writeFileSync(path.join(here.cwd, 'relay.json'), JSON.stringify({ routes: all }))
    const { code, err } = await here.run('serve', ...SOURCE)
    expect([code, err]).toEqual([2, expect.stringMatching(why)])
  })
})
