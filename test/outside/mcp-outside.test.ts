import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import { createServer as createTcpServer } from 'node:net'
import { describe, expect, it } from 'vitest'
import { Closing } from '../kit/closing.js'
import { githubDelivery, post, SECRET, sign } from '../kit/delivery.js'
import { codingAgent, type CodingAgent, type Fields } from '../kit/mcp.js'
import { hostVariables, place, type Place, type Serving } from '../kit/place.js'
import { listening, portOf } from '../kit/ports.js'
import { shared } from './fixture.js'

/** What a stranger writes, with the name of the place: in the form of a word, since most places take no other. */
const MARK = 'Zqxignorealltheabove'
const mark = (at: string): string => `${MARK}${at}`

/** A result or an error as the client got it, without what is under `fromOutside`. */
function withoutOutside(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), (name, value: unknown) =>
      name === 'fromOutside' ? undefined : value,
    )
  } catch {
    return text
  }
}

/** Calls a tool, with its progress, and returns all that the client got: `own`, without what is marked, and `whole`. */
async function heard({ client }: CodingAgent, name: string, given: Fields) {
  const progress: unknown[] = []
  const onprogress = (each: unknown): void => void progress.push(each)
  const result = await client
    .callTool({ name, arguments: given }, { onprogress })
    .catch((error: unknown) => ({
      content: [{ type: 'text' as const, text: String(error) }],
      structuredContent: undefined,
    }))
  const texts = result.content.map((each) => (each.type === 'text' ? each.text : JSON.stringify(each)))
  const all = [...texts, JSON.stringify(result.structuredContent ?? {}), JSON.stringify(progress)]
  return { own: all.map(withoutOutside).join('\n'), whole: all.join('\n') }
}

/** Calls tools, and expects no mark but under `fromOutside`; the places whose marks were there. */
async function placesSeen(
  agent: CodingAgent,
  calls: Iterable<readonly [tool: string, given: Fields]>,
): Promise<Set<string>> {
  const seen = new Set<string>()
  const leaked: unknown[] = []
  for (const [tool, given] of calls) {
    const { own, whole } = await heard(agent, tool, given)
    const pattern = new RegExp(`${MARK}[a-z]*`, 'gi')
    for (const [found] of whole.matchAll(pattern)) seen.add(found.slice(MARK.length).toLowerCase())
    // What is moved under `fromOutside` is missing where it was, which the tool's schema must allow.
    if (/validation/i.test(own) || own.toLowerCase().includes(MARK.toLowerCase()))
      leaked.push([tool, given, own])
  }
  expect(leaked).toEqual([])
  return seen
}

type Answering = (method: string, path: string, response: ServerResponse) => void

/** A server that answers as it likes, with its own reason phrase. */
async function server(answering: Answering) {
  const http = createServer((request, response) => {
    request.resume().on('end', () => answering(request.method ?? '', request.url ?? '', response))
  })
  const { port, down } = await listening(http)
  return { url: `http://127.0.0.1:${port}`, [Symbol.asyncDispose]: down }
}

/** One that does not speak HTTP: it writes this text, and ends the connection. */
async function noHttp(text: string) {
  const tcp = createTcpServer((socket) => {
    socket.on('error', () => {}).once('data', () => socket.end(text, () => socket.destroy()))
  })
  await once(tcp.listen(0, '127.0.0.1'), 'listening')
  return {
    url: `http://127.0.0.1:${portOf(tcp)}`,
    async [Symbol.asyncDispose]() {
      tcp.close()
      await once(tcp, 'close')
    },
  }
}

const HEX = 'a'.repeat(64)

