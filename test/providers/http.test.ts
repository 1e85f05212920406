import { createServer } from 'node:net'
import { once } from 'node:events'
import { describe, expect, it } from 'vitest'
import { RelayError } from '../../src/base/errors.js'
import { createProvider } from '../../src/providers/open.js'
import { portOf, scriptedServer, type Answer } from '../helpers/scripted-server.js'

const TOKEN = 'gho_canary_0123456789'
const input = { owner: 'octo', repo: 'demo', issueNumber: 7, body: 'hello' }
const pull = { owner: 'octo', repo: 'demo', pullNumber: 8 }
const doubt = '; the request may have been carried out all the same'

const open = (url: string, timeLimit = 5_000) => createProvider({ name: 'github', url, timeLimit })

describe('a call without a usable answer is made once', () => {
  it.each<[string, Answer, string]>([
    [
      'connection reset after the request was read',
      'reset',
      'GitHub gave no complete answer (connection closed before an answer)',
    ],
    [
      'connection closed in the middle of the answer',
      { headers: { 'content-length': '99' }, body: '{' },
      'GitHub gave no complete answer (connection closed in the middle of the answer)',
    ],
    ['not JSON', { status: 201, body: '{"id":' }, 'GitHub gave an answer that was not understood'],
    ['an HTML page', { status: 200, body: '<html>' }, 'GitHub gave an answer that was not understood'],
    [
      'JSON of another shape',
      { status: 201, body: { id: 'x' } },
      'GitHub gave an answer that was not understood',
    ],
    ['nothing', { status: 201 }, 'GitHub gave an answer that was not understood'],
    ['8 MiB', { status: 201, body: ' '.repeat(8 * 1_048_576) }, 'GitHub gave an answer that is too large'],
  ])('%s', async (_, answer, said) => {
    await using server = await scriptedServer(() => answer)
    const provider = open(server.url)
    const failed = { kind: 'provider_failed', message: `${said}${doubt}` }
    await expect(provider.comment(TOKEN, input)).rejects.toMatchObject(failed)
    await expect(provider.merge(TOKEN, pull)).rejects.toMatchObject(failed)
    expect(server.received.map(({ method }) => method)).toEqual(['POST', 'PUT'])
  })

  it('refuses to connect', async () => {
    const server = createServer().listen(0, '127.0.0.1')
    await once(server, 'listening')
    const port = portOf(server)
    server.close()
    await once(server, 'close')
    await expect(open(`http://127.0.0.1:${port}`).comment(TOKEN, input)).rejects.toMatchObject({
      kind: 'provider_failed',
      message: 'GitHub could not be reached (connection refused)',
    })
  })
})

describe('time', () => {
  it.each<[string, Answer]>([
    ['headers', 'silence'],
    ['body', { headers: { 'content-length': '99' }, body: '{', stalls: true }],
  ])('is limited for the %s', async (_, answer) => {
    await using server = await scriptedServer(() => answer)
    await expect(open(server.url, 100).comment(TOKEN, input)).rejects.toMatchObject({
      kind: 'provider_timeout',
      message: `GitHub did not answer within 0.1 s${doubt}`,
    })
    await expect(open(server.url, 100).whoAmI(TOKEN)).rejects.toMatchObject({
      kind: 'provider_timeout',
      message: 'GitHub did not answer within 0.1 s',
    })
    expect(server.received).toHaveLength(2)
  })

  it("ends at the caller's signal, with its reason", async () => {
    const controller = new AbortController()
    const reason = new RelayError('cancelled', 'Interrupted')
    await using server = await scriptedServer(() => {
      controller.abort(reason)
      return 'silence'
    })
    await expect(open(server.url).comment(TOKEN, input, { signal: controller.signal })).rejects.toBe(reason)
    await expect(
      open(server.url).comment(TOKEN, input, { signal: AbortSignal.abort() }),
    ).rejects.toMatchObject({
      kind: 'cancelled',
    })
    expect(server.received).toHaveLength(1)
  })
})

