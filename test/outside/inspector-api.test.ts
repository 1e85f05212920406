import { describe, expect, it } from 'vitest'
import { clock } from '../kit/clock.js'
import { type DeliveryOptions, giteaDelivery, githubDelivery, post } from '../kit/delivery.js'
import { type Inspector, openInspector } from '../kit/inspector.js'
import { fill, linesOf } from '../kit/journal.js'
import { place } from '../kit/place.js'
import { fresh, shared } from './fixture.js'

const GITEA = { RELAY_PROVIDER: 'gitea', RELAY_PROVIDER_URL: 'https://gitea.example' }

const here = shared(() => place({ host: 'none' }))
const relay = shared(() => here.serve())
const inspector = shared(() => openInspector(here, relay))
/** Of a test's own. */
const own = fresh(() => place({ host: 'none' }))

/** What the inspector's API answers. */
const read = async (path: string, from: Inspector = inspector) =>
  JSON.parse(await (await from.get(path)).text())
/** A member of what it says of some deliveries. */
const each = (name: string, from: Inspector, ...numbers: number[]): Promise<unknown[]> =>
  Promise.all(numbers.map(async (n) => (await read(`deliveries/${n}`, from))[name]))
/** What happened in the last hour, by what it is. */
async function timeline(from: Inspector): Promise<Record<string, number>> {
  const { minutes }: { minutes: Record<string, number>[] } = await read('timeline', from)
  expect(minutes).toHaveLength(60)
  const sum = (name: string) => minutes.reduce((all, minute) => all + (minute[name] ?? 0), 0)
  return { received: sum('received'), failed: sum('failed'), refused: sum('refused') }
}
/** The number of the newest delivery. */
const newest = async (): Promise<number> => (await read('deliveries?limit=1')).deliveries[0]?.n ?? 0

describe('the list', () => {
  const of = { event: 'push', action: null, repo: null, subject: 'main', size: 25, duplicates: 0 }
  const line = (n: number) => ({ n, receivedAt: expect.any(Number), ...of, targets: [] })

  it('has the newest first, in pages', async () => {
    for (const id of ['a', 'b', 'c']) await relay.deliver({ id, body: '{"ref":"refs/heads/main"}' })
    expect(await inspector.json('deliveries?limit=2')).toEqual({ deliveries: [line(3), line(2)], next: 2 })
    expect(await inspector.json('deliveries?limit=2&before=2')).toEqual({ deliveries: [line(1)], next: null })
  })

  it.each([
    [
      'since=x',
      'since: must be a duration such as 1h, a day such as yesterday or monday, a time such as 2026-01-31T12:00, or now',
    ],
    ['status=x', 'status: must be one of failed, waiting, succeeded, none'],
    ['limit=201', 'limit: must be a whole number from 1 to 200'],
  ])('says that the part %s of a query cannot be read', async (query, error) => {
    const answer = await inspector.get(`deliveries?${query}`)
    expect([answer.status, await answer.json()]).toEqual([400, { error }])
  })
})

