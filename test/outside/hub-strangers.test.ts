import { DatabaseSync } from '@photostructure/sqlite'
import { createHmac, hash, randomBytes } from 'node:crypto'
import { cpSync } from 'node:fs'
import { createServer, request as requestHttp } from 'node:http'
import { connect } from 'node:net'
import path from 'node:path'
import { describe, expect, it } from 'vitest'
import { githubDelivery, post } from '../kit/delivery.js'
import { exchange } from '../kit/http.js'
import { emptyFolder } from '../kit/folder.js'
import { hub, joining } from '../kit/hub.js'
import { linesOf } from '../kit/journal.js'
import { place } from '../kit/place.js'
import { fresh, json } from './fixture.js'

const CONNECTED = { type: 'tunnel', state: 'connected', roundTrip: 'ok' }
const NOT_FOUND = { status: 404, body: '{"error":"Not found"}' }

const server = fresh(() => hub())
const here = fresh(() => place({ host: 'none' }))

/** A channel with a request that waits. */
async function waiting(): Promise<{ readonly url: string; readonly channel: string }> {
  const env = { ...here.env, ...(await joining(server)) }
  const relay = await here.serveWith({ env }, '--tunnel')
  const url = String((await relay.object(CONNECTED))['url'])
  await relay.stop()
  expect((await post(url, githubDelivery({ body: '{"payload":"canary"}' }))).status).toBe(200)
  return { url, channel: url.split('/')[3] ?? '' }
}

/** A GET, or a call with a proof by another key. */
interface Asked {
  readonly path: string
  readonly head?: object
}

/** A frame as workstations send it. */
function frame(head: object): Buffer {
  const text = Buffer.from(JSON.stringify(head))
  const length = Buffer.alloc(4)
  length.writeUInt32BE(text.length)
  return Buffer.concat([length, text])
}

/** Sends the same request so often that the channel has more of it than one answer of the hub holds. Returns the statuses. */
async function flood(url: string, { query = '', head }: { query?: string; head: string }): Promise<string[]> {
  const { host, pathname, port } = new URL(url)
  const request = `POST ${pathname}${query} HTTP/1.1\r\nHost: ${host}\r\nContent-Length: 0\r\n${head}\r\n`
  const send = (count: number): Promise<string[]> =>
    new Promise((resolve, reject) => {
      let got = ''
      const socket = connect(Number(port), '127.0.0.1', () =>
        socket.write(Buffer.from(request.repeat(count), 'latin1')),
      )
      socket
        .on('error', reject)
        .on('close', () => reject(new Error(got)))
        .on('data', (data) => {
          got += data.toString('latin1')
          const statuses = [...got.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status = '']) => status)
          if (statuses.length < count) return
          resolve(statuses)
          socket.destroy()
        })
    })
  const all: string[] = []
  for (let sent = 0; sent < FLOOD; sent += PIPELINED) all.push(...(await send(PIPELINED)))
  return [...new Set(all)]
}

/** More than the hub gives in one answer. Pipelined, as many as relay takes ahead of its answers. */
const [FLOOD, PIPELINED] = [272, 16]

/** Requests as large as HTTP takes them, of which each makes another part of the hub's answer as long as it can be. */
const LARGE = {
  'a value of quotes, and many lines': { head: `x:${'"'.repeat(13_500)}\r\n${'a:\r\n'.repeat(1500)}` },
  'a value of letters beyond ASCII': { head: `x:${'\xff'.repeat(15_500)}\r\n` },
  'a value of backslashes and tabs': { head: `x:a${'\\\t'.repeat(7500)}a\r\n` },
  'short lines alone': { head: 'a:\r\n'.repeat(1900) },
  'a long query': { query: `?${'"'.repeat(15_000)}`, head: '' },
}

/** An address whose first character is escaped. */
function escaped(channel: string): string {
  return `/%${Buffer.from(channel.slice(0, 1)).toString('hex')}${channel.slice(1)}/open`
}

/** Copies a data folder, as a person does who moves to another machine. */
function copyOf(home: string): string {
  const copy = emptyFolder()
  const isOfProcess = (file: string): boolean => file.includes('.running') || file.endsWith('.lock')
  cpSync(home, copy, { recursive: true, filter: (file) => !isOfProcess(file) })
  return copy
}

