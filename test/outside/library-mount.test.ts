import { once } from 'node:events'
import { symlinkSync } from 'node:fs'
import {
  createServer,
  request,
  type IncomingMessage,
  type RequestListener,
  type ServerResponse,
} from 'node:http'
import path from 'node:path'
import { describe, expect, it } from 'vitest'
import {
  createRelay,
  DEFAULTS,
  mount,
  type Mounted,
  Secret,
  serve,
  type ServeOptions,
  type Settings,
} from 'webhook-relay'
import { fixtureOf, signedRequest, TEST_SECRET } from 'webhook-relay/testing'
import { emptyFolder } from '../kit/folder.js'
import { receiver } from '../kit/receiver.js'

function settingsWith(given: Partial<Settings> = {}): Settings {
  return {
    ...DEFAULTS,
    providerUrl: 'https://github.com',
    webhookSecrets: { current: new Secret(TEST_SECRET) },
    folder: '',
    store: 'memory',
    allowedHosts: [],
    routes: [],
    ...given,
  }
}

/** Serves a handler, as a program does that has mounted a relay. */
async function served(handler: (...args: Parameters<RequestListener>) => unknown) {
  const server = createServer((req, res) => void handler(req, res)).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  const port = typeof address === 'object' ? address?.port : undefined
  return Object.assign(server, { url: `http://127.0.0.1:${port}` })
}

const statusAndText = async (answer: Response) => [answer.status, await answer.text()]
const OK = [200, '{"ok":true}']
const URL_OF_APP = 'https://bot.example/any/path?x=1'

