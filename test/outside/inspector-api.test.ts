import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { clock } from '../kit/clock.js'
import { type DeliveryOptions, giteaDelivery, githubDelivery, post } from '../kit/delivery.js'
import { type Inspector, openInspector } from '../kit/inspector.js'
import { fill, linesOf } from '../kit/journal.js'
import { type Place, place, type Serving } from '../kit/place.js'

const GITEA = { RELAY_PROVIDER: 'gitea', RELAY_PROVIDER_URL: 'https://gitea.example' }

interface DeliveryPage {
  readonly deliveries: readonly {
    readonly n: number
    readonly targets: readonly { readonly tries: number }[]
  }[]
}

/** A part of what the inspector's API says of a delivery. */
interface Detail {
  readonly n: number
  readonly action: string | null
  readonly size: number
  readonly bodyKind: string
  readonly verdict: string
  readonly headers: readonly (readonly [string, string])[]
  readonly proof: unknown
}

let here: Place
let relay: Serving
let inspector: Inspector
beforeAll(async () => {
  here = await place({ host: 'none' })
  relay = await here.serve()
  inspector = await openInspector(here, relay)
})
afterAll(() => here[Symbol.asyncDispose]())

async function detailOf(opened: Inspector, n: number): Promise<Detail> {
  return JSON.parse(await (await opened.get(`deliveries/${n}`)).text())
}

const sum = (counts: readonly number[]): number => counts.reduce((all, count) => all + count, 0)

/** The number of the newest delivery. */
async function newest(): Promise<number> {
  const page: { deliveries: { n: number }[] } = JSON.parse(
    await (await inspector.get('deliveries?limit=1')).text(),
  )
  return page.deliveries[0]?.n ?? 0
}

describe('the list', () => {
  const line = (n: number) => ({
    n,
    receivedAt: expect.any(Number),
    event: 'push',
    action: null,
    repo: null,
    subject: 'main',
    size: 25,
    duplicates: 0,
    targets: [],
  })

  it('has the newest first, in pages', async () => {
    for (const id of ['a', 'b', 'c']) await relay.deliver({ id, body: '{"ref":"refs/heads/main"}' })
    expect(await inspector.json('deliveries?limit=2')).toEqual({ deliveries: [line(3), line(2)], next: 2 })
    expect(await inspector.json('deliveries?limit=2&before=2')).toEqual({ deliveries: [line(1)], next: null })
  })

  it('names the part of a query that cannot be read', async () => {
    const asked = async (query: string) => {
      const answer = await inspector.get(`deliveries?${query}`)
      return [answer.status, await answer.json()]
    }
    expect(await asked('since=x')).toEqual([
      400,
      { error: 'since: must be a duration such as 1h, a time such as 2026-01-31T12:00, or now' },
    ])
    expect(await asked('status=x')).toEqual([
      400,
      { error: 'status: must be one of failed, waiting, succeeded, none' },
    ])
    expect(await asked('limit=201')).toEqual([400, { error: 'limit: must be a whole number from 1 to 200' }])
  })
})