describe('a stranger without the key of a channel', () => {
  it.each(Object.entries(LARGE))('stops no channel: %s', async (_, request) => {
    const { url } = await waiting()
    expect(await flood(url, request)).toEqual(['200'])
    const relay = await here.serve('--tunnel', server.address)
    // What waited before, and what comes after.
    await relay.object({ type: 'delivery', n: 1 })
    await expect
      .poll(() => json(server.operate('list', '--json')), { timeout: 20_000 })
      .toMatchObject({ waiting: 0 })
    expect((await post(url, githubDelivery({ id: 'after' }))).status).toBe(200)
    await relay.object({ type: 'delivery', delivery: 'after' })
  })

  it('reads, lists and acknowledges nothing, whatever is asked, and learns of no channel', async () => {
    const { channel } = await waiting()
    const other = randomBytes(24).toString('base64url')
    const random = randomBytes(32).toString('base64url')
    const mac = (body: Buffer): string => createHmac('sha256', random).update(body).digest('base64url')
    const open = { nonce: random, holder: 'x', machine: 'x', maxBody: 1000, answers: {} }
    const collect = { session: random, seq: 1, wait: 0, takes: true, stored: { n: 1, id: 'x' } }
    const asked = [channel, other].map((id): readonly Asked[] => [
      { path: `/${id}` },
      { path: `/${id}/` },
      { path: `/hub/v1/collect?channel=${id}` },
      { path: '/hub/v1/open', head: { channel: id, ...open } },
      { path: '/hub/v1/collect', head: { channel: id, ...collect } },
      {
        path: '/hub/v1/answer',
        head: { channel: id, session: random, id: 'x', status: 200, headers: [] },
      },
      { path: '/hub/v1/close', head: { channel: id, session: random } },
      { path: '/hub/v1/list', head: { channel: id } },
    ])
    const answers = []
    for (const rows of asked) {
      const each = []
      for (const { path, head } of rows) {
        const body = head && frame(head)
        const posted = body && { method: 'POST', body, headers: { 'x-relay-hub-proof': mac(body) } }
        const answer = await fetch(server.address + path, posted ?? {})
        const headers = [...answer.headers.keys()].filter((name) => name.startsWith('x-relay'))
        each.push({ status: answer.status, body: await answer.text(), headers })
      }
      answers.push(each)
    }
    // The same for a channel that exists and for one that does not.
    expect(answers[0]).toEqual(answers[1])
    const refused = { ...NOT_FOUND, headers: [] }
    const wrongMethod = { status: 405, body: '{"error":"Method not allowed"}', headers: [] }
    expect(answers[0]).toEqual([refused, refused, wrongMethod, refused, refused, refused, refused, refused])
    expect(await json(server.operate('list', '--json'))).toMatchObject({ waiting: 1, connected: false })
    // The workstation has it after all.
    const relay = await here.serve('--tunnel', server.address)
    await relay.object({ type: 'delivery', n: 1 })
  })

  it('is answered the same for a channel that exists, with a wrong key, as for one that does not', async () => {
    const { channel } = await waiting()
    const random = randomBytes(32).toString('base64url')
    const headers = { 'x-relay-hub-proof': random }
    for (const id of [channel, randomBytes(24).toString('base64url')]) {
      const body = frame({
        channel: id,
        nonce: random,
        holder: 'x',
        machine: 'x',
        maxBody: 1000,
        answers: {},
      })
      const answer = await fetch(`${server.address}/hub/v1/open`, { method: 'POST', body, headers })
      expect({ status: answer.status, body: await answer.text() }).toEqual(NOT_FOUND)
    }
  })

  it('gets no channel without an invitation, nor with one that was used, has expired, or was never made', async () => {
    const used = await server.invite()
    const first = await here.serveWith(
      { env: { ...here.env, RELAY_HUB_TOKEN: used } },
      '--tunnel',
      server.address,
    )
    await first.object(CONNECTED)
    await first.stop()
    const never = `relay-hub-${randomBytes(32).toString('base64url')}`
    for (const token of [used, never]) {
      await using other = await place({ host: 'none' })
      const relay = await other.serveWith(
        { env: { ...other.env, RELAY_HUB_TOKEN: token } },
        '--tunnel',
        server.address,
      )
      await relay.says('the hub does not take this invitation: it is unknown, used up or expired')
    }
    const lines = (await server.operate('list', '--json')).out.trim().split('\n')
    expect(lines).toHaveLength(1)
  })

  it('costs a channel bounded space, and other channels nothing', async () => {
    const small = { RELAY_HUB_TOKEN: await server.invite('--channel-max', '32KiB', '--channel-rate', '30') }
    const relay = await here.serveWith({ env: { ...here.env, ...small } }, '--tunnel', server.address)
    const url = String((await relay.object(CONNECTED))['url'])
    await relay.stop()
    await using other = await place({ host: 'none' })
    const beside = await other.serveWith({ env: { ...other.env, ...(await joining(server)) } }, '--tunnel')
    const besideUrl = String((await beside.object(CONNECTED))['url'])
    const answers = []
    for (let i = 0; i < 32; i++) answers.push(await fetch(url, { method: 'POST', body: 'x'.repeat(4000) }))
    const statuses = answers.map(({ status }) => status)
    expect([...new Set(statuses)]).toEqual([200, 507, 429])
    expect(statuses.filter((status) => status === 200).length).toBeLessThanOrEqual(8)
    const full = answers.find(({ status }) => status === 507)
    expect(await full?.json()).toEqual({
      error: 'This channel is full: its workstation has not fetched what waits',
    })
    expect(full?.headers.get('retry-after')).toBe('60')
    expect((await post(besideUrl, githubDelivery())).status).toBe(200)
    await beside.object({ type: 'delivery', n: 1 })
  })

  it.each([
    { how: 'with another host', pathOf: (channel: string) => `/${channel}/open`, host: 'other.example' },
    {
      how: 'without a source, with another host',
      pathOf: (channel: string) => `/${channel}`,
      host: 'other.example',
    },
    { how: 'without a source', pathOf: (channel: string) => `/${channel}`, host: undefined },
    { how: 'with a query', pathOf: (channel: string) => `/${channel}?x=1`, host: undefined },
    { how: 'with an escaped slash', pathOf: (channel: string) => `/${channel}%2Fopen`, host: undefined },
    { how: 'escaped', pathOf: escaped, host: undefined },
    { how: 'behind another path', pathOf: (channel: string) => `/x/${channel}/open`, host: undefined },
  ])('finds no address in the verbose log of a hub: $how', async ({ pathOf, host }) => {
    await using verbose = await hub({ flags: ['--verbose'] })
    const env = { ...here.env, ...(await joining(verbose)) }
    const relay = await here.serveWith({ env }, '--tunnel')
    const channel = String((await relay.object(CONNECTED))['url']).split('/')[3] ?? ''
    const to = new URL(verbose.address)
    const lines = [`POST ${pathOf(channel)} HTTP/1.1`, `Host: ${host ?? to.host}`, 'Content-Length: 0']
    const { status } = await exchange(Number(to.port), `${lines.join('\r\n')}\r\nConnection: close\r\n\r\n`)
    expect(status).toBe(host === undefined ? 404 : 403)
    await relay.stop()
    const { err, out } = await verbose.stop()
    expect(err).toContain(`was answered ${status}`)
    expect(err + out).not.toContain(channel.slice(8))
  })

  it('finds no address, key or payload in the log of a hub', async () => {
    const { url, channel } = await waiting()
    await fetch(`${url}/x`, { method: 'POST', body: 'canary', headers: { expect: 'no' } }).catch(() => {})
    const { err, out } = await server.stop()
    for (const text of [channel, 'canary']) expect(err + out).not.toContain(text)
  })
})

