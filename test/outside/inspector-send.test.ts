import { beforeEach, describe, expect, it } from 'vitest'
import { giteaDelivery, githubDelivery, post, SECRET, sign } from '../kit/delivery.js'
import { openInspector } from '../kit/inspector.js'
import { linesOf } from '../kit/journal.js'
import { place } from '../kit/place.js'
import { type Received, receiver, valuesOf } from '../kit/receiver.js'
import { fresh } from './fixture.js'

const target = fresh(() => receiver())
const other = fresh(() => receiver())
const here = fresh(async () => {
  const made = await place({ host: 'none' })
  made.configure({ forward: [`${target.url}/all`, `push=${other.url}/push?token=hidden`] })
  return made
})
const relay = fresh(() => here.serve())
const inspector = fresh(() => openInspector(here, relay))
beforeEach(async () => {
  await relay.deliver({ id: 'first', body: '{"zen":"one"}' })
  await Promise.all([target.has(1), other.has(1)])
})

const answerOf = async (response: Response) => [response.status, await response.json()]
const detail = async (n: number) => JSON.parse(await (await inspector.get(`deliveries/${n}`)).text())
/** Posts an edit of the first delivery, or what else there is to send. */
const send = async (edit: object) =>
  answerOf(await inspector.send('send', { from: 1, event: 'push', body: '{}', ...edit }))
const payloadOf = (form: Buffer): string => new URLSearchParams(form.toString()).get('payload') ?? ''

/** The value of a header of what a target has received. */
function header(received: Received | undefined, name: string): string | undefined {
  return received && valuesOf(received, name)[0]
}

/** Replaces the routes, and waits until the running relay has them. */
async function replaceRoutes(routes: object): Promise<void> {
  here.configure(routes)
  await relay.says('Reloaded the settings')
}

describe('forward again', () => {
  it('sends the same bytes to every target, although it succeeded there', async () => {
    expect(await answerOf(await inspector.send('deliveries/1/forward', {}))).toEqual([200, { n: 1 }])
    await Promise.all([target.has(2), other.has(2)])
    expect(target.received.map(({ body }) => body.toString())).toEqual(['{"zen":"one"}', '{"zen":"one"}'])
    expect(target.received.map((each) => header(each, 'x-relay-attempt'))).toEqual(['1', '2'])
  })

  it('sends to the one target that is named', async () => {
    const { routes } = await detail(1)
    expect(routes).toMatchObject([{ label: `${target.url}/all` }, { label: `push=${other.url}/push?…` }])
    expect(JSON.stringify(routes)).not.toContain('hidden')
    const targets = [routes[1].id]
    expect(await answerOf(await inspector.send('deliveries/1/forward', { targets }))).toEqual([200, { n: 1 }])
    await other.has(2)
    expect(target.received).toHaveLength(1)
  })

  it('to a target named before a restart is refused, until the page reads the delivery again', async () => {
    const { routes } = await detail(1)
    const targets = [routes[1]?.id]
    const { port } = new URL(relay.address)
    await relay.stop()
    await using _restarted = await here.serveWith({ built: true }, '--port', port)
    // A connection of before may still be in this process's pool.
    const read = () => inspector.get('deliveries/1').catch(() => undefined)
    await expect.poll(async () => (await read())?.status).toBe(200)
    const forward = async (body: object) => answerOf(await inspector.send('deliveries/1/forward', body))
    const edit = { from: 1, event: 'push', body: '{"zen":"two"}', target: routes[1]?.id }
    const gone = [400, { error: 'There is no such target any more. Reload the page' }]
    expect(await forward({ targets })).toEqual(gone)
    expect(await answerOf(await inspector.send('send', edit))).toEqual(gone)
    expect([target.received.length, other.received.length]).toEqual([1, 1])
    const { routes: again } = await detail(1)
    const labelsOf = (all: readonly { readonly label: string }[]): string[] => all.map(({ label }) => label)
    expect(labelsOf(again)).toEqual(labelsOf(routes))
    expect(await forward({ targets: [again[1]?.id] })).toEqual([200, { n: 1 }])
    await other.has(2)
    expect(target.received).toHaveLength(1)
  })

  it('refuses what is not there', async () => {
    const forward = async (path: string, body: unknown) => answerOf(await inspector.send(path, body))
    expect(await forward('deliveries/9/forward', {})).toEqual([404, { error: 'There is no #9' }])
    const gone = { error: 'There is no such target any more. Reload the page' }
    expect(await forward('deliveries/1/forward', { targets: ['x'] })).toEqual([400, gone])
    expect(await forward('deliveries/1/forward', { what: 1 })).toEqual([400, { error: 'Invalid request' }])
    await replaceRoutes({})
    const none = { error: '#1 matches no route: add one under State' }
    expect(await forward('deliveries/1/forward', {})).toEqual([409, none])
  })
})

