import { request as httpRequest } from 'node:http'
import { beforeAll, describe, expect, it } from 'vitest'
import { clock } from '../kit/clock.js'
import { contentsOf } from '../kit/folder.js'
import { enter, openInspector, sessionOf } from '../kit/inspector.js'
import { place } from '../kit/place.js'
import { fresh, shared } from './fixture.js'

const MINUTE = 60_000
const DAY = 24 * 60 * MINUTE

const here = shared(() => place({ host: 'none' }))
const inspector = shared(async () => openInspector(here, await here.serve()))
let url: string
beforeAll(() => {
  ;({ url } = inspector)
})
/** Of a test's own. */
const own = fresh(() => place({ host: 'none' }))

const read = async (cookie: string, at = url): Promise<number> =>
  (await fetch(`${at}/inspect/api/deliveries`, { headers: { Cookie: cookie } })).status

describe('the page', () => {
  it('has the browser fetch the first list ahead only where that has a session of this relay', async () => {
    const isAhead = async (Cookie: string): Promise<boolean> => {
      const page = await fetch(`${url}/inspect/`, { headers: { Cookie } })
      return (await page.text()).includes('rel="preload"')
    }
    const cookies = [inspector.cookie, '', 'relay_inspect_1=of-another']
    expect(await Promise.all(cookies.map(isAhead))).toEqual([true, false, false])
  })
})