describe('the key of a channel', () => {
  it('that is withdrawn ends the connection with the reason, and closes the address', async () => {
    const env = { ...here.env, ...(await joining(server)) }
    const relay = await here.serveWith({ env }, '--tunnel')
    const url = String((await relay.object(CONNECTED))['url'])
    const channel = url.split('/')[3] ?? ''
    expect((await server.operate('revoke', channel.slice(0, 8))).code).toBe(0)
    await relay.says("tunnel is down: the hub's operator has withdrawn the key of this channel")
    expect(await post(url, githubDelivery())).toMatchObject(NOT_FOUND)
    await relay.stop()
    // Another key for the same address, once.
    const token = (await server.operate('renew', channel.slice(0, 8))).out.trim()
    const renewed = await here.serveWith(
      { env: { ...here.env, RELAY_HUB_TOKEN: token } },
      '--tunnel',
      server.address,
    )
    expect((await renewed.object(CONNECTED))['url']).toBe(url)
    await post(url, githubDelivery())
    await renewed.object({ type: 'delivery', n: 1 })
  })

  it('outlives an invitation that the hub does not take, and channels at other hubs', async () => {
    const relay = await here.serveWith({ env: { ...here.env, ...(await joining(server)) } }, '--tunnel')
    const url = String((await relay.object(CONNECTED))['url'])
    await relay.stop()
    const channel = url.split('/')[3] ?? ''
    // The operator makes a mistake, and corrects it.
    expect((await server.operate('revoke', channel.slice(0, 8))).code).toBe(0)
    const never = { RELAY_HUB_TOKEN: `relay-hub-${randomBytes(32).toString('base64url')}` }
    const refused = await here.serveWith({ env: { ...here.env, ...never } }, '--tunnel', server.address)
    await refused.says('the hub does not take this invitation')
    await refused.stop()
    const still = await here.serve('--tunnel', server.address)
    await still.says("the hub's operator has withdrawn the key of this channel")
    await still.stop()
    const renewal = { RELAY_HUB_TOKEN: (await server.operate('renew', channel.slice(0, 8))).out.trim() }
    const renewed = await here.serveWith({ env: { ...here.env, ...renewal } }, '--tunnel', server.address)
    expect((await renewed.object(CONNECTED))['url']).toBe(url)
    await renewed.stop()
    // A while at another hub.
    await using elsewhere = await hub()
    const away = await here.serveWith({ env: { ...here.env, ...(await joining(elsewhere)) } }, '--tunnel')
    await away.object(CONNECTED)
    await away.stop()
    const back = await here.serve('--tunnel', server.address)
    expect((await back.object(CONNECTED))['url']).toBe(url)
  })

  it('that is withdrawn stays so: no renewal made before counts, and of two the last one', async () => {
    const relay = await here.serveWith({ env: { ...here.env, ...(await joining(server)) } }, '--tunnel')
    const url = String((await relay.object(CONNECTED))['url'])
    await relay.stop()
    const channel = url.split('/')[3] ?? ''
    const renew = async (): Promise<string> => (await server.operate('renew', channel.slice(0, 8))).out.trim()
    const use = async (token: string) =>
      here.serveWith({ env: { ...here.env, RELAY_HUB_TOKEN: token } }, '--tunnel', server.address)
    const refuses = async (token: string): Promise<void> => {
      const refused = await use(token)
      await refused.says('the hub does not take this invitation')
      await refused.stop()
    }
    const before = [await renew(), await renew()]
    await server.operate('revoke', channel.slice(0, 8))
    for (const token of before) await refuses(token)
    expect(await json(server.operate('list', '--json'))).toMatchObject({ channel, withdrawn: true })
    const [former, last] = [await renew(), await renew()]
    await refuses(former)
    const renewed = await use(last)
    expect((await renewed.object(CONNECTED))['url']).toBe(url)
  })

  it('is not given for an invitation that its operator has found in the list, and cancelled', async () => {
    const token = await server.invite('--name', 'ada', '--uses', '2')
    await server.invite('--name', 'bob')
    const listed = (await server.operate('list', '--json')).out
      .trim()
      .split('\n')
      .map((line): Record<string, unknown> => JSON.parse(line))
    expect(listed).toMatchObject([
      { type: 'invitation', name: 'ada', renews: null, uses: 2 },
      { type: 'invitation', name: 'bob', renews: null, uses: 1 },
    ])
    const [{ invitation: id = '' } = {}] = listed
    expect((await server.operate('list')).out).toContain(String(id).slice(0, 8))
    expect((await server.operate('revoke', String(id).slice(0, 8))).code).toBe(0)
    expect((await server.operate('revoke', 'bob', '--json')).out).toContain('"cancelled":true')
    expect((await server.operate('list', '--json')).out).toBe('')
    const env = { ...here.env, RELAY_HUB_TOKEN: token }
    const relay = await here.serveWith({ env }, '--tunnel', server.address)
    await relay.says('the hub does not take this invitation')
  })

  it('that is revoked with --purge takes all of its requests with it, and nothing of other channels', async () => {
    const { url, channel } = await waiting()
    await using other = await place({ host: 'none' })
    const beside = await other.serveWith({ env: { ...other.env, ...(await joining(server)) } }, '--tunnel')
    const besideUrl = String((await beside.object(CONNECTED))['url'])
    await beside.stop()
    for (const to of [besideUrl, url]) expect((await post(to, githubDelivery())).status).toBe(200)
    const refused = await server.operate('revoke', channel.slice(0, 8), '--purge')
    expect([refused.code, refused.err]).toEqual([2, expect.stringContaining('give --yes')])
    expect((await server.operate('list', '--json')).out).toContain(channel)
    expect((await server.operate('revoke', channel.slice(0, 8), '--purge', '--yes')).code).toBe(0)
    expect(await json(server.operate('list', '--json'))).toMatchObject({ name: '', waiting: 1 })
    using data = new DatabaseSync(path.join(server.env['RELAY_HOME'] ?? '', 'hub', 'relay.db'), {
      readOnly: true,
    })
    const of = data.prepare('SELECT size, headers FROM delivery WHERE source = ?').all(channel)
    expect(of.map((row) => ({ ...row }))).toEqual([{ size: 0, headers: '[]' }])
    expect((await post(url, githubDelivery())).status).toBe(404)
    const again = await other.serve('--tunnel', server.address)
    await again.object({ type: 'delivery', n: 1 })
  })

  it('that two workstations have is of the one that came first, until it has gone', async () => {
    const env = { ...here.env, ...(await joining(server)) }
    const first = await here.serveWith({ env }, '--tunnel')
    const url = String((await first.object(CONNECTED))['url'])
    const copy = copyOf(here.home)
    await using other = await place({ host: 'none', env: { RELAY_HOME: copy } })
    const second = await other.serve('--tunnel', server.address)
    await second.says('another workstation receives from this channel: ')
    await post(url, githubDelivery())
    await first.object({ type: 'delivery', n: 1 })
    await first.stop()
    await second.object(CONNECTED)
    await post(url, githubDelivery())
    await second.object({ type: 'delivery', n: 1 })
    expect(await linesOf(here)).toHaveLength(1)
  })
})