describe('a delivery that failed at first', () => {
  const [app, other] = ['*=http://127.0.0.1:1/app', '*=http://127.0.0.1:1/other']
  const retry = (at: number) => ({ outcome: 'retry', status: 500, answer: 'no', at }) as const
  const reason = 'answered 500, 2 times'
  const lost = { outcome: 'unreachable', status: null, error: 'connection refused' } as const

  it('has its tries, is found as failed and counted in its minute once; one that waited for a target is not', async () => {
    own.configure({ forward: [app.slice(2), other.slice(2)] })
    await fill(own, [
      { id: 'plain', receivedAt: Date.now(), forwards: { [app]: { attempts: [{}] } } },
      {
        id: 'tried',
        receivedAt: Date.now(),
        forwards: {
          [app]: { attempts: [retry(1), retry(2), retry(3), { answer: 'yes' }], tries: 3 },
          [other]: { attempts: [retry(1), retry(2)], tries: 2, status: 'failed', reason },
        },
      },
      { id: 'down', receivedAt: Date.now(), forwards: { [app]: { attempts: [lost, {}] } } },
    ])
    const opened = await openInspector(own, await own.serve())
    const targets = [
      { name: '127.0.0.1:1/app', status: 'succeeded', tries: 3, answer: '200', ms: 38 },
      { name: '127.0.0.1:1/other', status: 'failed', tries: 1, answer: '500', ms: 38, reason },
    ]
    expect(await opened.json('deliveries')).toMatchObject({
      deliveries: [
        { n: 3, targets: [{ tries: 0 }] },
        { n: 2, targets: [{ tries: 3 }, { tries: 1 }] },
        { n: 1, targets: [{ tries: 0 }] },
      ],
    })
    const failed = { deliveries: [{ n: 2, targets }], next: null }
    expect(await opened.json('deliveries?status=failed')).toMatchObject(failed)
    expect((await read('deliveries/2', opened)).targets).toMatchObject([
      {
        ...targets[0],
        id: expect.stringMatching(/^[0-9a-f]{16}$/),
        label: app.slice(2),
        match: '*',
        attempts: [
          { outcome: 'retry', status: '500', answer: 'no' },
          { outcome: 'retry', status: '500' },
          { outcome: 'retry', status: '500' },
          { outcome: 'succeeded', status: '200', answer: 'yes' },
        ],
      },
      { ...targets[1], attempts: [{ outcome: 'retry' }, { outcome: 'retry' }] },
    ])
    expect(await timeline(opened)).toEqual({ received: 3, failed: 1, refused: 0 })
    // `relay log` lists what failed in the end.
    expect((await linesOf(own, '--status', 'failed')).map(({ n }) => n)).toEqual([2])
    await fill(own, [{ id: 'late', forwards: { [app]: { attempts: [retry(1), {}], tries: 1 } } }])
    expect((await linesOf(own, '--status', 'failed')).map(({ n }) => n)).toEqual([2])
  })

  it('has no id for a target that no route has any more', async () => {
    await fill(own, [{ id: 'old', forwards: { 'push=http://127.0.0.1:1/gone': { attempts: [{}] } } }])
    const opened = await openInspector(own, await own.serve())
    expect(await opened.json('deliveries/1')).toMatchObject({
      targets: [{ name: '127.0.0.1:1', id: null, label: 'http://127.0.0.1:1/gone', match: null }],
      routes: [],
    })
  })
})

describe('the verdict', () => {
  it('says with which secret a delivery was verified, and how its bytes were restored', async () => {
    const receivedAt = Date.now()
    const restored = (sha256: string) => ({ how: 'spaces', sha256 })
    await fill(own, [
      { id: 'a', receivedAt },
      { id: 'b', receivedAt, verifiedBy: 'previous' },
      { id: 'c', receivedAt, restored: restored('c') },
      { id: 'd', receivedAt, restored: { ...restored('d'), unproved: true } },
    ])
    const opened = await openInspector(own, await own.serve())
    expect(await each('verdict', opened, 1, 2, 3, 4)).toEqual([
      'verified with the current webhook secret',
      'verified with the previous webhook secret',
      'verified with the current webhook secret, its bytes restored (spaces)',
      'verified with the current webhook secret, its bytes restored (spaces), its event not proved',
    ])
  })
})

