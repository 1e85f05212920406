import { request as httpRequest } from 'node:http'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { clock } from '../kit/clock.js'
import { enter, type Inspector, openInspector, sessionOf } from '../kit/inspector.js'
import { type Place, place } from '../kit/place.js'

const MINUTE = 60_000
const DAY = 24 * 60 * MINUTE

let here: Place
let inspector: Inspector
let url: string
beforeAll(async () => {
  here = await place({ host: 'none' })
  inspector = await openInspector(here, await here.serve())
  ;({ url } = inspector)
})
afterAll(() => here[Symbol.asyncDispose]())

const read = async (cookie: string, at = url): Promise<number> =>
  (await fetch(`${at}/inspect/api/deliveries`, { headers: { Cookie: cookie } })).status

describe('one-time codes', () => {
  it('open one session each, however they are typed', async () => {
    const code = await inspector.code()
    expect(code).toMatch(/^(?:[0-9a-hjkmnp-tv-z]{4}-){3}[0-9a-hjkmnp-tv-z]{4}$/)
    const typed = ` ${code.toUpperCase().replaceAll('-', ' ').replaceAll('0', 'O')}`
    const { cookie, key } = await sessionOf(await enter(url, typed))
    expect(await read(cookie)).toBe(200)
    const change = await inspector.send('deliveries/1/forward', {}, { Cookie: cookie, 'X-Relay-Key': key })
    expect(change.status).toBe(404)
    expect((await enter(url, code)).status).toBe(401)
  })

  it('end after 5 minutes, and sessions after a day', async () => {
    const time = clock(Date.now())
    await using own = await place({ host: 'none' })
    const opened = await openInspector(own, await own.serveWith({ seams: { clock: time.now } }))
    const late = await opened.code()
    time.advance(5 * MINUTE)
    expect((await enter(opened.url, late)).status).toBe(401)
    const session = await sessionOf(await enter(opened.url, await opened.code()))
    const change = async (): Promise<number> => {
      const headers = { Cookie: session.cookie, 'X-Relay-Key': session.key }
      return (await opened.send('deliveries/1/forward', {}, headers)).status
    }
    time.advance(DAY - 1)
    expect([await read(session.cookie, opened.url), await change()]).toEqual([200, 404])
    time.advance(1)
    expect([await read(session.cookie, opened.url), await change()]).toEqual([401, 401])
  })

  it('are at most 8: of more, the oldest ends', async () => {
    const codes: string[] = []
    for (let i = 0; i < 9; i++) codes.push(await inspector.code())
    expect((await enter(url, codes[0] ?? '')).status).toBe(401)
    expect((await enter(url, codes[1] ?? '')).status).toBe(200)
  })

  it('open however many wrong ones came before, so that no page of another site locks the user out', async () => {
    const code = await inspector.code()
    const tryWrong = async (name: string): Promise<number> => {
      const answer = await enter(url, name)
      await answer.body?.cancel()
      return answer.status
    }
    for (let round = 0; round < 10; round++) {
      const wrong = await Promise.all(Array.from({ length: 30 }, (_, i) => tryWrong(`wrong-${round}-${i}`)))
      expect(wrong).toEqual(wrong.map(() => 401))
    }
    expect((await enter(url, code)).status).toBe(200)
  })
})