describe('edit and send', () => {
  it('signs the edit, gives it an id of its own, marks it, and takes the routes', async () => {
    const edit = { event: 'issues', body: '{"zen":"two","action":"opened"}' }
    expect(await send(edit)).toEqual([200, { n: 2 }])
    await target.has(2)
    const sent = target.received[1]
    expect(sent?.body.toString()).toBe('{"zen":"two","action":"opened"}')
    expect(header(sent, 'x-github-event')).toBe('issues')
    expect(header(sent, 'x-relay-edited')).toBe('1')
    expect(header(sent, 'x-github-delivery')).not.toBe('first')
    expect(header(sent, 'x-hub-signature-256')).toBe(sign(SECRET, edit.body))
    expect(other.received).toHaveLength(1)
    expect(await detail(2)).toMatchObject({ n: 2, event: 'issues', action: 'opened', editedFrom: 1 })
  })

  it('goes to the target chosen only, and is in the journal all the same', async () => {
    const { routes } = await detail(1)
    expect(await send({ body: '{"zen":"three"}', target: routes[1].id })).toEqual([200, { n: 2 }])
    await other.has(2)
    expect(target.received).toHaveLength(1)
    const targets = [{ target: `push=${other.url}/push?…` }]
    expect((await linesOf(here))[1]).toMatchObject({ n: 2, targets })
  })

  it.each([
    ['github', githubDelivery, (body: Buffer) => body.toString()],
    ['gitea', giteaDelivery, payloadOf],
  ] as const)('keeps a form of %s a form, signed as its code host does', async (name, make, signed) => {
    const env = { RELAY_PROVIDER: name, RELAY_PROVIDER_URL: `https://${name}.example` }
    await using own = await place({ host: 'none', env })
    const serving = await own.serve('--forward', `${target.url}/all`)
    const opened = await openInspector(own, serving)
    const type = 'application/x-www-form-urlencoded'
    const body = `payload=${encodeURIComponent('{"zen":"one"}')}&other=1`
    const form = make({ type, body, signed: signed(Buffer.from(body)) })
    expect((await post(`${serving.address}/webhook`, form)).status).toBe(200)
    await target.has(2)
    const edited = '{"zen":"two & =+%\u00e9"}'
    expect((await opened.send('send', { from: 1, event: 'push', body: edited })).status).toBe(200)
    await target.has(3)
    const last = target.received[2]
    expect(header(last, 'content-type')).toBe(type)
    const sent = last?.body ?? Buffer.of()
    expect([...new URLSearchParams(sent.toString())]).toEqual([
      ['payload', edited],
      ['other', '1'],
    ])
    expect(header(last, 'x-hub-signature-256')).toBe(sign(SECRET, signed(sent)))
  })

  it('takes edited headers in place of those of the entry, and makes its own', async () => {
    const headers = [
      ['Content-Type', 'application/json'],
      ['X-Trace', 'caf\u00e9'],
      ['x-trace', ''],
    ]
    const edit = { event: 'star', headers, body: '{"zen":"two"}' }
    expect(await send(edit)).toEqual([200, { n: 2 }])
    await target.has(2)
    const sent = target.received[1]
    expect(sent && valuesOf(sent, 'x-trace')).toEqual(['caf\u00e9', ''])
    expect(header(sent, 'user-agent')).toBe(undefined)
    expect(header(sent, 'x-github-event')).toBe('star')
    expect(header(sent, 'x-hub-signature-256')).toBe(sign(SECRET, edit.body))
    expect(header(sent, 'x-relay-edited')).toBe('1')
    expect(sent && valuesOf(sent, 'x-github-delivery')).toHaveLength(1)
    const verdict = 'edited copy of #1, signed with the current webhook secret'
    expect(await detail(2)).toMatchObject({ editedFrom: 1, verdict })
  })

  it('is a form where the edited Content-Type says so', async () => {
    const type = 'application/x-www-form-urlencoded'
    const edit = { event: 'star', headers: [['Content-Type', type]], body: '{"zen":"&"}' }
    expect(await send(edit)).toEqual([200, { n: 2 }])
    await target.has(2)
    const sent = target.received[1]?.body ?? Buffer.of()
    expect([...new URLSearchParams(sent.toString())]).toEqual([['payload', '{"zen":"&"}']])
    expect(header(target.received[1], 'x-hub-signature-256')).toBe(sign(SECRET, sent))
    const back = { from: 2, event: 'star', headers: [['Content-Type', 'application/json']], body: '[]' }
    expect(await send(back)).toEqual([200, { n: 3 }])
    await target.has(3)
    expect(target.received[2]?.body.toString()).toBe('[]')
  })

  it.each(
    (
      'X-Hub-Signature-256 x-hub-signature X-Gitea-Signature X-GitHub-Delivery X-Gogs-Event X-Relay-Edited X-Relay-Attempt ' +
      'Content-Length Host Connection Transfer-Encoding Authorization Cookie Proxy-Authorization'
    ).split(' '),
  )('does not take the header %s from an edit', async (name) => {
    const error = `Not sent: relay makes the header "${name}" for each delivery`
    expect(await send({ headers: [[name, '1']] })).toEqual([400, { error }])
  })

  it.each([
    ['X A', '1'],
    ['', '1'],
    ['X-A', 'a\r\nX-B: b'],
    ['X-A', '\u2713'],
  ])('does not take the header %j with the value %j, which cannot be sent', async (name, value) => {
    const error = `Not sent: the header ${JSON.stringify(name)} is malformed`
    expect(await send({ headers: [[name, value]] })).toEqual([400, { error }])
  })

  it.each([
    [{ body: '{"zen":' }, 400, 'Not sent: the body is not JSON'],
    [{ event: 'a\nb' }, 400, 'Not sent: the header x-github-event is missing, repeated or malformed'],
    [
      { body: JSON.stringify('x'.repeat(1_048_576)) },
      413,
      'The body has 1048578 bytes, the limit is 1048576 (--max-body)',
    ],
  ])('says why the edit %.40j cannot be sent', async (edit, status, error) => {
    expect(await send(edit)).toEqual([status, { error }])
  })

  it('may be written in JSON with six bytes for each', async () => {
    const payload = JSON.stringify('x'.repeat(300_000))
    const escaped = Array.from(payload, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`).join('')
    const { url, cookie, key } = inspector
    const answer = await fetch(`${url}/inspect/api/send`, {
      method: 'POST',
      headers: { Cookie: cookie, 'X-Relay-Key': key, Origin: url },
      body: `{"from":1,"event":"star","body":"${escaped}"}`,
    })
    expect(await answerOf(answer)).toEqual([200, { n: 2 }])
    await target.has(2)
    expect(target.received[1]?.body.toString() === payload).toBe(true)
  })

  it('cannot be claimed by a delivery from outside', async () => {
    await relay.deliver({ id: 'liar', set: { 'X-Relay-Edited': '1' } })
    const { headers, editedFrom } = await detail(2)
    expect([JSON.stringify(headers).match(/x-relay-edited/i), editedFrom]).toEqual([null, undefined])
  })
})

describe('a target', () => {
  it('is never shown with the password or query in its address', async () => {
    const { routes } = await detail(1)
    const curl = `deliveries/1/curl?target=${routes[1].id}`
    for (const path of ['deliveries', 'deliveries/1', 'deliveries/1/fixture', curl, 'state', 'timeline']) {
      const answer = await inspector.get(path)
      expect([path, answer.status]).toEqual([path, 200])
      expect(await answer.text()).not.toContain('hidden')
    }
  })

  it('that is a command answers with its exit code', async () => {
    await replaceRoutes({ exec: ['star=echo no; exit 3'] })
    await relay.deliver({ id: 'starred', event: 'star' })
    const shown = { name: 'echo', label: 'exec:echo no; exit 3', match: 'star' }
    const attempt = { outcome: 'refused', status: 'exit 3', error: 'exit code 3', answer: 'no\n' }
    const failed = { status: 'failed', tries: 0, answer: 'exit 3', attempts: [attempt] }
    await expect.poll(async () => (await detail(2)).targets).toMatchObject([{ ...shown, ...failed }])
  })
})

describe('an attempt', () => {
  it('shows the answer: status, headers without credentials, and first bytes', async () => {
    const headers = { 'X-Reply': 'yes', 'Set-Cookie': 'session=secret' }
    target.answers({ status: 202, headers, body: 'done' })
    await relay.deliver({ id: 'second', event: 'ping' })
    await target.has(2)
    const shown = expect.arrayContaining([
      ['x-reply', 'yes'],
      ['set-cookie', '(not stored)'],
    ])
    const attempt = { outcome: 'succeeded', status: '202', count: 1, error: null, headers: shown }
    const times = { at: expect.any(Number), ms: expect.any(Number) }
    await expect
      .poll(async () => (await detail(2)).targets[0]?.attempts)
      .toEqual([{ ...attempt, ...times, answer: 'done', answerIsText: true }])
  })
})
