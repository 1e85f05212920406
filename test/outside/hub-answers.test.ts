import { createHmac, randomUUID } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { githubDelivery, post, SECRET, secretVariable } from '../kit/delivery.js'
import { hub, joining } from '../kit/hub.js'
import { linesOf } from '../kit/journal.js'
import { place } from '../kit/place.js'
import { receiver } from '../kit/receiver.js'
import { objects } from './example.js'
import { fresh } from './fixture.js'

const CONNECTED = { type: 'tunnel', state: 'connected', roundTrip: 'ok' }
const TOKEN = 'S3cr3t_Key_0123456789abcdef'

const server = fresh(() => hub())
const here = fresh(() => place({ host: 'none' }))

describe('a sender that asks something of a workstation behind a hub', () => {
  it.each([
    ['meta', 'GET', `?hub.mode=subscribe&hub.challenge=1158201444&hub.verify_token=TOKEN`, '1158201444'],
    ['dropbox', 'GET', '?challenge=abc', 'abc'],
    ['trello', 'HEAD', '', ''],
    ['slack', 'POST', '', '{"challenge":"3eZbrw1aBm2rZg"}'],
  ])('is answered its handshake: %s %s', async (name, method, query, answer) => {
    const env = { ...here.env, ...(await joining(server)), [secretVariable(name)]: TOKEN }
    const relay = await here.serveWith({ env }, '--tunnel', '--source', name)
    const url = String((await relay.object({ ...CONNECTED, source: name }))['url'])
    const token = createHmac('sha256', TOKEN).update('verify token').digest('hex')
    const shown = await here.runWith({ env }, 'source', 'list', '--json')
    const own = /"verifyToken":"([^"]+)"/.exec(shown.out)?.[1] ?? token
    const body = JSON.stringify({ type: 'url_verification', challenge: '3eZbrw1aBm2rZg' })
    const time = String(Math.floor(Date.now() / 1000))
    const signature = `v0=${createHmac('sha256', TOKEN).update(`v0:${time}:${body}`).digest('hex')}`
    const signed = { 'x-slack-request-timestamp': time, 'x-slack-signature': signature }
    const asked = await fetch(`${url}${query.replace('TOKEN', own)}`, {
      method,
      ...(method === 'POST' && { body, headers: { 'content-type': 'application/json', ...signed } }),
    })
    expect({ status: asked.status, text: await asked.text() }).toEqual({ status: 200, text: answer })
    await relay.stop()
    // It is stored nowhere.
    expect(await linesOf(here)).toEqual([])
  })

  it('gets the answer of its program within its time, and 200 after it', async () => {
    let answer: 'hang' | { status: number; body: string } = { status: 202, body: 'deploying' }
    await using target = await receiver(() => answer)
    here.configure({ routes: [{ match: 'push', forward: target.url, reply: '1500ms' }] })
    const env = { ...here.env, ...(await joining(server)) }
    const relay = await here.serveWith({ env }, '--tunnel')
    const { url } = await relay.object(CONNECTED)
    const delivered = await fetch(String(url), request())
    expect([delivered.status, await delivered.text()]).toEqual([202, 'deploying'])
    expect(delivered.headers.get('content-security-policy')).toBe('sandbox')
    answer = 'hang'
    const late = await fetch(String(url), request())
    expect([late.status, await late.json()]).toEqual([200, { ok: true }])
    await relay.stop()
    // Nobody is there: it waits.
    const away = await fetch(String(url), request())
    expect([away.status, await away.json()]).toEqual([200, { ok: true }])
    expect(await linesOf(here)).toHaveLength(2)
  })

  it('is told the refusal where relay answers for itself, and 200 where it is not asked', async () => {
    const env = { ...here.env, ...(await joining(server)) }
    const relay = await here.serveWith({ env }, '--tunnel')
    const { url } = await relay.object(CONNECTED)
    expect((await post(String(url), githubDelivery({ secret: 'another' }))).status).toBe(200)
    await relay.says('a tunnel message was refused: ')
    await relay.stop()
    expect(await linesOf(here)).toEqual([])
  })

  it('that asks or posts beside the sources gets 200, and the reason is at the workstation', async () => {
    const env = { ...here.env, ...(await joining(server)), [secretVariable('stripe')]: SECRET }
    const relay = await here.serveWith({ env }, '--tunnel', '--source', 'stripe')
    const url = String((await relay.object({ ...CONNECTED, source: 'github' }))['url'])
    const asked = [
      ['GET', `${url}?q=1`, 405, 'GET with q in its query: no handshake of github'],
      ['PUT', url, 405, 'PUT: no handshake of github'],
      [
        'POST',
        url.replace(/github$/, 'typo'),
        404,
        'POST to /typo: the payload URL must end in /github or /stripe',
      ],
      [
        'GET',
        url.replace(/github$/, 'typo'),
        404,
        'GET to /typo: the payload URL must end in /github or /stripe',
      ],
      ['POST', `${url}/more`, 404, 'POST to /github/more: the payload URL must end in /github or /stripe'],
    ] as const
    for (const [method, address] of asked) expect((await fetch(address, { method })).status).toBe(200)
    await expect
      .poll(async () => objects((await here.run('log', '--refused', '--json')).out))
      .toEqual([
        ...asked.map(([, , status, reason]) =>
          expect.objectContaining({ type: 'refused', via: 'tunnel', status, reason }),
        ),
        expect.objectContaining({ type: 'refused_counts', wrong_path: 3 }),
      ])
    await relay.says(`a tunnel message was refused: ${asked[0][3]} (`)
    await relay.says(`a tunnel message was refused: ${asked[2][3]} (`)
  })
})

describe('a web page that posts to a source of the scheme none', () => {
  it.each(['directly', 'through a hub'])('%s: is refused, and listed with the reason', async (way) => {
    const env = { ...here.env, ...(await joining(server)) }
    const relay = await here.serveWith({ env }, '--tunnel', '--allow-unsigned', '--source', 'open=none')
    const { url } = await relay.object({ ...CONNECTED, source: 'open' })
    const address = way === 'directly' ? `${relay.address}/webhook/open` : String(url)
    const headers = { origin: 'https://page.example', 'content-type': 'application/json' }
    const { status } = await fetch(address, { method: 'POST', headers, body: '{"event":"push"}' })
    expect(status).toBe(way === 'directly' ? 403 : 200)
    const reason = 'Deliveries that nothing proves are not taken from a browser'
    const via = way === 'directly' ? 'http' : 'tunnel'
    await expect
      .poll(async () => objects((await here.run('log', '--refused', '--json')).out))
      .toEqual([
        expect.objectContaining({ type: 'refused', source: 'open', via, status: 403, reason }),
        expect.objectContaining({ type: 'refused_counts', no_signature: 1 }),
      ])
    await relay.says(`${reason} (`)
    expect(await linesOf(here)).toEqual([])
  })
})

function request(): RequestInit {
  const { headers, body } = githubDelivery({ id: randomUUID(), secret: SECRET })
  return { method: 'POST', headers: headers.map(([name, value]) => [name, value]), body: body.toString() }
}
