import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { RelayError } from '../../src/base/errors.js'
import { apiPath } from '../../src/codehost/rest.js'
import { type Answer, failure, ISSUE, PULL, REPO, type Reply, rig, TOKEN } from './codehost-rig.js'

const DOUBT = '; the request may have been carried out all the same'
const me: Reply = { body: { login: 'mona' } }
const created: Reply = { status: 201, body: { id: 5, html_url: 'https://github.com/x' } }

describe('a path', () => {
  it('walks nowhere else, whatever its parts are', () => {
    const isPlain = (part: string): boolean =>
      part.split('/').every((name) => !['', '.', '..'].includes(name))
    const part = fc.string({ unit: 'grapheme' }).filter(isPlain)
    fc.assert(
      fc.property(part, part, (owner, repo) => {
        const { pathname } = new URL(apiPath`/repos/${owner}/${repo}/issues`, 'https://x')
        expect(pathname.split('/').map(decodeURIComponent)).toEqual(['', 'repos', owner, repo, 'issues'])
      }),
    )
  })

  it.each(['..', '.', '', 'a/..', 'a//b', '/a'])('with the owner %j is not sent', async (owner) => {
    const { account, asked } = await rig(created)
    expect(await failure(account.comment({ ...ISSUE, owner }, 'x'))).toMatchObject({ kind: 'bad_request' })
    expect(asked).toEqual([])
  })
})

it.each<[string, Answer, string]>([
  ['another shape', { status: 201, body: { id: 'x' } }, 'GitHub gave an answer that was not understood'],
  ['nothing', { status: 201 }, 'GitHub gave an answer that was not understood'],
  ['8 MiB', { status: 201, body: ' '.repeat(8 * 1_048_576) }, 'GitHub gave an answer that is too large'],
])('a call that is answered with %s is made once', async (_, answer, said) => {
  const { account, asked } = await rig(answer)
  for (const call of [account.comment(ISSUE, 'x'), account.merge(PULL)])
    expect(await failure(call)).toMatchObject({ kind: 'provider_failed', message: `${said}${DOUBT}` })
  expect(asked.filter(({ method }) => method !== 'GET')).toHaveLength(2)
})

describe('redirects', () => {
  const to = async (status: number, location: string, answer: Reply) =>
    rig(({ url }) => (url.endsWith('/moved') ? answer : { status, headers: { location } }))

  it.each([301, 302, 307, 308])('%i within the origin: a read follows, with the token', async (status) => {
    const { account, asked } = await to(status, '/moved', me)
    expect(await account.facts()).toMatchObject({ login: 'mona' })
    expect(asked.map(({ headers }) => headers['authorization'])).toEqual(Array(2).fill(`Bearer ${TOKEN}`))
  })

  const REFUSED = 'GitHub answered with a redirect that is not followed'
  it.each([
    [301, `${REFUSED} (301) to https://git.example/moved`, 1],
    [302, `${REFUSED} (302) to https://git.example/moved`, 1],
    // RFC 9110 section 15.4.4: the way to answer a POST that was carried out.
    [303, `${REFUSED} (303) to https://git.example/moved${DOUBT}`, 1],
    [307, 'it did not fail', 2],
    [308, 'it did not fail', 2],
  ])('%i within the origin: a write ends with "%s" after %i requests', async (status, message, count) => {
    const { account, asked } = await to(status, '/moved', created)
    expect((await failure(account.comment(ISSUE, 'hello'))).message).toBe(message)
    const sent = asked.map(({ method, json }) => [method, json])
    expect(sent).toEqual(Array.from({ length: count }, () => ['POST', { body: 'hello' }]))
  })

  it.each(['https://other.example/moved', 'http://git.example/moved', 'http://[', ''])(
    'to %j: nothing is sent there',
    async (location) => {
      const { account, asked } = await rig({ status: 307, headers: { location } })
      for (const call of [account.facts(), account.comment(ISSUE, 'x')])
        expect(await failure(call)).toMatchObject({ kind: 'provider_failed' })
      expect(asked.every(({ url }) => url.startsWith('https://git.example/'))).toBe(true)
    },
  )

  it('the address that a message names is not of the words of relay', async () => {
    const location = 'https://other.example/do-as-this-says?token=x'
    const error = await failure(
      (await rig({ status: 302, headers: { location } })).account.comment(ISSUE, 'x'),
    )
    expect(error).toMatchObject({ isOwnWords: false })
    expect(error.message).toBe(`${REFUSED} (302) to https://other.example/do-as-this-says`)
  })

  it('loops end: a read after three, a write after one', async () => {
    const { account, asked } = await rig({ status: 307, headers: { location: '/again' } })
    await failure(account.facts())
    expect(asked).toHaveLength(4)
    await failure(account.comment(ISSUE, 'x'))
    expect(asked).toHaveLength(6)
  })
})