/** Deliveries and refused requests with a mark in every place that a sender has. */
async function sendAll(relay: Serving): Promise<void> {
  const body = JSON.stringify({
    action: mark('action'),
    ref: `refs/heads/${mark('ref')}`,
    repository: { full_name: `${mark('owner')}/${mark('repo')}`, html_url: mark('url') },
    sender: { login: mark('sender') },
    issue: { number: 1, title: mark('title'), [mark('key')]: mark('value') },
    __proto__: null,
  })
  const set = { [`X-${mark('header')}`]: mark('headervalue'), 'User-Agent': mark('agent') }
  const usual = { event: mark('event'), id: mark('id'), hook: mark('hook'), body, set }
  const ok = { status: 200 }
  const url = `${relay.address}/webhook?${mark('query')}`
  const type = `application/json; charset=${mark('type')}`
  expect(await post(url, githubDelivery({ ...usual, type }))).toMatchObject(ok)
  expect(await post(url, githubDelivery({ event: 'push', id: 'p', body, set }))).toMatchObject(ok)
  const stripe = JSON.stringify({ id: mark('stripeid'), type: mark('stripetype'), object: 'event' })
  const at = Math.floor(Date.now() / 1000)
  const signature = `t=${at},v1=${sign(SECRET, `${at}.${stripe}`).slice('sha256='.length)}`
  const signed = { headers: [['Stripe-Signature', signature]] as const, body: Buffer.from(stripe) }
  expect(await post(`${relay.address}/webhook/stripe`, signed)).toMatchObject(ok)
  // Refused: each for another reason, which may quote a name of a header.
  const unsigned = { 'X-Hub-Signature-256': undefined }
  const refused = [
    githubDelivery({ ...usual, secret: 'another' }),
    githubDelivery({ ...usual, set: { ...unsigned, [`X-${mark('signature')}-Signature`]: `sha256=${HEX}` } }),
    githubDelivery({ ...usual, set: { ...unsigned, [`X-${mark('digest')}-Hmac`]: HEX } }),
    githubDelivery({ ...usual, set: { 'X-Hub-Signature-256': mark('malformed') } }),
    githubDelivery({ ...usual, event: `${mark('badevent')}!` }),
    githubDelivery({ ...usual, body: `{"${mark('badjson')}"` }),
    githubDelivery({ ...usual, type: 'application/x-www-form-urlencoded', body: `payload=${mark('form')}` }),
  ]
  for (const request of refused)
    expect((await post(`${relay.address}/webhook`, request)).status).toBeGreaterThanOrEqual(400)
  for (const path of [`/${mark('path')}`, `/webhook/${mark('source')}`, `/webhook/stripe/${mark('subpath')}`])
    expect((await post(relay.address + path, githubDelivery(usual))).status).toBeGreaterThanOrEqual(400)
  const late = { headers: [[`X-${mark('time')}-Timestamp`, `${at}`]] as const, body: Buffer.from(stripe) }
  expect(await post(`${relay.address}/webhook/stripe`, late)).toMatchObject({ status: 401 })
}

const ENTRIES = ['1', '2', '3', 'last']
const REFUSED = Array.from({ length: 14 }, (_, i) => i + 1)

/** Every tool, with what it is called with: a tool that is new is missing here. */
function callsOf(to: string): Readonly<Record<string, readonly Fields[]>> {
  const target = { target: 'octo/demo#1' }
  const entries = ENTRIES.map((entry) => ({ entry }))
  return {
    list_deliveries: [
      {},
      { refused: true },
      { source: 'stripe' },
      { event: ['issues'] },
      { status: 'failed' },
    ],
    show_delivery: [
      ...entries,
      ...entries.map((given) => ({ ...given, page: 1 })),
      { entry: '1', path: 'issue.title' },
      { entry: '1', path: 'issue.titel' },
      { entry: '99' },
    ],
    wait_for_delivery: [
      { match: '*', since: '1h', timeout: '1s' },
      { match: '*', since: '1h', timeout: '5s', forwarded: true },
      { match: 'stripe/*', since: '1h', timeout: '5s', forwarded: true },
      { match: 'ping', timeout: '1s' },
    ],
    explain_refused: REFUSED.map((id) => ({ id })),
    show_routes: [{}, ...entries],
    relay_state: [{}],
    replay_delivery: [
      ...entries.map((given) => ({ ...given, to })),
      { entry: '1', to, set: ['issue.title.x=1', 'sender=1'] },
      { entry: '3', to, set: ['a.b.c=1'] },
      { entry: '2' },
      { entry: '3' },
    ],
    skip_delivery: entries,
    trigger_delivery: [
      { list: true },
      { event: 'push' },
      { event: 'issues.opened', to },
      { source: 'stripe', event: 'invoice.paid' },
    ],
    comment: [
      { ...target, text: 'hello' },
      { ...target, text: 'hello', sticky: 'ci' },
      { ...target, text: 'x', dryRun: true },
    ],
    merge: [
      target,
      { ...target, dryRun: true },
      { ...target, ifGreen: true },
      { ...target, method: 'squash' },
    ],
    react: [
      { ...target, reaction: 'heart' },
      { ...target, reaction: 'heart', dryRun: true },
    ],
  }
}