describe('a mounted relay', () => {
  it('stores and forwards what comes as a Request, at any path and Host', async () => {
    await using app = await receiver()
    await using relay = await mount(settingsWith({ routes: [{ forward: app.url }] }))
    expect(
      await statusAndText(await relay.fetch(signedRequest(fixtureOf('push'), { url: URL_OF_APP }))),
    ).toEqual(OK)
    await app.has(1)
    expect(await relay.relay.journal.after(0, 2)).toMatchObject([{ event: 'push', query: 'x=1' }])
  })

  it('stores and forwards what comes to a server of Node', async () => {
    await using app = await receiver()
    await using relay = await mount(settingsWith({ routes: [{ forward: app.url }] }))
    await using server = await served(relay.handler())
    const url = `${server.url}/hooks/github`
    expect(await statusAndText(await fetch(signedRequest(fixtureOf('push'), { url })))).toEqual(OK)
    await app.has(1)
  })

  it('answers as relay itself does', async () => {
    await using relay = await mount(settingsWith({ maxBody: 20_000 }))
    await using server = await served(relay.handler())
    const big = fixtureOf('push', { body: { text: 'x'.repeat(1_000_000) } })
    for (const send of [fetch, (request: Request) => relay.fetch(request)]) {
      const url = `${server.url}/x`
      const forged = signedRequest(fixtureOf('push'), { url, tamper: 'signature' })
      expect(await statusAndText(await send(forged))).toEqual([401, '{"error":"Invalid signature"}'])
      const request = signedRequest(big, { url })
      expect(await statusAndText(await send(request))).toEqual([413, '{"error":"Request too large"}'])
      expect((await send(new Request(url))).status).toBe(405)
    }
    expect(await relay.relay.journal.count()).toBe(0)
  })

  it('has a source at each address', async () => {
    const sources = [{ name: 'billing', scheme: 'stripe', secrets: { current: new Secret('whsec_1') } }]
    await using relay = await mount(settingsWith({ sources }))
    const paid = fixtureOf('invoice.paid', { scheme: 'stripe', source: 'billing' })
    const request = signedRequest(paid, { url: URL_OF_APP, secret: 'whsec_1' })
    expect(await statusAndText(await relay.fetch(request, { source: 'billing' }))).toEqual(OK)
    expect(() => relay.handler({ source: 'biling' })).toThrow(
      'There is no source biling (did you mean billing?)',
    )
  })

  it.each([
    ['of the request', {}, 'https://bot.example/any/path', {}],
    ['of the public address', { publicUrl: 'https://public.example' }, 'https://public.example/any/path', {}],
    ['that is given', {}, 'https://given.example/hook', { address: 'https://given.example/hook' }],
  ])('knows the address %s, which some senders sign', async (_, given, url, options) => {
    const sources = [{ name: 'sms', scheme: 'twilio', secrets: { current: new Secret('token') } }]
    await using relay = await mount(settingsWith({ sources, ...given }))
    const [event] = ['message.received']
    const signedFor = signedRequest(
      fixtureOf(event, { scheme: 'twilio', source: 'sms', body: 'MessageSid=SM1&Body=hi&From=%2B1&To=%2B2' }),
      { url, secret: 'token' },
    )
    const request = new Request('https://bot.example/any/path', signedFor)
    expect((await relay.fetch(request, { source: 'sms', ...options })).status).toBe(200)
  })

  it('takes bytes that something else has read, and says so of what is no bytes', async () => {
    const lines: string[] = []
    const hear = (text: string): void => void lines.push(text)
    const log = { debug: hear, info: hear, warn: hear, error: hear }
    await using relay = await mount(settingsWith(), { log })
    const handler = relay.handler()
    const readFirst = (give: (body: Buffer) => unknown) => {
      return async (req: IncomingMessage & { body?: unknown }, res: ServerResponse): Promise<void> => {
        const chunks: Buffer[] = []
        for await (const chunk of req) chunks.push(chunk)
        req.body = give(Buffer.concat(chunks))
        await handler(req, res)
      }
    }
    await using raw = await served(readFirst((body) => body))
    expect((await fetch(signedRequest(fixtureOf('push'), { url: raw.url }))).status).toBe(200)
    await using parsed = await served(readFirst((body) => JSON.parse(body.toString())))
    const say = 'mount relay before what parses bodies (express.json)'
    for (let i = 0; i < 3; i++) {
      const answer = await fetch(signedRequest(fixtureOf('push'), { url: parsed.url }))
      expect([answer.status, await answer.json()]).toEqual([503, { error: expect.stringContaining(say) }])
    }
    expect(lines.filter((line) => line.includes(say))).toHaveLength(1)
    const used = signedRequest(fixtureOf('push'), { url: URL_OF_APP })
    await used.text()
    const answer = await relay.fetch(used)
    expect([answer.status, await answer.text()]).toEqual([503, expect.stringContaining(say)])
    expect(await relay.relay.journal.count()).toBe(1)
  })

  it.each<[string, (body: Buffer) => object, number]>([
    ['bytes as rawBody, beside what was parsed', (rawBody) => ({ rawBody, body: {} }), 200],
    ['bytes as a Uint8Array', (body) => ({ body: new Uint8Array(body) }), 200],
    ['text, which can differ from the bytes', (body) => ({ body: body.toString() }), 503],
    ['text as rawBody', (body) => ({ rawBody: body.toString() }), 503],
    ['other bytes than were signed', () => ({ rawBody: Buffer.from('{}') }), 401],
  ])('verifies the exact bytes of a body that a framework has kept: %s', async (_, keep, status) => {
    await using relay = await mount(settingsWith())
    const handler = relay.handler()
    await using server = await served(async (req, res) => {
      const chunks: Buffer[] = []
      for await (const chunk of req) chunks.push(chunk)
      await handler(Object.assign(req, keep(Buffer.concat(chunks))), res)
    })
    expect((await fetch(signedRequest(fixtureOf('push'), { url: server.url }))).status).toBe(status)
  })

  it.each<[string, (relay: Mounted, req: IncomingMessage, res: ServerResponse) => unknown, string]>([
    [
      'fetch with a request of Node',
      (relay, req) => Reflect.apply(relay.fetch, undefined, [req]),
      "fetch: the request must be a Request; for one of Node's server, use handler",
    ],
    [
      'a handler with a Request',
      (relay) => Reflect.apply(relay.handler(), undefined, [new Request('http://x/')]),
      "handler: the first argument must be an http.IncomingMessage, of Node's server; for a Request, use fetch",
    ],
  ])('says so if the other one is called: %s', async (_, call, message) => {
    await using relay = await mount(settingsWith())
    let failure: unknown
    await using server = await served(async (req, res) => {
      failure = await Promise.resolve(call(relay, req, res)).catch((error: unknown) => error)
      res.end()
    })
    await fetch(server.url)
    expect(failure).toMatchObject({ kind: 'usage', message })
  })

  it('says so if its handler is passed in place of a call that makes one', async () => {
    await using relay = await mount(settingsWith())
    let failure: unknown
    await using server = await served((req, res) => {
      try {
        Reflect.apply(relay.handler, undefined, [req, res])
      } catch (error) {
        failure = error
      }
      res.end()
    })
    await fetch(server.url)
    const message = 'Pass relay.handler() to the server, not relay.handler: it makes the handler'
    expect(failure).toMatchObject({ kind: 'usage', message })
  })

  it.each(['github', 'gitea', 'gitlab'] as const)('receives from %s, its code host', async (provider) => {
    await using relay = await mount(settingsWith({ provider, providerUrl: 'https://host.example' }))
    const request = signedRequest(fixtureOf('push', { provider }), { url: URL_OF_APP })
    expect(await statusAndText(await relay.fetch(request))).toEqual(OK)
    expect(() => relay.handler()).not.toThrow()
  })

  it.each(['a b', '[::1', 'x:99999', '', 'user@x', 'bot.example'])(
    'leaves the Host header %j to its program',
    async (host) => {
      await using relay = await mount(settingsWith())
      await using server = await served(relay.handler())
      const signed = signedRequest(fixtureOf('push'), { url: server.url })
      const bytes = Buffer.from(await signed.arrayBuffer())
      const headers = Object.fromEntries([...signed.headers, ['host', host]])
      for (const path of ['/a?b=c', '//a', 'http://proxied.example/a']) {
        const sent = request(server.url, { method: 'POST', path, headers })
        sent.end(bytes)
        const [answer]: IncomingMessage[] = await once(sent, 'response')
        answer?.resume()
        expect(answer?.statusCode).toBe(200)
      }
    },
  )

  it('has no line in the log for a client that goes away', async () => {
    const lines: unknown[] = []
    const write = (...line: unknown[]): unknown => lines.push(line)
    const log = { debug: write, info: write, warn: write, error: write }
    await using relay = await mount(settingsWith(), { log })
    const handler = relay.handler()
    let answered: Promise<void> | undefined
    await using server = await served((req, res) => {
      answered = handler(req, res)
      sent.destroy()
    })
    const arriving = once(server, 'request')
    const headers = { 'content-length': 100, 'x-github-event': 'push' }
    const sent = request(server.url, { method: 'POST', headers }).on('error', () => {})
    sent.write('{')
    await arriving
    await answered
    const body = new ReadableStream({ start: (stream) => stream.error(new Error('reset')) })
    const gone = new Request(URL_OF_APP, { method: 'POST', body, duplex: 'half' })
    expect((await relay.fetch(gone)).status).toBe(503)
    expect(lines).toEqual([])
  })

  it('answers what is in flight before it ends, and 503 after that', async () => {
    const relay = await mount(settingsWith())
    const answering = relay.fetch(signedRequest(fixtureOf('push')))
    await relay[Symbol.asyncDispose]()
    expect((await answering).status).toBe(200)
    const late = await relay.fetch(signedRequest(fixtureOf('push')))
    expect(await statusAndText(late)).toEqual([503, '{"error":"relay is stopping"}'])
  })

  it('has the folder, as one that listens', async () => {
    const settings = settingsWith({ store: 'file', folder: emptyFolder() })
    await using _ = await mount(settings)
    const message = `The folder ${settings.folder} is already served by another relay of this program. Stop it, or choose another folder with the setting folder`
    for (const start of [mount, serve, createRelay])
      await expect(start(settings)).rejects.toMatchObject({ kind: 'unavailable', message })
    const link = path.join(emptyFolder(), 'link')
    symlinkSync(settings.folder, link)
    const again = message.replace(settings.folder, link)
    await expect(serve({ ...settings, folder: link })).rejects.toMatchObject({
      kind: 'unavailable',
      message: again,
    })
  })
})

