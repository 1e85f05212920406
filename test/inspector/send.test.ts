import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { DeliveryDetail } from '../../src/inspector/api.js'
import { verify } from '../helpers/sign.js'
import { GITEA, GITHUB, giteaDelivery, githubDelivery, post, SECRETS } from '../helpers/delivery.js'
import { startTarget, type TargetServer } from '../helpers/target.js'
import { openRig, type Rig } from './rig.js'

let target: TargetServer
let other: TargetServer
let rig: Rig

beforeEach(async () => {
  ;[target, other] = await Promise.all([startTarget(), startTarget()])
  const forward = [`${target.url}/all`, `push=${other.url}/push?token=hidden`]
  rig = await openRig({ routes: { forward, exec: [], ignore: [] } })
  await rig.deliver({ id: 'first', body: '{"zen":"one"}' })
  await Promise.all([target.has(1), other.has(1)])
})

afterEach(async () => {
  await rig[Symbol.asyncDispose]()
  await target[Symbol.asyncDispose]()
  await other[Symbol.asyncDispose]()
})

const answerOf = async (response: Response) => [response.status, await response.json()]
const detail = async (n: number): Promise<DeliveryDetail> =>
  JSON.parse(await (await rig.get(`deliveries/${n}`)).text())
const header = (headers: readonly (readonly [string, string])[], name: string) =>
  headers.find(([each]) => each.toLowerCase() === name)?.[1]

const payloadOf = (form: Buffer): string => new URLSearchParams(form.toString()).get('payload') ?? ''

describe('forward again', () => {
  it('sends the same bytes to every target, although it succeeded there', async () => {
    expect(await answerOf(await rig.send('deliveries/1/forward', {}))).toEqual([200, { n: 1 }])
    await Promise.all([target.has(2), other.has(2)])
    expect(target.received.map(({ body }) => body.toString())).toEqual(['{"zen":"one"}', '{"zen":"one"}'])
    expect(target.received.map(({ headers }) => header(headers, 'x-relay-attempt'))).toEqual(['1', '2'])
  })

  it('sends to the one target that is named', async () => {
    const { routes } = await detail(1)
    expect(routes.map(({ label }) => label)).toEqual([`${target.url}/all`, `push=${other.url}/push?…`])
    expect(JSON.stringify(routes)).not.toContain('hidden')
    const targets = [routes[1]?.id]
    expect(await answerOf(await rig.send('deliveries/1/forward', { targets }))).toEqual([200, { n: 1 }])
    await other.has(2)
    expect(target.received).toHaveLength(1)
  })

  it('refuses what is not there', async () => {
    const forward = async (path: string, body: unknown) => answerOf(await rig.send(path, body))
    expect(await forward('deliveries/9/forward', {})).toEqual([404, { error: 'There is no #9' }])
    expect(await forward('deliveries/1/forward', { targets: ['x'] })).toEqual([
      400,
      { error: 'There is no such target any more. Reload the page' },
    ])
    expect(await forward('deliveries/1/forward', { what: 1 })).toEqual([400, { error: 'Invalid request' }])
    rig.serving.replaceRoutes({ forward: [], exec: [], ignore: [] })
    expect(await forward('deliveries/1/forward', {})).toEqual([
      409,
      { error: '#1 matches no route: add one with --forward or --exec' },
    ])
  })
})