describe('a delivery that failed at first', () => {
  const [app, other] = ['*=http://127.0.0.1:1/app', '*=http://127.0.0.1:1/other']
  const retry = (at: number) => ({ outcome: 'retry', status: 500, answer: 'no', at }) as const
  const lost = { outcome: 'unreachable', status: null, error: 'connection refused' } as const

  it('has its tries, is found as failed and counted in its minute once; one that waited for a target is not', async () => {
    await using own = await place({ host: 'none' })
    own.configure({ forward: [app.slice(2), other.slice(2)] })
    await fill(own, [
      { id: 'plain', receivedAt: Date.now(), forwards: { [app]: { attempts: [{}] } } },
      {
        id: 'tried',
        receivedAt: Date.now(),
        forwards: {
          [app]: { attempts: [retry(1), retry(2), retry(3), { answer: 'yes' }], tries: 3 },
          [other]: {
            attempts: [retry(1), retry(2)],
            tries: 2,
            status: 'failed',
            reason: 'answered 500, 2 times',
          },
        },
      },
      { id: 'down', receivedAt: Date.now(), forwards: { [app]: { attempts: [lost, {}] } } },
    ])
    const opened = await openInspector(own, await own.serve())
    const targets = [
      { name: '127.0.0.1:1/app', status: 'succeeded', tries: 3, answer: '200', ms: 38 },
      {
        name: '127.0.0.1:1/other',
        status: 'failed',
        tries: 1,
        answer: '500',
        ms: 38,
        reason: 'answered 500, 2 times',
      },
    ]
    const { deliveries }: DeliveryPage = JSON.parse(await (await opened.get('deliveries')).text())
    expect(deliveries.map((line) => [line.n, line.targets.map(({ tries }) => tries)])).toEqual([
      [3, [0]],
      [2, [3, 1]],
      [1, [0]],
    ])
    expect(await opened.json('deliveries?status=failed')).toMatchObject({
      deliveries: [{ n: 2, targets }],
      next: null,
    })
    const detail: { targets: unknown[] } = JSON.parse(await (await opened.get('deliveries/2')).text())
    expect(detail.targets).toMatchObject([
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
    const { minutes }: { minutes: { received: number; failed: number }[] } = JSON.parse(
      await (await opened.get('timeline')).text(),
    )
    expect([sum(minutes.map(({ received }) => received)), sum(minutes.map(({ failed }) => failed))]).toEqual([
      3, 1,
    ])
    // `relay log` lists what failed in the end.
    expect((await linesOf(own, '--status', 'failed')).map(({ n }) => n)).toEqual([2])
    await fill(own, [{ id: 'late', forwards: { [app]: { attempts: [retry(1), {}], tries: 1 } } }])
    expect((await linesOf(own, '--status', 'failed')).map(({ n }) => n)).toEqual([2])
  })

  it('has no id for a target that no route has any more', async () => {
    await using own = await place({ host: 'none' })
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
    await using own = await place({ host: 'none' })
    const receivedAt = Date.now()
    const restored = (sha256: string) => ({ how: 'spaces', sha256 })
    await fill(own, [
      { id: 'a', receivedAt },
      { id: 'b', receivedAt, verifiedBy: 'previous' },
      { id: 'c', receivedAt, restored: restored('c') },
      { id: 'd', receivedAt, restored: { ...restored('d'), unproved: true } },
    ])
    const opened = await openInspector(own, await own.serve())
    const verdicts = [1, 2, 3, 4].map(async (n) => (await detailOf(opened, n)).verdict)
    expect(await Promise.all(verdicts)).toEqual([
      'verified with the current webhook secret',
      'verified with the previous webhook secret',
      'verified with the current webhook secret, its bytes restored (spaces)',
      'verified with the current webhook secret, its bytes restored (spaces), its event not proved',
    ])
  })
})

describe('what an inspector shows', () => {
  it('says what kind of body each delivery has, and which are next to it', async () => {
    await using own = await place({ host: 'none' })
    const serving = await own.serve()
    const opened = await openInspector(own, serving)
    const type = 'application/x-www-form-urlencoded'
    const receivedAt = Date.now()
    await fill(own, [
      { id: 'json', receivedAt, body: ' {"a":1}' },
      { id: 'form', receivedAt, body: 'a=1&payload=%7B%7D', headers: [['content-type', type]] },
      { id: 'text', receivedAt, body: '<a>' },
      { id: 'bytes', receivedAt, body: Uint8Array.of(0xff) },
    ])
    const kinds = [1, 2, 3, 4].map(async (n) => (await detailOf(opened, n)).bodyKind)
    expect(await Promise.all(kinds)).toEqual(['json', 'form', 'text', 'bytes'])
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
    expect(await detailOf(inspector, n)).toMatchObject({ action: '<b>', bodyKind: 'json' })
    for (const file of ['body', 'fixture']) {
      const download = await inspector.get(`deliveries/${n}/${file}`)
      expect(download.headers.get('content-disposition')).toMatch(/^attachment; filename="[\w.-]+"$/)
      expect(download.headers.get('x-content-type-options')).toBe('nosniff')
    }
    const exact = await inspector.get(`deliveries/${n}/body`)
    expect(Buffer.from(await exact.arrayBuffer()).toString()).toBe(body)
  })

  it('is whole for a body of 1 MiB in one line', async () => {
    const body = `"${'x'.repeat(1_048_574)}"`
    await relay.deliver({ body })
    const n = await newest()
    const shown = await (await inspector.get(`deliveries/${n}/body`)).text()
    expect([shown === body, (await detailOf(inspector, n)).size]).toEqual([true, 1_048_576])
  })

  it("is whole for 10,000 headers' worth of text", async () => {
    const headers = Array.from({ length: 10_000 }, (_, i) => [`X-Header-${i}`, 'value '.repeat(5)] as const)
    const before = await newest()
    await fill(here, [{ id: 'many', headers }])
    expect((await detailOf(inspector, before + 1)).headers).toEqual(headers)
    expect(await newest()).toBe(before + 1)
  })

  it('explains a refused request as relay verify does, marked as refused', async () => {
    const wrong = await relay.deliver({ id: 'wrong', secret: 'another secret', body: '{"a":"<b>"}' })
    expect(wrong.status).toBe(401)
    const { refused }: { refused: { id: number }[] } = JSON.parse(
      await (await inspector.get('refused')).text(),
    )
    expect(await inspector.json(`refused/${refused[0]?.id}`)).toMatchObject({
      kind: 'invalid_signature',
      status: 401,
      event: 'push',
      deliveryId: 'wrong',
      body: '{"a":"<b>"}',
      isCut: false,
      verdict: [expect.stringMatching(/^The signature does not match: /), 'It was answered 401.'],
    })
    const missing = await inspector.get('refused/99')
    expect(missing.status).toBe(404)
  })

  it('has a minute with a delivery and a refused request in the timeline, and no token in the state', async () => {
    const { minutes }: { minutes: { received: number; refused: number }[] } = JSON.parse(
      await (await inspector.get('timeline')).text(),
    )
    expect(minutes).toHaveLength(60)
    expect(minutes.reduce((sum, { received }) => sum + received, 0)).toBeGreaterThan(0)
    expect(minutes.reduce((sum, { refused }) => sum + refused, 0)).toBe(1)
    expect(await inspector.json('state')).toEqual({
      profile: 'default',
      provider: 'github',
      url: inspector.url,
      startedAt: expect.any(Number),
      deliveries: expect.any(Number),
      targets: [],
      ignored: [],
      tunnel: null,
      hooks: [],
      users: [],
    })
  })

  it('says that a delivery was removed while it was shown', async () => {
    const time = clock(Date.now())
    await using own = await place({ host: 'none' })
    const seams = { clock: time.now, limits: { sweep: 50 } }
    const serving = await own.serveWith({ seams }, '--keep', '10s')
    const opened = await openInspector(own, serving)
    await serving.deliver({ id: 'shown' })
    expect(await detailOf(opened, 1)).toMatchObject({ n: 1 })
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

  /** The proofs of deliveries that are sent one after the other to a relay of their own. */
  async function proofs(
    env: Record<string, string>,
    make: typeof githubDelivery,
    ...options: readonly DeliveryOptions[]
  ): Promise<readonly unknown[]> {
    await using own = await place({ host: 'none', env })
    const serving = await own.serve()
    const opened = await openInspector(own, serving)
    const found: unknown[] = []
    for (const [i, each] of options.entries()) {
      expect(await post(`${serving.address}/webhook`, make(each))).toMatchObject({ status: 200 })
      found.push((await detailOf(opened, i + 1)).proof)
    }
    return found
  }

  it('names the header that relay has checked, as it was sent', async () => {
    const { 'X-Hub-Signature-256': signature } = Object.fromEntries(githubDelivery().headers)
    const lowerCase = { 'X-Hub-Signature-256': undefined, 'x-hub-signature-256': signature }
    expect(await proofs({}, githubDelivery, {}, { set: lowerCase })).toEqual([
      [
        'X-Hub-Signature-256 is the HMAC-SHA256 of the exact bytes of the body with the current webhook secret.',
        SCOPE,
      ],
      [
        'x-hub-signature-256 is the HMAC-SHA256 of the exact bytes of the body with the current webhook secret.',
        SCOPE,
      ],
    ])
  })

  it('does not name the header of Gitea that relay does not check', async () => {
    const form = {
      type: 'application/x-www-form-urlencoded',
      body: `payload=${encodeURIComponent('{"ref":"main"}')}`,
      signed: '{"ref":"main"}',
    }
    const other = { 'X-Gitea-Signature': '0'.repeat(64) }
    expect(await proofs(GITEA, giteaDelivery, { set: other }, { ...form, set: other })).toEqual([
      [
        'X-Hub-Signature-256 is the HMAC-SHA256 of the exact bytes of the body with the current webhook secret.',
        SCOPE,
      ],
      [
        'X-Hub-Signature-256 is the HMAC-SHA256 of the payload inside the form with the current webhook secret.',
        SCOPE,
      ],
    ])
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
