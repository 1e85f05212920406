import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, it } from 'vitest'
import { fixtureOf, signedRequest, startRelay } from 'webhook-relay/testing'
import { githubDelivery, post } from '../kit/delivery.js'
import { openInspector } from '../kit/inspector.js'
import { place, type Serving } from '../kit/place.js'
import { receiver } from '../kit/receiver.js'
import { smee } from '../kit/smee.js'
import { fresh, json } from './fixture.js'

const here = fresh(() => place({ host: 'none' }))

/** Queries as senders write them, each of which the target gets as it is. */
const QUERIES = ['job=abc&token=t1', 'a=%2F%20+b', 'flag', 'x=1&x=2&', 'q=a?b=c/d', 'u=~!$()*,;:@[]|^{}']

async function push(relay: Serving, query: string, id = 'delivery'): Promise<void> {
  const answer = await post(`${relay.address}/webhook?${query}`, githubDelivery({ id, event: 'push' }))
  expect(answer.status).toBe(200)
}

describe('the query of the payload URL', () => {
  it.each(QUERIES)('%s reaches an address behind its own query, and a command', async (query) => {
    await using target = await receiver()
    const exec = 'exec=*=printf %s "$RELAY_QUERY"'
    const relay = await here.serve(
      '--forward',
      target.url,
      '--forward',
      `${target.url}/own?k=1`,
      '--exec',
      exec,
    )
    await push(relay, query)
    await relay.objects({ type: 'attempt', n: 1 }, 3)
    expect(target.received.map((each) => each.path).toSorted()).toEqual([`/?${query}`, `/own?k=1&${query}`])
    const shown = await json(here.run('show', '1', '--json'))
    expect([
      shown['query'],
      shown['attempts'].find((each: { answer: string }) => each.answer !== '').answer,
    ]).toEqual([query, query])
    await relay.stop()
  })

  it('is shown, exported, and sent again with the fixture', async () => {
    await using target = await receiver()
    const relay = await here.serve()
    await push(relay, 'job=abc&token=t1', 'with')
    await post(`${relay.address}/webhook`, githubDelivery({ id: 'without', event: 'push' }))
    expect((await here.run('show', '1')).out).toMatch(/^query {7}job=abc&token=t1$/m)
    expect((await here.run('show', '2')).out).not.toMatch(/^query/m)
    expect((await json(here.run('show', '2', '--json')))['query']).toBe(null)
    const exported = await here.run('export', '1')
    expect(JSON.parse(exported.out)).toMatchObject({ query: 'job=abc&token=t1' })
    expect(JSON.parse((await here.run('export', '2')).out)).not.toHaveProperty('query')
    const file = path.join(here.cwd, 'fixture.json')
    writeFileSync(file, exported.out)
    await here.run('replay', file, '--to', `${target.url}/hooks?own=1`)
    await here.run('replay', '1', '--to', `${target.url}/hooks`)
    expect(target.received.map((each) => each.path)).toEqual([
      '/hooks?own=1&job=abc&token=t1',
      '/hooks?job=abc&token=t1',
    ])
    expect((await here.run('replay', file)).code).toBe(0)
    expect(await json(here.run('show', 'last', '--json'))).toMatchObject({ n: 3, query: 'job=abc&token=t1' })
  })

  it('is replaced by --redact where it names a secret', async () => {
    const relay = await here.serve()
    await push(relay, 'job=abc&token=canary-of-a-token')
    const { query } = JSON.parse((await here.run('export', '1', '--redact')).out)
    expect(query).toMatch(/^job=abc&token=/)
    expect(query).not.toContain('canary')
  })

  it('is in the inspector, its command of curl, and an edited copy', async () => {
    const relay = await here.serve()
    await push(relay, 'job=a%22b%20c')
    const opened = await openInspector(here, relay)
    expect(await opened.json('deliveries/1')).toMatchObject({ query: 'job=a%22b%20c' })
    expect(await (await opened.get('deliveries/1/curl')).text()).toContain(
      `${relay.address}/webhook?job=a%22b%20c`,
    )
    expect((await opened.send('send', { from: 1, event: 'push', body: '{"ref":"x"}' })).status).toBe(200)
    expect(await opened.json('deliveries/2')).toMatchObject({ query: 'job=a%22b%20c', editedFrom: 1 })
  })

  it('comes through a tunnel, as the server has parsed it', async () => {
    await using server = await smee()
    const relay = await here.serve('--tunnel', server.channel)
    await relay.object({ type: 'tunnel', state: 'connected', roundTrip: 'ok' })
    await post(`${server.channel}?job=abc&x=1&x=2`, githubDelivery({ event: 'push' }))
    await relay.object({ type: 'delivery', n: 1 })
    expect(await json(here.run('show', '1', '--json'))).toMatchObject({ query: 'job=abc&x=1&x=2' })
  })

  it('is that of a fixture of the testing kit', async () => {
    const fixture = { ...fixtureOf('push'), query: 'job=abc' }
    expect(signedRequest(fixture, { url: 'http://localhost/hooks?own=1' }).url).toBe(
      'http://localhost/hooks?own=1&job=abc',
    )
    await using relay = await startRelay({ exec: ['*=printf %s "$RELAY_QUERY"'] })
    const { query, attempts } = await relay.deliver(fixture)
    expect([query, attempts[0]?.answer]).toEqual(['job=abc', 'job=abc'])
  })
})

it('the address of a redirect is kept and shown, wherever it stands among the headers of the answer', async () => {
  const long = Object.fromEntries(Array.from({ length: 8 }, (_, i) => [`x-long-${i}`, 'x'.repeat(700)]))
  const location = 'https://other.example/login?next=%2Fhooks'
  await using target = await receiver({ status: 302, headers: { ...long, location } })
  const relay = await here.serve('--forward', target.url)
  await push(relay, 'a=b')
  await relay.object({ type: 'attempt', n: 1 })
  const [attempt] = (await json(here.run('show', '1', '--json')))['attempts']
  expect(attempt.headers).toContainEqual({ name: 'location', value: location })
  expect((await here.run('show', '1')).out).toContain(
    'a redirect to https://other.example/login that is not followed',
  )
})