describe('edit and send', () => {
  it('signs the edit, gives it an id of its own, marks it, and takes the routes', async () => {
    const sent = await rig.send('send', { from: 1, event: 'issues', body: '{"zen":"two","action":"opened"}' })
    expect(await answerOf(sent)).toEqual([200, { n: 2 }])
    await target.has(2)
    const { headers, body } = target.received[1] ?? { headers: [], body: Buffer.of() }
    expect(body.toString()).toBe('{"zen":"two","action":"opened"}')
    expect(header(headers, 'x-github-event')).toBe('issues')
    expect(header(headers, 'x-relay-edited')).toBe('1')
    expect(header(headers, 'x-github-delivery')).not.toBe('first')
    expect(verify(header(headers, 'x-hub-signature-256'), body, SECRETS)).toBe('current')
    expect(other.received).toHaveLength(1)
    expect(await detail(2)).toMatchObject({ n: 2, event: 'issues', action: 'opened', editedFrom: 1 })
  })

  it('goes to the target chosen only, and is in the journal all the same', async () => {
    const { routes } = await detail(1)
    const request = { from: 1, event: 'push', body: '{"zen":"three"}', target: routes[1]?.id }
    expect(await answerOf(await rig.send('send', request))).toEqual([200, { n: 2 }])
    await other.has(2)
    expect(target.received).toHaveLength(1)
    expect(Object.keys(await rig.serving.relay.journal.forwards(2))).toEqual([
      `push=${other.url}/push?token=hidden`,
    ])
  })

  it.each([
    ['github', GITHUB, githubDelivery, (body: Buffer) => body],
    ['gitea', GITEA, giteaDelivery, (body: Buffer) => Buffer.from(payloadOf(body))],
  ] as const)(
    'keeps a form of %s a form, signed as its code host does',
    async (name, provider, make, signed) => {
      await using own = await openRig({
        provider: name,
        providerUrl: provider.url,
        routes: { forward: [`${target.url}/all`], exec: [], ignore: [] },
      })
      const type = 'application/x-www-form-urlencoded'
      const body = `payload=${encodeURIComponent('{"zen":"one"}')}&other=1`
      const form = make({ type, body, signed: signed(Buffer.from(body)).toString() })
      expect((await post(`${own.url}/webhook`, form)).status).toBe(200)
      await target.has(2)
      const edited = '{"zen":"two & =+%\u00e9"}'
      expect((await own.send('send', { from: 1, event: 'push', body: edited })).status).toBe(200)
      await target.has(3)
      const last = target.received[2]
      expect(header(last?.headers ?? [], 'content-type')).toBe(type)
      const sent = Buffer.from(last?.body ?? '')
      expect([...new URLSearchParams(sent.toString())]).toEqual([
        ['payload', edited],
        ['other', '1'],
      ])
      expect(verify(header(last?.headers ?? [], 'x-hub-signature-256'), signed(sent), SECRETS)).toBe(
        'current',
      )
    },
  )

  it('says why an edit cannot be sent', async () => {
    expect(await answerOf(await rig.send('send', { from: 1, event: 'push', body: '{"zen":' }))).toEqual([
      400,
      { error: 'Not sent: the body is not JSON' },
    ])
    expect(await answerOf(await rig.send('send', { from: 1, event: 'a\nb', body: '{}' }))).toEqual([
      400,
      { error: 'Not sent: the header x-github-event is missing, repeated or malformed' },
    ])
    const huge = JSON.stringify('x'.repeat(1_048_576))
    expect(await answerOf(await rig.send('send', { from: 1, event: 'push', body: huge }))).toEqual([
      413,
      { error: 'The body has 1048578 bytes, the limit is 1048576 (--max-body)' },
    ])
  })

  it('cannot be claimed by a delivery from outside', async () => {
    await rig.deliver({ id: 'liar', set: { 'X-Relay-Edited': '1' } })
    const { headers, editedFrom } = await detail(2)
    expect([header(headers, 'x-relay-edited'), editedFrom]).toEqual([undefined, undefined])
  })
})

describe('a target', () => {
  it('is never shown with the password or query in its address', async () => {
    const { routes } = await detail(1)
    const curl = `deliveries/1/curl?target=${routes[1]?.id}`
    for (const path of ['deliveries', 'deliveries/1', 'deliveries/1/fixture', curl, 'state', 'timeline']) {
      const answer = await rig.get(path)
      expect([path, answer.status]).toEqual([path, 200])
      expect(await answer.text()).not.toContain('hidden')
    }
  })

  it('that is a command answers with its exit code', async () => {
    rig.serving.replaceRoutes({ forward: [], exec: ['star=echo no; exit 3'], ignore: [] })
    await rig.deliver({ id: 'starred', event: 'star' })
    await expect
      .poll(async () => (await detail(2)).attempts)
      .toMatchObject([{ outcome: 'refused', status: 'exit 3', error: 'exit code 3', answer: 'no\n' }])
    expect((await detail(2)).targets).toMatchObject([{ status: 'failed', answer: 'exit 3' }])
  })
})

describe('an attempt', () => {
  it('shows the answer: status, headers without credentials, and first bytes', async () => {
    target.answers({
      status: 202,
      headers: { 'X-Reply': 'yes', 'Set-Cookie': 'session=secret' },
      body: 'done',
    })
    await rig.deliver({ id: 'second', event: 'ping' })
    await target.has(2)
    await expect
      .poll(async () => (await detail(2)).attempts)
      .toEqual([
        {
          at: expect.any(Number),
          target: new URL(target.url).host,
          outcome: 'succeeded',
          status: '202',
          ms: expect.any(Number),
          count: 1,
          error: null,
          headers: expect.arrayContaining([
            ['x-reply', 'yes'],
            ['set-cookie', '(not stored)'],
          ]),
          answer: 'done',
          answerIsText: true,
        },
      ])
  })
})