describe('what an inspector shows', () => {
  it('says what kind of body each delivery has, and which are next to it', async () => {
    const opened = await openInspector(own, await own.serve())
    const type = 'application/x-www-form-urlencoded'
    const receivedAt = Date.now()
    await fill(own, [
      { id: 'json', receivedAt, body: ' {"a":1}' },
      { id: 'form', receivedAt, body: 'a=1&payload=%7B%7D', headers: [['content-type', type]] },
      { id: 'text', receivedAt, body: '<a>', provider: 'none' },
      { id: 'bytes', receivedAt, body: Uint8Array.of(0xff) },
    ])
    expect(await each('bodyKind', opened, 1, 2, 3, 4)).toEqual(['json', 'form', 'text', 'bytes'])
    expect(await opened.json('deliveries/4')).toMatchObject({ n: 4, older: 3, newer: null })
  })

  it('is JSON that no browser takes for a page, whatever the payload holds', async () => {
    const text = '</script><img src=x onerror=alert(1)>\u0000\u001b[2J\u202e'
    const body = JSON.stringify({ action: '<b>', text })
    await relay.deliver({ body, set: { 'X-Markup': '<script>alert(1)</script>' } })
    const n = await newest()
    const answer = await inspector.get(`deliveries/${n}`)
    expect(answer.headers.get('content-type')).toBe('application/json')
    expect(answer.headers.get('x-content-type-options')).toBe('nosniff')
    expect(answer.headers.get('content-security-policy')).toMatch(/^default-src 'none'; script-src 'self'; /)
    expect(answer.headers.get('cross-origin-resource-policy')).toBe('same-origin')
    expect(answer.headers.get('cache-control')).toBe('no-store')
    expect(await read(`deliveries/${n}`)).toMatchObject({ action: '<b>', bodyKind: 'json' })
    for (const file of ['body', 'fixture']) {
      const download = await inspector.get(`deliveries/${n}/${file}`)
      expect(download.headers.get('content-disposition')).toMatch(/^attachment; filename="[\w.-]+"$/)
      expect(download.headers.get('x-content-type-options')).toBe('nosniff')
    }
    const exact = await inspector.get(`deliveries/${n}/body`)
    expect(Buffer.from(await exact.arrayBuffer()).toString()).toBe(body)
  })

  it('explains a refused request as relay verify does, marked as refused', async () => {
    const wrong = await relay.deliver({ id: 'wrong', secret: 'another secret', body: '{"a":"<b>"}' })
    expect(wrong.status).toBe(401)
    const { refused } = await read('refused')
    const claims = { event: 'push', deliveryId: 'wrong', body: '{"a":"<b>"}', isCut: false }
    expect(await inspector.json(`refused/${refused[0].id}`)).toMatchObject({
      kind: 'invalid_signature',
      status: 401,
      ...claims,
      verdict: [expect.stringMatching(/^The signature does not match: /), 'It was answered 401.'],
    })
    expect((await inspector.get('refused/99')).status).toBe(404)
  })

  it('says of a refused request what is wrong once, and that a malformed signature is none', async () => {
    const opened = await openInspector(own, await own.serve())
    const address = `${opened.url}/webhook`
    await post(address, githubDelivery({ body: Uint8Array.of(0x22, 0xff, 0x22) }))
    await post(address, githubDelivery({ set: { 'X-Hub-Signature-256': 'sha256=0' } }))
    const verdict = ['The signature matches.', 'The body is not UTF-8.', 'It was answered 400.']
    expect(await opened.json('refused/1')).toMatchObject({ kind: 'invalid_event', verdict })
    const malformed = expect.stringMatching(/^X-Hub-Signature-256 is malformed, expected /)
    expect(await opened.json('refused/2')).toMatchObject({
      kind: 'no_signature',
      verdict: [malformed, 'It was answered 401.'],
    })
  })

  it('has a minute with a delivery and a refused request in the timeline, and no token in the state', async () => {
    const received = expect.toSatisfy((count: number) => count > 0)
    expect(await timeline(inspector)).toEqual({ received, failed: 0, refused: 1 })
    const of = { profile: 'default', provider: 'github', url: inspector.url, tunnel: null }
    const counts = { startedAt: expect.any(Number), deliveries: expect.any(Number) }
    const none = { targets: [], ignored: [], sources: [], hooks: [], users: [] }
    expect(await inspector.json('state')).toEqual({ ...of, ...counts, ...none })
  })

  it('says that a delivery was removed while it was shown', async () => {
    const time = clock(Date.now())
    const seams = { clock: time.now, limits: { sweep: 50 } }
    const serving = await own.serveWith({ seams }, '--keep', '10s')
    const opened = await openInspector(own, serving)
    await serving.deliver({ id: 'shown' })
    expect(await read('deliveries/1', opened)).toMatchObject({ n: 1 })
    time.advance(30_000)
    await serving.deliver({ id: 'after' })
    const gone = [404, { error: '#1 was removed by retention (--keep, --keep-max)' }]
    for (const path of ['deliveries/1', 'deliveries/1/body', 'deliveries/1/curl']) {
      const shown = async () => {
        const answer = await opened.get(path)
        return [answer.status, await answer.json().catch(() => undefined)]
      }
      await expect.poll(shown).toEqual(gone)
    }
    const again = await opened.send('deliveries/1/forward', {})
    expect([again.status, await again.json()]).toEqual(gone)
  })
})