describe('a workstation whose channel another one has', () => {
  it('gets another one with another invitation, as relay doctor says', async () => {
    const env = { ...here.env, ...(await joining(server)) }
    const first = await here.serveWith({ env }, '--tunnel')
    const url = String((await first.object(CONNECTED))['url'])
    const copy = copyOf(here.home)
    await using other = await place({ host: 'none', env: { RELAY_HOME: copy } })
    const own = { ...other.env, ...(await joining(server)) }
    const second = await other.serveWith({ env: own }, '--tunnel')
    const otherUrl = String((await second.object(CONNECTED))['url'])
    expect(otherUrl).not.toBe(url)
    await post(otherUrl, githubDelivery())
    await second.object({ type: 'delivery', n: 1 })
    await post(url, githubDelivery())
    await first.object({ type: 'delivery', n: 1 })
  })
})

describe('who recorded the calls of a workstation', () => {
  it('ends no session and opens none by sending them again', async () => {
    const calls: { readonly url: string; readonly body: Buffer; readonly proof: string }[] = []
    const to = new URL(server.address)
    const between = createServer((incoming, outgoing) => {
      const parts: Buffer[] = []
      incoming.on('data', (data: Buffer) => parts.push(data))
      incoming.on('end', () => {
        const { url = '', method, headers } = incoming
        const body = Buffer.concat(parts)
        if (url.startsWith('/hub/')) calls.push({ url, body, proof: String(headers['x-relay-hub-proof']) })
        const host = { ...headers, host: to.host }
        requestHttp({ port: to.port, host: '127.0.0.1', path: url, method, headers: host }, (answer) => {
          outgoing.writeHead(answer.statusCode ?? 500, answer.headers)
          answer.pipe(outgoing)
        })
          .on('error', () => outgoing.destroy())
          .end(body)
      })
    })
    await new Promise<void>((resolve) => between.listen(0, '127.0.0.1', resolve))
    try {
      const address = between.address()
      const port = typeof address === 'object' ? address?.port : undefined
      const env = { ...here.env, RELAY_HUB_TOKEN: await server.invite() }
      const relay = await here.serveWith({ env }, '--tunnel', `http://127.0.0.1:${port}`)
      const { pathname } = new URL(String((await relay.object(CONNECTED))['url']))
      const opening = calls.find(({ url }) => url.endsWith('/open'))
      const count = calls.length
      const replay = async (): Promise<number> => {
        const { url = '', body = Buffer.of(), proof = '' } = opening ?? {}
        const headers = { 'x-relay-hub-proof': proof }
        return (await fetch(server.address + url, { method: 'POST', body, headers })).status
      }
      expect(await replay()).toBe(409)
      expect((await post(server.address + pathname, githubDelivery())).status).toBe(200)
      await relay.object({ type: 'delivery', n: 1 })
      expect(calls.slice(count).map(({ url }) => url)).not.toContain('/hub/v1/open')
      await relay.stop()
      expect(await replay()).toBe(409)
      expect(await json(server.operate('list', '--json'))).toMatchObject({ connected: false })
    } finally {
      between.closeAllConnections()
      between.close()
    }
  })
})