function* flat(calls: ReturnType<typeof callsOf>): Generator<readonly [string, Fields]> {
  for (const [tool, all] of Object.entries(calls)) for (const given of all) yield [tool, given]
}

describe('what a sender and a target write', () => {
  const here: Place = shared(() =>
    place({ host: 'none', env: { RELAY_SOURCE_STRIPE_SECRET: SECRET, RELAY_TUNNEL: undefined } }),
  )

  it('is under fromOutside alone, in every tool', async () => {
    await using closing = new Closing()
    const json = { 'content-type': mark('targettype'), 'x-target': mark('targetheader') }
    const answered = (status: number) =>
      server((_, __, response) => {
        response.writeHead(status, mark('phrase'), json)
        response.end(JSON.stringify({ error: mark('answer') }))
      })
    const good = closing.use(await answered(200))
    const bad = closing.use(await answered(418))
    const busy = closing.use(await answered(503))
    const moved = closing.use(
      await server((_, __, response) => response.writeHead(302, { location: `/${mark('location')}` }).end()),
    )
    const raw = closing.use(await noHttp(`${mark('nohttp')} no HTTP\r\n\r\n`))
    const halved = closing.use(await noHttp(`HTTP/1.1 200 OK\r\nX-${mark('halved')}\r\n\r\n`))
    const targets = [good, bad, moved, raw, halved].flatMap(({ url }) => ['--forward', url])
    const sources = ['--source', 'stripe', '--forward', `stripe/*=${bad.url}`]
    const relay = closing.use(
      await here.serve(...targets, ...sources, '--exec', '*=cat; echo $RELAY_EVENT; exit 3'),
    )
    const agent = closing.use(await codingAgent(here, '--allow-actions'))
    await sendAll(relay)
    const { tools } = await agent.client.listTools()
    const calls = callsOf(good.url)
    expect(Object.keys(calls).toSorted()).toEqual(tools.map(({ name }) => name).toSorted())
    const straight = [bad, busy, moved, raw, halved].flatMap(({ url: to }): [string, Fields][] => [
      ['replay_delivery', { entry: '1', to }],
      ['trigger_delivery', { event: 'push', to }],
    ])
    const seen = await placesSeen(agent, [...flat(calls), ...straight])
    // Or nothing was tried.
    const shown =
      'action agent answer badevent digest event header headervalue hook id key owner ref repo sender signature stripeid stripetype title type value'
    expect([...seen].toSorted()).toEqual(expect.arrayContaining(shown.split(' ')))
  })
})