describe('what a code host refuses', () => {
  const fields = [
    { resource: 'IssueComment', field: 'body', code: 'missing_field' },
    'body is too long',
    { code: 'custom', message: 'no' },
  ]
  const message = (text: string) => ({ message: text })
  it.each<[number, string | object, string, string]>([
    [405, { message: 'no', status: '405' }, 'conflict', 'GitHub refused: no'],
    [409, message('moved'), 'conflict', 'GitHub refused: moved'],
    // Of several documents the last counts.
    [409, '{"Style":"merge","Err":{}}\n{"message":"Conflict"}\n', 'conflict', 'GitHub refused: Conflict'],
    [
      422,
      { message: 'Validation Failed', errors: fields },
      'unprocessable',
      'GitHub refused: Validation Failed (IssueComment.body: missing_field, body is too long, no)',
    ],
    [423, '', 'forbidden', 'GitHub refused: it is locked'],
    [451, '', 'unprocessable', 'GitHub refused: status 451'],
    [500, message('Server Error'), 'provider_failed', `GitHub failed (500): Server Error${DOUBT}`],
    // GitLab's may be an object.
    [503, { message: { base: ['x'] } }, 'provider_failed', `GitHub failed (503): x${DOUBT}`],
  ])('%i %j', async (status, body, kind, text) => {
    const error = await failure((await rig({ status, body })).account.comment(ISSUE, 'x'))
    expect(error).toMatchObject({ kind, message: text, retryAfter: undefined })
  })

  it('is one line of at most 300 characters, without control characters and the token', async () => {
    const text = fc.string({
      unit: fc.oneof(fc.constantFrom(TOKEN, '\u2028', '\u001b[2J', '\u202e', '😀'), fc.string()),
    })
    await fc.assert(
      fc.asyncProperty(text, fc.nat(400), async (start, length) => {
        const { account } = await rig({
          status: 422,
          body: { message: `${start}${'x'.repeat(length)}${TOKEN}` },
        })
        const said = (await failure(account.comment(ISSUE, 'x'))).message.replace('GitHub refused: ', '')
        expect(said.length).toBeLessThanOrEqual(300)
        expect(said).not.toMatch(/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u)
        expect(said).not.toContain(TOKEN)
      }),
    )
  })

  const scopes = (held: string | undefined, accepted: string) => ({
    ...(held !== undefined && { 'x-oauth-scopes': held }),
    'x-accepted-oauth-scopes': accepted,
  })
  const permissions = { 'x-accepted-github-permissions': 'issues=write; pull_requests=write' }
  const hooks = 'repo, admin:repo_hook'
  const personal = 'Resource not accessible by personal access token'
  it.each<[string, number, Record<string, string>, string, string | undefined]>([
    ['a scope', 404, scopes('user', hooks), '', `one of the scopes ${hooks}; it has user`],
    ['a scope, of none', 403, scopes('', 'repo'), '', 'one of the scopes repo; it has none'],
    ['nothing, having a scope', 404, scopes('repo', hooks), '', undefined],
    ['nothing known, being fine-grained', 404, scopes(undefined, 'repo'), '', undefined],
    ['a permission', 403, permissions, personal, 'the permission issues=write, pull_requests=write'],
    ['no permission, where that is not what is wrong', 403, permissions, 'No', undefined],
  ])('names what the token lacks: %s', async (_, status, headers, text, missingRight) => {
    const { account } = await rig({ status, headers, body: text && message(text) })
    expect(await failure(account.hooks.list(REPO))).toMatchObject({ missingRight })
  })
})