describe('a hub of another version', () => {
  it('whose answers cannot be read is named, with what to do, and is not asked again at once', async () => {
    const hmac = (key: string, ...texts: readonly string[]): string =>
      createHmac('sha256', Buffer.from(key, 'base64url')).update(JSON.stringify(texts)).digest('base64url')
    const digest = (bytes: Buffer): string => hash('sha256', bytes, 'base64url')
    let [verifier, own, collected] = ['', '', 0]
    const session = 's'.repeat(43)
    const answers: Readonly<Record<string, (head: Record<string, string>) => Buffer>> = {
      join: (head) => ((verifier = head['verifier'] ?? ''), frame({ channel: 'c'.repeat(32) })),
      open: (head) => {
        own = hmac(verifier, 'session', head['nonce'] ?? '', session)
        return frame({ nonce: session, session })
      },
      collect: () => (collected++, Buffer.from('another form')),
      close: () => frame({}),
    }
    const other = createServer((incoming, outgoing) => {
      const parts: Buffer[] = []
      incoming.on('data', (data: Buffer) => parts.push(data))
      incoming.on('end', () => {
        const body = Buffer.concat(parts)
        const name = (incoming.url ?? '').replace('/hub/v1/', '')
        const answer = answers[name]?.(body.length < 4 ? {} : JSON.parse(body.subarray(4).toString()))
        if (!answer) {
          outgoing.writeHead(200).end()
          return
        }
        const key = name === 'join' || name === 'open' ? verifier : own
        const proof = hmac(
          key,
          'answer',
          String(incoming.headers['x-relay-hub-proof']),
          '200',
          digest(answer),
        )
        outgoing.writeHead(200, { 'x-relay-hub-proof': proof }).end(answer)
      })
    })
    await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve))
    try {
      const address = other.address()
      const port = typeof address === 'object' ? address?.port : undefined
      const env = { ...here.env, RELAY_HUB_TOKEN: await server.invite() }
      const relay = await here.serveWith({ env }, '--tunnel', `http://127.0.0.1:${port}`)
      await relay.says('the hub answers in a form that this relay cannot read: it may be of another version')
      expect((await here.run('doctor')).out).toContain(
        'install the same version of relay here and at the hub',
      )
      expect(collected).toBeLessThan(5)
    } finally {
      other.closeAllConnections()
      other.close()
    }
  })
})

describe('an imposter of a hub', () => {
  it('without the key gets no acknowledgement: the workstation does not believe it', async () => {
    const env = { ...here.env, ...(await joining(server)) }
    const relay = await here.serveWith({ env }, '--tunnel')
    await relay.object(CONNECTED)
    await relay.stop()
    const port = Number(new URL(server.address).port)
    await server.stop()
    const answer = frame({ nonce: 'x'.repeat(43), session: 'x'.repeat(43) })
    const imposter = createServer((_, out) =>
      out.writeHead(200, { 'x-relay-hub-proof': 'x'.repeat(43) }).end(answer),
    )
    await new Promise<void>((resolve) => imposter.listen(port, '127.0.0.1', resolve))
    try {
      const again = await here.serve('--tunnel', server.address)
      await again.says('does not prove that it has this channel')
      const { err } = await again.stop()
      expect(err).not.toContain('tunnel connected')
    } finally {
      imposter.close()
    }
  })
})