describe('a setting that is wrong', () => {
  const secret = new Secret('x')
  const source = { name: 'a', scheme: 'stripe', secrets: { current: secret } }
  it.each<[object, string]>([
    [
      { webhookSecrets: { current: 'text' } },
      'The setting webhookSecrets.current must be a Secret: new Secret(text)',
    ],
    [{ webhookSecrets: undefined }, 'The setting webhookSecrets is missing'],
    [{ maxBdoy: 1 }, 'There is no setting maxBdoy (did you mean maxBody?)'],
    [{ port: '80' }, 'The setting port must be a whole number from 0 to 65535'],
    [{ routes: { forward: 'http://x/' } }, 'The setting routes.forward must be a list of texts'],
    [
      { sources: [{ ...source, name: 'A b' }] },
      'The setting sources[0].name must be 1–32 letters a–z, digits or -, and begin with a letter',
    ],
    [
      { sources: [{ ...source, scheme: 'stripee' }] },
      'The setting sources[0].scheme must be a scheme that relay knows, not "stripee" (did you mean stripe?)',
    ],
    [
      { sources: [{ ...source, secrets: { current: 'x' } }] },
      'The setting sources[0].secrets.current must be a Secret: new Secret(text)',
    ],
    [{ sources: [source, source] }, 'The setting sources[1].name is that of another source'],
    [{ tunnel: 'nonsense' }, 'The setting tunnel must be an address with http:// or https://'],
    [{ store: 'disk' }, 'The setting store must be one of file, keychain, memory'],
  ])('%j is refused by every call', async (given, message) => {
    const settings: Settings = Object.assign(settingsWith(), given)
    for (const start of [mount, serve, createRelay])
      await expect(start(settings)).rejects.toMatchObject({ kind: 'settings', message })
  })

  it('as is a misspelt option', async () => {
    const options: object = { onDelivry: () => {} }
    const message = 'there is no option onDelivry (did you mean onDelivery?)'
    for (const start of [mount, serve])
      await expect(start(settingsWith(), options)).rejects.toMatchObject({ kind: 'usage', message })
  })

  it('is named as a setting and not as a flag', async () => {
    await using one = await serve(settingsWith({ port: 0 }))
    const port = Number(new URL(one.url).port)
    const errors = [
      { port },
      { port: 0, host: '203.0.113.1' },
      { store: 'file' as const, folder: '/proc/none' },
    ].map((given) =>
      serve(settingsWith(given)).then(
        () => 'started',
        (error: unknown) => String(error),
      ),
    )
    const texts = await Promise.all(errors)
    expect(texts.filter((text) => !text.includes('the setting '))).toEqual([])
    expect(texts.filter((text) => /--|RELAY_/.test(text))).toEqual([])
  })

  it('is not the end of the process at the first refused delivery', async () => {
    const options: ServeOptions = {}
    await using serving = await serve(settingsWith({ port: 0 }), options)
    expect((await fetch(`${serving.url}/webhook`, { method: 'POST', body: '{}' })).status).toBe(401)
  })
})
