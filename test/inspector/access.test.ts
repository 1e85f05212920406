import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { CODE_LIFE_MS, createAccess, MAX_CODES, SESSION_LIFE_MS } from '../../src/inspector/access.js'
import { enter, openRig, type Rig, sessionOf } from './rig.js'

describe('one-time codes', () => {
  const clocked = () => {
    const clock = { now: 1_000_000 }
    return { clock, access: createAccess(() => clock.now) }
  }

  it('open one session each, however they are typed', () => {
    const { access } = clocked()
    const code = access.issueCode()
    expect(code).toMatch(/^(?:[0-9a-hjkmnp-tv-z]{4}-){3}[0-9a-hjkmnp-tv-z]{4}$/)
    const session = access.open(` ${code.toUpperCase().replaceAll('-', ' ').replaceAll('0', 'O')}`)
    expect(access.mayRead(session?.cookie)).toBe(true)
    expect(access.mayChange(session?.cookie, session?.key)).toBe(true)
    expect(access.open(code)).toBeUndefined()
  })

  it('end after 5 minutes, and sessions after a day', () => {
    const { access, clock } = clocked()
    const late = access.issueCode()
    clock.now += CODE_LIFE_MS
    expect(access.open(late)).toBeUndefined()
    const session = access.open(access.issueCode())
    clock.now += SESSION_LIFE_MS - 1
    expect(access.mayRead(session?.cookie)).toBe(true)
    clock.now += 1
    expect(access.mayRead(session?.cookie)).toBe(false)
    expect(access.mayChange(session?.cookie, session?.key)).toBe(false)
  })

  it('are few: of more, the oldest ends', () => {
    const { access } = clocked()
    const codes = Array.from({ length: MAX_CODES + 1 }, () => access.issueCode())
    expect(access.open(codes[0] ?? '')).toBeUndefined()
    expect(access.open(codes[1] ?? '')).toBeDefined()
  })

  it('open however many wrong ones came before, so that no page of another site locks the user out', () => {
    const { access } = clocked()
    const code = access.issueCode()
    for (let i = 0; i < 1000; i++) expect(access.open(`wrong-${i}`)).toBeUndefined()
    expect(access.open(code)).toBeDefined()
  })

  it('give sessions that know nothing of each other', () => {
    const { access } = clocked()
    const [one, other] = [access.open(access.issueCode()), access.open(access.issueCode())]
    expect(access.mayChange(one?.cookie, other?.key)).toBe(false)
    expect(access.mayChange(one?.cookie, one?.cookie)).toBe(false)
    expect(access.mayChange(undefined, one?.key)).toBe(false)
  })
})

describe('opening the inspector', () => {
  let rig: Rig
  beforeAll(async () => {
    rig = await openRig()
  })
  afterAll(() => rig[Symbol.asyncDispose]())

  it('needs a code from a program that reads the profile', async () => {
    const answer = await fetch(`${rig.url}/instance/inspect`, { method: 'POST' })
    expect([answer.status, await answer.json()]).toEqual([404, { error: 'Not found' }])
  })

  it('answers 401 without the cookie: a page that says how, and JSON to programs', async () => {
    const headers = { Accept: 'text/html,*/*' }
    const page = await fetch(`${rig.url}/inspect/`, { headers })
    expect([page.status, page.headers.get('content-type')]).toEqual([401, 'text/html; charset=UTF-8'])
    expect(await page.text()).toMatch(/relay inspect[^]*<form [^>]*method="post" action="\/inspect\/open"/)
    const api = await fetch(`${rig.url}/inspect/api/deliveries`)
    expect([api.status, await api.json()]).toEqual([
      401,
      { error: 'Not open in this browser: run relay inspect' },
    ])
  })

  it('gives a cookie that only this relay reads, and a page that is no redirect', async () => {
    const answer = await enter(rig.url, await rig.code())
    const { port } = new URL(rig.url)
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
    const code = await rig.code()
    expect((await enter(rig.url, code)).status).toBe(200)
    const again = await enter(rig.url, code)
    expect([again.status, again.headers.get('set-cookie')]).toEqual([401, null])
    expect(await again.text()).toContain('That code is wrong, was used before, or is older than 5 minutes.')
  })

  it('takes no code from the page of another site', async () => {
    const code = await rig.code()
    expect((await enter(rig.url, code, { Origin: 'http://localhost:3000' })).status).toBe(403)
    expect((await enter(rig.url, code, { Origin: 'null' })).status).toBe(200)
  })

  it('reads with the cookie, and changes only with the key and from this origin', async () => {
    const { cookie, key } = await sessionOf(await enter(rig.url, await rig.code()))
    expect((await fetch(`${rig.url}/inspect/api/deliveries`, { headers: { Cookie: cookie } })).status).toBe(
      200,
    )
    const tryTo = async (headers: Record<string, string>) =>
      (await rig.send('deliveries/1/forward', {}, { Cookie: cookie, ...headers })).status
    expect(await tryTo({ 'X-Relay-Key': key })).not.toBe(403)
    expect(await tryTo({ 'X-Relay-Key': '' })).toBe(403)
    expect(await tryTo({ 'X-Relay-Key': rig.key })).toBe(403)
    expect(await tryTo({ 'X-Relay-Key': key, Origin: 'http://localhost:3000' })).toBe(403)
    expect(await tryTo({ 'X-Relay-Key': key, Origin: 'null' })).toBe(403)
    expect(await tryTo({ 'X-Relay-Key': key, Cookie: '' })).toBe(401)
  })
})