describe('the proof of a signature', () => {
  const SCOPE = 'It covers the body only: headers, and so the event and the delivery id, are not signed.'

  const proof = (header: string, what: string): string[] => [
    `${header} is the HMAC-SHA256 of ${what} with the current webhook secret.`,
    SCOPE,
  ]
  const EXACT = 'the exact bytes of the body'

  /** The proofs of deliveries that are sent one after the other to a relay of their own. */
  async function proofs(
    env: Record<string, string>,
    ...options: readonly DeliveryOptions[]
  ): Promise<unknown[]> {
    const serving = await own.serveWith({ env })
    const make = env['RELAY_PROVIDER'] === 'gitea' ? giteaDelivery : githubDelivery
    for (const option of options)
      expect(await post(`${serving.address}/webhook`, make(option))).toMatchObject({ status: 200 })
    return each('proof', await openInspector(own, serving), ...options.map((_, i) => i + 1))
  }

  it('names the header that relay has checked, as it was sent', async () => {
    const { 'X-Hub-Signature-256': signature } = Object.fromEntries(githubDelivery().headers)
    const lowerCase = { 'X-Hub-Signature-256': undefined, 'x-hub-signature-256': signature }
    const names = ['X-Hub-Signature-256', 'x-hub-signature-256']
    expect(await proofs({}, {}, { set: lowerCase })).toEqual(names.map((name) => proof(name, EXACT)))
  })

  it('does not name the header of Gitea that relay does not check', async () => {
    const signed = '{"ref":"main"}'
    const form = { type: 'application/x-www-form-urlencoded', body: `payload=${encodeURIComponent(signed)}` }
    const set = { 'X-Gitea-Signature': '0'.repeat(64) }
    expect(await proofs(GITEA, { set }, { ...form, signed, set })).toEqual(
      [EXACT, 'the payload inside the form'].map((what) => proof('X-Hub-Signature-256', what)),
    )
  })
})

describe('the state', () => {
  it('names the hooks of the profile, and why one could not be made', async () => {
    const url = 'https://relay.example/webhook'
    await using own = await place({ signedIn: true })
    expect((await own.run('hook', 'add', 'octo/no-issues', '--url', url)).code).toBe(0)
    // The code host's answer was lost, so nobody knows whether there is one.
    expect((await own.run('hook', 'add', 'octo/fault-reset-after', '--url', url)).code).not.toBe(0)
    expect((await own.run('revoke')).code).toBe(0)
    const serving = await own.serve('--hook', 'octo/demo', '--public-url', 'https://relay.example')
    const { error: problem } = await serving.object({ type: 'hook', state: 'failed' })
    expect(problem).toMatch(/sign/i)
    expect(await (await openInspector(own, serving)).json('state')).toMatchObject({
      hooks: [
        { repo: 'octo/no-issues', url, permanent: true, problem: null },
        { repo: 'octo/demo', url: null, permanent: false, problem },
      ],
    })
  })
})