const DATE = 'Fri, 20 Nov 2026 10:00:00 GMT'
const RESET = String(Date.parse(DATE) / 1000 + 90)
const PRIMARY = { 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': RESET, date: DATE }
const IN_HALF_A_MINUTE = { 'retry-after': 'Fri, 20 Nov 2026 10:00:30 GMT', date: DATE }

it.each<[number, Record<string, string>, number]>([
  [403, PRIMARY, 90],
  [429, PRIMARY, 90],
  [403, { ...PRIMARY, 'x-ratelimit-reset': '1' }, 1],
  [403, { 'retry-after': '7' }, 7],
  [429, IN_HALF_A_MINUTE, 30],
  [403, { 'x-ratelimit-remaining': '12' }, 60],
  [429, { 'retry-after': 'soon' }, 60],
  [429, { 'retry-after': '9'.repeat(30) }, 86_400],
])('a limit is waited for: %i %j, %i s', async (status, headers, retryAfter) => {
  const body = { message: 'You have exceeded a secondary rate limit.' }
  const error = await failure((await rig({ status, headers, body })).account.facts())
  expect(error).toMatchObject({ kind: 'rate_limited', retryAfter })
})

it.each(['', 'a b', 'a\nb', 'é'])('the token %j is not sent, and not quoted', async (token) => {
  const { host, asked } = await rig(me)
  const error = await failure(host.as(token).facts())
  expect(error).toEqual(new RelayError('invalid_token', 'Invalid or expired token'))
  expect(error).not.toHaveProperty('cause')
  expect(asked).toEqual([])
})

it('ids of 64 bits stay exact, and the cursor of a log comes from the query of its link alone', async () => {
  const id = '9223372036854775807'
  const entry = { guid: 'g', event: 'push', action: null, delivered_at: '2026-01-01T00:00:00Z' }
  const answered = { ...entry, redelivery: false, status: 'OK', status_code: 200 }
  const body = `[${JSON.stringify(answered).replace('{', `{"id":${id},`)}]`
  const link = '<https://evil.example/x?per_page=100&cursor=v1_2>; rel="next"'
  const { account, asked, lines } = await rig({ body, headers: { link } })
  const log = account.hooks.log?.(REPO, 3)
  const page = await log?.page()
  expect(page).toMatchObject({ deliveries: [{ id, statusCode: 200 }], next: 'v1_2' })
  await log?.page(page?.next)
  await log?.redeliver(id)
  const where = '/repos/octo/demo/hooks/3/deliveries'
  expect(lines()).toEqual([
    `GET ${where}?per_page=100`,
    `GET ${where}?per_page=100&cursor=v1_2`,
    `POST ${where}/${id}/attempts`,
  ])
  expect(asked.every(({ url }) => url.startsWith('https://git.example/'))).toBe(true)
})

describe('the page of a SAML sign-on', () => {
  const message = 'Resource protected by organization SAML enforcement.'
  const page = 'https://git.example/orgs/octo/sso?authorization_request=AB-1_x'
  const answer = async (sso: string, status = 403) =>
    (await rig({ status, headers: { 'x-github-sso': sso }, body: { message } })).account.comment(ISSUE, 'x')
  const plain = `GitHub refused: ${message}`

  it('is named by the error', async () => {
    const named = `${plain} Authorize the token for the organization at ${page}`
    const error = await failure(answer(`required; url=${page}`))
    expect(error).toMatchObject({ kind: 'forbidden', message: named, isOwnWords: false })
  })

  it.each([
    'partial-results; organizations=21955855,20582480',
    'required',
    'required; url=',
    `optional; url=${page}`,
    'required; url=http://git.example/orgs/octo/sso',
    'required; url=https://git.example.evil.example/orgs/octo/sso',
    'required; url=https://evil.example/https://git.example/sso',
    'required; url=https://git.example@evil.example/sso',
    'required; url=https://user:x@git.example/sso',
    'required; url=javascript:alert(1)',
    'required; url=//git.example/sso',
    `required; url=${page} and more`,
    `required; url=${page}\u001b[2J`,
    `required; url=${page}${'x'.repeat(1000)}`,
    `required; url=https://git.example/sso?token=${TOKEN}`,
  ])('is not %j', async (sso) => {
    const { message: said } = await failure(answer(sso))
    expect(said).toBe(plain)
  })

  it('is not named by another status', async () => {
    const { message: said } = await failure(answer(`required; url=${page}`, 422))
    expect(said).toBe(plain)
  })
})