describe('one-time codes', () => {
  it('open one session each, however they are typed', async () => {
    const code = await inspector.code()
    expect(code).toMatch(/^(?:[0-9a-hjkmnp-tv-z]{4}-){3}[0-9a-hjkmnp-tv-z]{4}$/)
    const typed = ` ${code.toUpperCase().replaceAll('-', ' ').replaceAll('0', 'O')}`
    const { cookie, key } = await sessionOf(await enter(url, typed))
    expect(await read(cookie)).toBe(200)
    const change = await inspector.send('deliveries/1/forward', {}, { Cookie: cookie, 'X-Relay-Key': key })
    expect(change.status).toBe(404)
    const again = await enter(url, code)
    const error = 'That code is wrong, was used before, or is older than 5 minutes'
    expect([again.status, again.headers.get('set-cookie')]).toEqual([401, null])
    expect(await again.json()).toEqual({ error })
  })

  it('open a session that a restart does not end, with digests of its secrets in the profile', async () => {
    const time = clock(Date.now())
    const first = await own.serveWith({ seams: { clock: time.now } })
    const opened = await openInspector(own, first)
    const code = await opened.code()
    const { port } = new URL(first.address)
    await first.stop()
    const stored = contentsOf(own.home)
    expect(stored).toContain('inspect:')
    for (const secret of [opened.cookie.split('=')[1] ?? '', opened.key, code])
      expect(stored).not.toContain(secret)

    const second = own.startWith({ seams: { clock: time.now } }, 'serve', '--port', port, '--json')
    expect(await second.url()).toBe(opened.url)
    // A connection of before may still be in this process's pool.
    await expect.poll(() => read(opened.cookie, opened.url).catch(() => 0)).toBe(200)
    const change = async (): Promise<number> => (await opened.send('deliveries/1/forward', {})).status
    expect([await read(opened.cookie, opened.url), await change()]).toEqual([200, 404])
    expect((await enter(opened.url, code)).status).toBe(401)
    time.advance(DAY)
    expect([await read(opened.cookie, opened.url), await change()]).toEqual([401, 401])
  })

  it('open a session that relay reset ends', async () => {
    const first = await own.serve()
    const opened = await openInspector(own, first)
    expect(await read(opened.cookie, opened.url)).toBe(200)
    const { port } = new URL(first.address)
    await first.stop()
    expect((await own.run('reset', '--yes')).code).toBe(0)
    const second = own.start('serve', '--port', port, '--json')
    expect(await second.url()).toBe(opened.url)
    await expect.poll(() => read(opened.cookie, opened.url).catch(() => 0)).toBe(401)
  })

  it('open at most 32 sessions: of more, the oldest ends', async () => {
    const opened = await openInspector(own, await own.serve())
    const others: string[] = []
    for (let i = 0; i < 32; i++)
      others.push((await sessionOf(await enter(opened.url, await opened.code()))).cookie)
    expect(await read(opened.cookie, opened.url)).toBe(401)
    const statuses = await Promise.all(others.map((cookie) => read(cookie, opened.url)))
    expect(statuses).toEqual(others.map(() => 200))
  })

  it('end after 5 minutes, and sessions after a day', async () => {
    const time = clock(Date.now())
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
    const api = await fetch(`${url}/inspect/api/deliveries`)
    const closed = { error: 'Not open in this browser: run relay inspect' }
    expect([api.status, await api.json()]).toEqual([401, closed])
  })

  it('answers every address with the same page, which holds no data and needs no cookie', async () => {
    const deliveries = ['7', 'last', '7/compare/8'].map((each) => `deliveries/${each}`)
    const paths = ['', ...deliveries, 'refused', 'refused/3', 'state', 'open']
    const pages = await Promise.all(paths.map((each) => fetch(`${url}/inspect/${each}?event=push`)))
    expect(pages.map(({ status }) => status)).toEqual(paths.map(() => 200))
    const texts = await Promise.all(pages.map((each) => each.text()))
    expect(new Set(texts).size).toBe(1)
    const [page] = pages
    expect(page?.headers.get('content-type')).toBe('text/html; charset=utf-8')
    expect(page?.headers.get('content-security-policy')).toMatch(/^default-src 'none'; script-src 'self'; /)
    expect(page?.headers.get('cross-origin-opener-policy')).toBe('same-origin')
    expect(page?.headers.get('set-cookie')).toBe(null)
    expect((await fetch(`${url}/inspect/deliveries/x`)).status).toBe(404)
    const redirected = await fetch(`${url}/inspect`, { redirect: 'manual' })
    expect([redirected.status, redirected.headers.get('location')]).toEqual([302, '/inspect/'])
  })

  it('has a page for a browser that goes to an address that is not there, and JSON for others', async () => {
    for (const path of ['nothing', 'deliveries/abc', 'refused/1/2']) {
      const browser = await fetch(`${url}/inspect/${path}`, { headers: { Accept: 'text/html,*/*;q=0.8' } })
      expect([browser.status, browser.headers.get('content-type')]).toEqual([404, 'text/html; charset=utf-8'])
      expect(browser.headers.get('content-security-policy')).toMatch(
        /^default-src 'none'; script-src 'self'; /,
      )
      expect(await browser.text()).toMatch(/There is no such page[^]*href="\/inspect\/"/)
      const other = await fetch(`${url}/inspect/${path}`)
      expect([other.status, await other.json()]).toEqual([404, { error: 'Not found' }])
    }
    const api = await inspector.get('nothing', { Accept: 'text/html' })
    expect([api.status, await api.json()]).toEqual([404, { error: 'Not found' }])
    expect((await fetch(`${url}/inspect/nothing`, { method: 'POST' })).status).toBe(404)
  })

  it('answers a browser that has the page already with its tag alone', async () => {
    const page = await fetch(`${url}/inspect/`)
    expect(page.headers.get('cache-control')).toBe('no-cache')
    const headers = { 'If-None-Match': page.headers.get('etag') ?? '' }
    const again = await fetch(`${url}/inspect/state`, { headers })
    expect([again.status, await again.text()]).toEqual([304, ''])
  })

  it('gives a cookie that only this relay reads, and no redirect, along which a browser would not send it', async () => {
    const answer = await enter(url, await inspector.code())
    const { port } = new URL(url)
    expect(answer.status).toBe(200)
    expect(answer.headers.get('set-cookie')).toMatch(
      new RegExp(`^relay_inspect_${port}=[\\w-]{43}; Path=/inspect; HttpOnly; SameSite=Strict$`),
    )
    expect(answer.headers.get('content-security-policy')).toMatch(/^default-src 'none'; script-src 'self'; /)
    expect(answer.headers.get('cache-control')).toBe('no-store')
    expect(await answer.json()).toEqual({ key: expect.stringMatching(/^[\w-]{43}$/) })
  })

  it.each([
    ['another site', { Origin: 'http://localhost:3000' }],
    ['a file', { Origin: 'null' }],
    ['another port of this machine', { 'Sec-Fetch-Site': 'same-site' }],
  ])('takes no code from the page of %s', async (_, headers) => {
    const code = await inspector.code()
    expect((await enter(url, code, headers)).status).toBe(403)
    expect((await enter(url, code)).status).toBe(200)
  })

  it('refuses what the page of another site reads, also with the cookie', async () => {
    const paths = ['deliveries', 'deliveries/1', 'deliveries/1/body', 'refused', 'state', 'timeline', 'live']
    const tryTo = async (path: string, headers: Record<string, string>): Promise<number> => {
      const answer = await inspector.get(path, headers)
      await answer.body?.cancel()
      return answer.status
    }
    const others = [{ Origin: 'http://localhost:3000' }, { Origin: 'null' }]
    const sites = [{ 'Sec-Fetch-Site': 'cross-site' }, { 'Sec-Fetch-Site': 'same-site' }]
    for (const path of paths) {
      for (const headers of [...others, ...sites]) expect(await tryTo(path, headers)).toBe(403)
      const own = await tryTo(path, { Origin: url, 'Sec-Fetch-Site': 'same-origin' })
      expect(own).toBe(await tryTo(path, { 'Sec-Fetch-Site': 'none' }))
      expect([200, 404]).toContain(own)
    }
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
    const headers = { Cookie: cookie, 'X-Relay-Key': key }
    const forward = `${url}/inspect/api/deliveries/1/forward`
    expect((await fetch(forward, { method: 'POST', headers })).status).toBe(403)
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
  const named = shared(() => place({ host: 'none' }))
  const opened = shared(async () => {
    const hosts = ['--allow-host', 'relay.example', '--inspect-host', 'inspect.example']
    return openInspector(named, await named.serve(...hosts, '--public-url', 'https://public.example'))
  })

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
    const { address } = await own.serve('--no-inspect')
    expect((await fetch(`${address}/inspect/`)).status).toBe(404)
    expect(await (await fetch(`${address}/`)).text()).not.toContain('inspect')
    expect((await own.run('inspect', '--no-browser')).code).not.toBe(0)
  })
})

it('opening the page without a code is no line of the log, and a change without a session is', async () => {
  await using here = await place({ host: 'none' })
  const relay = await here.serve()
  const ask = async (path: string, init?: RequestInit): Promise<number> =>
    (await fetch(`${relay.address}/inspect/${path}`, init)).status
  const reads = ['api/deliveries', 'api/state', 'api/timeline', 'api/live', 'api/refused', 'api/deliveries/1']
  expect(await ask('')).toBe(200)
  expect(await Promise.all(reads.map((path) => ask(path)))).toEqual(reads.map(() => 401))
  // As in the line that it has: the port may contain the digits.
  expect(relay.err).not.toContain('was answered 401')
  const origin = { Origin: relay.address, 'Content-Type': 'application/json' }
  await ask('api/deliveries/1/forward', { method: 'POST', headers: origin, body: '{}' })
  await relay.says('was answered 401')
})