describe('opening the inspector', () => {
  it('needs a code from a program that reads the profile', async () => {
    const answer = await fetch(`${url}/instance/inspect`, { method: 'POST' })
    expect([answer.status, await answer.json()]).toEqual([404, { error: 'Not found' }])
  })

  it('answers 401 without the cookie: a page that says how, and JSON to programs', async () => {
    const headers = { Accept: 'text/html,*/*' }
    const page = await fetch(`${url}/inspect/`, { headers })
    expect([page.status, page.headers.get('content-type')]).toEqual([401, 'text/html; charset=UTF-8'])
    expect(await page.text()).toMatch(/relay inspect[^]*<form [^>]*method="post" action="\/inspect\/open"/)
    const api = await fetch(`${url}/inspect/api/deliveries`)
    expect([api.status, await api.json()]).toEqual([
      401,
      { error: 'Not open in this browser: run relay inspect' },
    ])
  })

  it('gives a cookie that only this relay reads, and a page that is no redirect', async () => {
    const answer = await enter(url, await inspector.code())
    const { port } = new URL(url)
    expect(answer.status).toBe(200)
    expect(answer.headers.get('set-cookie')).toMatch(
      new RegExp(`^relay_inspect_${port}=[\\w-]{43}; Path=/inspect; HttpOnly; SameSite=Strict$`),
    )
    expect(answer.headers.get('content-security-policy')).toMatch(/^default-src 'none'; script-src 'self'; /)
    expect(answer.headers.get('cache-control')).toBe('no-store')
    // Only a browser without scripts is sent on by the page itself, and so without the key.
    expect(await answer.text()).toMatch(/<noscript><meta http-equiv="refresh" [^>]*><\/noscript>/)
  })

  it('takes a code once', async () => {
    const code = await inspector.code()
    expect((await enter(url, code)).status).toBe(200)
    const again = await enter(url, code)
    expect([again.status, again.headers.get('set-cookie')]).toEqual([401, null])
    expect(await again.text()).toContain('That code is wrong, was used before, or is older than 5 minutes.')
  })

  it('takes no code from the page of another site', async () => {
    const code = await inspector.code()
    expect((await enter(url, code, { Origin: 'http://localhost:3000' })).status).toBe(403)
    expect((await enter(url, code, { Origin: 'null' })).status).toBe(200)
  })

  it('reads with the cookie, and changes only with the key of this session and from this origin', async () => {
    const { cookie, key } = await sessionOf(await enter(url, await inspector.code()))
    expect(await read(cookie)).toBe(200)
    const tryTo = async (headers: Record<string, string>) =>
      (await inspector.send('deliveries/1/forward', {}, { Cookie: cookie, ...headers })).status
    expect(await tryTo({ 'X-Relay-Key': key })).toBe(404)
    expect(await tryTo({ 'X-Relay-Key': '' })).toBe(403)
    expect(await tryTo({ 'X-Relay-Key': inspector.key })).toBe(403)
    expect(await tryTo({ 'X-Relay-Key': cookie.split('=')[1] ?? '' })).toBe(403)
    expect(await tryTo({ 'X-Relay-Key': key, Origin: 'http://localhost:3000' })).toBe(403)
    expect(await tryTo({ 'X-Relay-Key': key, Origin: 'null' })).toBe(403)
    expect(await tryTo({ 'X-Relay-Key': key, Cookie: '' })).toBe(401)
  })
})

/** The status of a GET with these headers as they are, which fetch would not send. */
function statusOf(address: string, headers: readonly string[]): Promise<number> {
  return new Promise((resolve, reject) => {
    httpRequest(address, { headers: [...headers], setHost: false })
      .on('error', reject)
      .on('response', (response) => resolve(response.resume().statusCode ?? 0))
      .end()
  })
}

describe('the Host of a request for the inspector', () => {
  let own: Place
  let opened: Inspector
  beforeAll(async () => {
    own = await place({ host: 'none' })
    const hosts = ['--allow-host', 'relay.example', '--inspect-host', 'inspect.example']
    const relay = await own.serve(...hosts, '--public-url', 'https://public.example')
    opened = await openInspector(own, relay)
  })
  afterAll(() => own[Symbol.asyncDispose]())

  it.each([
    ['127.0.0.1', 200],
    ['localhost', 200],
    ['a.localhost:1', 401],
    ['[::1]:8787', 401],
    ['inspect.example', 401],
    ['relay.example', 403],
    ['public.example', 403],
    ['10.0.0.1', 403],
    ['evil.example', 403],
  ])('%s is answered %i', async (host, status) => {
    const { port } = new URL(opened.url)
    const name = status === 200 ? `${host}:${port}` : host
    const headers = ['Host', name, ...(status === 200 ? ['Cookie', opened.cookie] : [])]
    expect(await statusOf(`${opened.url}/inspect/api/deliveries`, headers)).toBe(status)
  })

  it('is the one that a proxy was asked for, where it says so', async () => {
    const sent = ['Host', new URL(opened.url).host, 'Cookie', opened.cookie]
    const address = `${opened.url}/inspect/api/deliveries`
    expect(await statusOf(address, [...sent, 'X-Forwarded-Host', 'tunnel.example'])).toBe(403)
    expect(await statusOf(address, [...sent, 'X-Forwarded-Host', 'inspect.example'])).toBe(200)
  })

  it('may be any that the service answers, elsewhere', async () => {
    expect(await statusOf(`${opened.url}/health`, ['Host', 'relay.example'])).toBe(200)
  })
})

describe('an inspector that is off', () => {
  it('is not there, and no code opens it', async () => {
    await using own = await place({ host: 'none' })
    const { address } = await own.serve('--no-inspect')
    expect((await fetch(`${address}/inspect/`)).status).toBe(404)
    expect(await (await fetch(`${address}/`)).text()).not.toContain('inspect')
    expect((await own.run('inspect', '--no-browser')).code).not.toBe(0)
  })
})