describe('redirects', () => {
  const created = { status: 201, body: { id: 5, html_url: 'https://github.com/x' } }
  const me = { body: { login: 'mona' } }

  it.each([301, 302, 307, 308])('%i within the origin: a read follows', async (status) => {
    await using server = await scriptedServer(({ path }) =>
      path === '/moved' ? me : { status, headers: { location: '/moved' } },
    )
    expect(await open(server.url).whoAmI(TOKEN)).toEqual({ login: 'mona' })
    expect(server.received.map((r) => [r.method, r.path, r.headers.authorization])).toEqual([
      ['GET', '/api/v3/user', `Bearer ${TOKEN}`],
      ['GET', '/moved', `Bearer ${TOKEN}`],
    ])
  })

  it.each([307, 308])('%i within the origin: a write follows once, unchanged', async (status) => {
    await using server = await scriptedServer(({ path }) =>
      path === '/repositories/1/comments'
        ? created
        : { status, headers: { location: '/repositories/1/comments' } },
    )
    expect(await open(server.url).comment(TOKEN, input)).toEqual({ id: 5, url: 'https://github.com/x' })
    expect(server.received.map((r) => [r.method, r.path, r.body])).toEqual([
      ['POST', '/api/v3/repos/octo/demo/issues/7/comments', '{"body":"hello"}'],
      ['POST', '/repositories/1/comments', '{"body":"hello"}'],
    ])
  })

  it.each([
    [301, ''],
    [302, ''],
    // RFC 9110 section 15.4.4: the way to answer a POST that was carried out.
    [303, '; the request may have been carried out all the same'],
  ])('%i: a write does not follow', async (status, doubt) => {
    await using server = await scriptedServer(() => ({ status, headers: { location: '/elsewhere' } }))
    await expect(open(server.url).comment(TOKEN, input)).rejects.toMatchObject({
      kind: 'provider_failed',
      message: `GitHub answered with a redirect that is not followed (${status})${doubt}`,
    })
    expect(server.received).toHaveLength(1)
  })

  it('303: a read that is not followed was carried out nowhere', async () => {
    await using server = await scriptedServer(() => ({ status: 303, headers: { location: '/elsewhere' } }))
    await expect(open(server.url).whoAmI(TOKEN)).rejects.toMatchObject({
      message: 'GitHub answered with a redirect that is not followed (303)',
    })
  })

  it('loops end: a read after three, a write after one', async () => {
    await using server = await scriptedServer(() => ({ status: 307, headers: { location: '/again' } }))
    const message = 'GitHub answered with a redirect that is not followed (307)'
    await expect(open(server.url).whoAmI(TOKEN)).rejects.toMatchObject({ message })
    expect(server.received).toHaveLength(4)
    await expect(open(server.url).comment(TOKEN, input)).rejects.toMatchObject({ message })
    expect(server.received).toHaveLength(6)
  })

  it.each([301, 302, 307, 308])('%i to another origin: nothing is sent there', async (status) => {
    await using other = await scriptedServer(() => me)
    await using server = await scriptedServer(() => ({ status, headers: { location: `${other.url}/user` } }))
    const message = `GitHub answered with a redirect that is not followed (${status})`
    await expect(open(server.url).whoAmI(TOKEN)).rejects.toMatchObject({ message })
    await expect(open(server.url).comment(TOKEN, input)).rejects.toMatchObject({ message })
    expect([server.received.length, other.received.length]).toEqual([2, 0])
  })

  it.each(['http://[', undefined])('to %j is not followed', async (location) => {
    await using server = await scriptedServer(() => ({
      status: 307,
      ...(location && { headers: { location } }),
    }))
    await expect(open(server.url).whoAmI(TOKEN)).rejects.toMatchObject({ kind: 'provider_failed' })
  })
})

describe('tokens', () => {
  it.each(['', 'a b', 'a\nb', 'é'])('%j is not sent, and not quoted', async (token) => {
    await using server = await scriptedServer(() => ({ body: { login: 'mona' } }))
    const error: unknown = await open(server.url)
      .whoAmI(token)
      .catch((e: unknown) => e)
    expect(error).toEqual(new RelayError('invalid_token', 'Invalid or expired token'))
    expect(error).not.toHaveProperty('cause')
    expect(server.received).toEqual([])
  })
})