describe('what a code host writes', () => {
  const PAGES: Readonly<Record<string, object>> = {
    '/user': { id: 1, login: mark('login'), name: mark('name'), email: mark('email') },
  }
  /** What it answers to all but that, in turn. */
  const answers = [401, 403, 404, 405, 409, 410, 418, 422, 429, 500, 302, 200, 201]

  it.each(answers)('in an answer of %i is under fromOutside alone', async (status) => {
    await using closing = new Closing()
    let isSigningIn = true
    const host = closing.use(
      await server((_, path, response) => {
        const [, page = ''] = /^\/api\/v3(\/[^?]*)/.exec(path) ?? []
        const isUser = isSigningIn && page in PAGES
        response.writeHead(isUser ? 200 : status, mark('hostphrase'), {
          'content-type': 'application/json',
          'x-oauth-scopes': mark('scope'),
          'x-accepted-oauth-scopes': mark('accepted'),
          'x-accepted-github-permissions': `${mark('permission')}=write`,
          ...(status === 302 && { location: `/${mark('hostlocation')}` }),
          ...(status === 429 && { 'retry-after': '1' }),
        })
        const made = {
          id: 7,
          html_url: `http://${mark('htmlurl')}.example/octo/demo/issues/1#issuecomment-7`,
          sha: mark('sha'),
          merged: true,
          content: mark('content'),
          user: { login: mark('commenter') },
          head: { sha: mark('headsha'), ref: mark('headref') },
          state: 'open',
          message: `${mark('message')} Resource not accessible by ${mark('resource')}`,
          errors: [{ message: mark('error'), code: mark('code'), field: mark('field') }],
          documentation_url: mark('documentation'),
        }
        response.end(JSON.stringify(isUser ? PAGES[page] : made))
      }),
    )
    const client = { id: 'client', secret: 'client-secret' }
    const env = hostVariables('github', host.url, client)
    const here = closing.use(await place({ host: 'none', env }))
    await here.useToken('gho_of_the_user')
    isSigningIn = false
    const relay = closing.use(await here.serve())
    expect(await relay.deliver({ id: 'one', body: '{}' })).toMatchObject({ status: 200 })
    const agent = closing.use(await codingAgent(here, '--allow-actions'))
    const { comment, merge, react, relay_state } = callsOf(relay.address)
    const calls = { comment, merge, react, relay_state }
    const seen = await placesSeen(agent, flat(JSON.parse(JSON.stringify(calls))))
    // Of these, relay quotes nothing.
    const least = [401, 302].includes(status) ? 0 : 1
    expect(seen.size).toBeGreaterThanOrEqual(least)
  })
})

describe('what a tunnel server writes', () => {
  it.each([
    ['the channel that it chooses', 307],
    ['an error', 500],
    ['a refusal', 403],
    ['a page', 200],
  ])('is under fromOutside alone: %s', async (_, status) => {
    await using closing = new Closing()
    const smee = closing.use(
      await server((_method, path, response) => {
        if (path.includes(MARK)) {
          response.writeHead(200, mark('streamphrase'), { 'content-type': 'text/event-stream' })
          response.write(`event: ready\ndata: {}\n\nevent: ${mark('sse')}\ndata: {"${mark('sent')}":1}\n\n`)
          return
        }
        response.writeHead(status, mark('tunnelphrase'), { location: `${path}/${mark('channel')}` })
        response.end(mark('tunnelbody'))
      }),
    )
    const here = closing.use(await place({ host: 'none' }))
    const relay = closing.use(await here.serve('--tunnel', smee.url))
    expect(await relay.deliver({ id: 'one', body: '{}' })).toMatchObject({ status: 200 })
    const agent = closing.use(await codingAgent(here))
    const state: readonly [string, Fields] = ['relay_state', {}]
    await expect
      .poll(async () => (await heard(agent, ...state)).whole)
      .toMatch(/"state":"(?:connected|waiting)"/)
    const readers = ['list_deliveries', 'show_routes', 'relay_state']
    await placesSeen(
      agent,
      readers.map((tool) => [tool, {}] as const),
    )
  })

  it('has its address there, where others reach it', async () => {
    const env = { RELAY_PUBLIC_URL: 'https://relay.example', RELAY_SOURCE_BILLING_SECRET: SECRET }
    await using here = await place({ host: 'none', env })
    await using _relay = await here.serve('--source', 'billing=stripe')
    await using agent = await codingAgent(here)
    expect(await agent.call('relay_state')).toMatchObject({
      sources: [{ name: 'billing', fromOutside: { address: 'https://relay.example/webhook/billing' } }],
    })
  })
})
