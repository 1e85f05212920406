import { request as httpRequest } from 'node:http'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { DeliveryDetail, DeliveryPage, RefusedDetail } from '../../src/inspector/api.js'
import { serve } from '../../src/serve/serve.js'
import { githubDelivery, post } from '../helpers/delivery.js'
import { delivery } from '../journal/rig.js'
import { openRig, type Rig, SETTINGS } from './rig.js'

/** The status of a GET with these headers as they are, which fetch would not send. */
function statusOf(url: string, headers: readonly string[]): Promise<number> {
  return new Promise((resolve, reject) => {
    httpRequest(url, { headers: [...headers], setHost: false })
      .on('error', reject)
      .on('response', (response) => resolve(response.resume().statusCode ?? 0))
      .end()
  })
}

describe('the Host of a request for the inspector', () => {
  let rig: Rig
  beforeAll(async () => {
    rig = await openRig({
      allowedHosts: ['relay.example'],
      publicUrl: 'https://public.example',
      inspectHosts: ['inspect.example'],
    })
  })
  afterAll(() => rig[Symbol.asyncDispose]())

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
    const { port } = new URL(rig.url)
    const name = status === 200 ? `${host}:${port}` : host
    const headers = ['Host', name, ...(status === 200 ? ['Cookie', rig.cookie] : [])]
    expect(await statusOf(`${rig.url}/inspect/api/deliveries`, headers)).toBe(status)
  })

  it('is the one that a proxy was asked for, where it says so', async () => {
    const own = ['Host', new URL(rig.url).host, 'Cookie', rig.cookie]
    const url = `${rig.url}/inspect/api/deliveries`
    expect(await statusOf(url, [...own, 'X-Forwarded-Host', 'tunnel.example'])).toBe(403)
    expect(await statusOf(url, [...own, 'X-Forwarded-Host', 'inspect.example'])).toBe(200)
  })

  it('may be any that the service answers, elsewhere', async () => {
    expect(await statusOf(`${rig.url}/health`, ['Host', 'relay.example'])).toBe(200)
  })
})

describe('an inspector that is off', () => {
  it('is not there, and no code opens it', async () => {
    await using closed = await serve({ ...SETTINGS, inspect: false })
    expect((await fetch(`${closed.url}/inspect/`)).status).toBe(404)
    expect(await (await fetch(`${closed.url}/`)).text()).not.toContain('inspect')
  })
})

describe('what an inspector shows', () => {
  let rig: Rig
  beforeAll(async () => {
    rig = await openRig()
  })
  afterAll(() => rig[Symbol.asyncDispose]())

  const detail = async (n: number): Promise<DeliveryDetail> =>
    JSON.parse(await (await rig.get(`deliveries/${n}`)).text())
  const newest = async (): Promise<number> => {
    const page: DeliveryPage = JSON.parse(await (await rig.get('deliveries?limit=1')).text())
    return page.deliveries[0]?.n ?? 0
  }

  it('is JSON that no browser takes for a page, whatever the payload holds', async () => {
    const text = '</script><img src=x onerror=alert(1)>\u0000\u001b[2J\u202e'
    const body = JSON.stringify({ action: '<b>', text })
    await rig.deliver({ body, set: { 'X-Markup': '<script>alert(1)</script>' } })
    const n = await newest()
    const answer = await rig.get(`deliveries/${n}`)
    expect(answer.headers.get('content-type')).toBe('application/json')
    expect(answer.headers.get('x-content-type-options')).toBe('nosniff')
    expect(answer.headers.get('content-security-policy')).toMatch(/^default-src 'none'; script-src 'self'; /)
    expect(answer.headers.get('cross-origin-resource-policy')).toBe('same-origin')
    expect(answer.headers.get('cache-control')).toBe('no-store')
    expect(await detail(n)).toMatchObject({ action: '<b>', body, json: body })
    for (const file of ['body', 'fixture']) {
      const download = await rig.get(`deliveries/${n}/${file}`)
      expect(download.headers.get('content-disposition')).toMatch(/^attachment; filename="[\w.-]+"$/)
      expect(download.headers.get('x-content-type-options')).toBe('nosniff')
    }
    expect(Buffer.from(await (await rig.get(`deliveries/${n}/body`)).arrayBuffer()).toString()).toBe(body)
  })

  it('is whole for a body of 1 MiB in one line', async () => {
    const body = `"${'x'.repeat(1_048_574)}"`
    await rig.deliver({ body })
    const { body: shown, size } = await detail(await newest())
    expect([shown, size]).toEqual([body, 1_048_576])
  })

  it("is whole for 10,000 headers' worth of text", async () => {
    const headers = Array.from({ length: 10_000 }, (_, i) => [`X-Header-${i}`, 'value '.repeat(5)] as const)
    const { n } = await rig.serving.relay.journal.append(delivery('many', { headers }))
    expect((await detail(n)).headers).toEqual(headers)
    const page: DeliveryPage = JSON.parse(await (await rig.get('deliveries')).text())
    expect(page.deliveries[0]?.n).toBe(n)
  })

  it('says that a delivery was removed while it was shown', async () => {
    const n = await newest()
    await rig.deliver({ id: 'after' })
    await rig.serving.relay.journal.sweep({ keep: 0, keepMax: 0, now: Date.now() + 1000 })
    const gone = { error: `#${n} was removed by retention (--keep, --keep-max)` }
    for (const path of [`deliveries/${n}`, `deliveries/${n}/body`, `deliveries/${n}/curl`]) {
      const answer = await rig.get(path)
      expect([answer.status, await answer.json()]).toEqual([404, gone])
    }
    const again = await rig.send(`deliveries/${n}/forward`, {})
    expect([again.status, await again.json()]).toEqual([404, gone])
  })

  it('explains a refused request as relay verify does, marked as refused', async () => {
    const wrong = githubDelivery({ id: 'wrong', secret: 'another secret', body: '{"a":"<b>"}' })
    expect((await post(`${rig.url}/webhook`, wrong)).status).toBe(401)
    const { refused }: { refused: { id: number }[] } = JSON.parse(await (await rig.get('refused')).text())
    const entry: RefusedDetail = JSON.parse(await (await rig.get(`refused/${refused[0]?.id}`)).text())
    expect(entry).toMatchObject({
      kind: 'invalid_signature',
      status: 401,
      event: 'push',
      deliveryId: 'wrong',
      body: '{"a":"<b>"}',
      isCut: false,
      verdict: [expect.stringMatching(/^The signature does not match: /), 'It was answered 401.'],
    })
    const missing = await rig.get('refused/99')
    expect(missing.status).toBe(404)
  })

  it('has a minute with a delivery and a refused request in the timeline, and no token in the state', async () => {
    const { minutes }: { minutes: { received: number; refused: number }[] } = JSON.parse(
      await (await rig.get('timeline')).text(),
    )
    expect(minutes).toHaveLength(60)
    expect(minutes.reduce((sum, { received }) => sum + received, 0)).toBeGreaterThan(0)
    expect(minutes.reduce((sum, { refused }) => sum + refused, 0)).toBe(1)
    expect(await rig.json('state')).toEqual({
      profile: 'test',
      provider: 'github',
      url: rig.url,
      startedAt: expect.any(Number),
      deliveries: expect.any(Number),
      targets: [],
      ignored: [],
      tunnel: null,
      hooks: [],
      users: [],
    })
  })

  it('names the part of a query that cannot be read', async () => {
    const asked = async (query: string) => {
      const answer = await rig.get(`deliveries?${query}`)
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
