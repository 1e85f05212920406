import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, it } from 'vitest'
import { loadFixture, signedRequest } from 'webhook-relay/testing'
import { githubDelivery, type Header, post, SECRET, sign } from '../kit/delivery.js'
import { emptyFolder } from '../kit/folder.js'
import { type Place, place, type Serving } from '../kit/place.js'
import { receiver, valuesOf } from '../kit/receiver.js'
import { SENDERS } from '../kit/senders.js'

const random = (length: number): string => 'aB3dE6gH9kL2nP5rS8uV1xY4zC7f0'.repeat(4).slice(0, length)
/** Secrets by where they stand. Made here, and none of them is real. */
const TOKENS: Readonly<Record<string, string>> = {
  github: `ghp_${random(36)}`,
  fine: `github_pat_${random(40)}`,
  gitlab: `glpat-${random(20)}`,
  stripe: ['sk', 'live', random(24)].join('_'),
  slack: ['xoxb', '123456789012', random(24)].join('-'),
  aws: ['AKIA', 'Q7RSTUVWXY2Z3456'].join(''),
  google: `AIza${random(35)}`,
  jwt: `eyJhbGciOiJIUzI1NiJ9.${random(20)}.${random(30)}`,
  npm: `npm_${random(36)}`,
  openai: `sk-proj-${random(32)}`,
  pem: `-----BEGIN RSA PRIVATE KEY-----\n${random(64)}\n-----END RSA PRIVATE KEY-----`,
}
const EMAILS = ['alice@corp.example', 'bob.smith+x@mail.corp.example', '1234+ada@users.noreply.github.com']
const NAMED = [
  'password',
  'client_secret',
  'apiKey',
  'access-token',
  'refresh_token',
  'private_key',
  'passphrase',
  'Authorization',
  'session_id',
  'pwd',
  'webhookSecret',
]

/** What the payload says besides, which stays. */
const HARMLESS = {
  ref: 'refs/heads/main',
  after: '6113728f27ae82c7b1a177c8d03f9e96e0adf246',
  node_id: 'MDEwOlJlcG9zaXRvcnkxODY4NTMwMDI',
  big: 1,
  ssh_url: 'git@github.com:octo/demo.git',
  html_url: 'https://github.com/octo/demo/pull/2#issuecomment-5',
  nothing: null,
  token_type: 'bearer',
}

const MARKS = [...Object.values(TOKENS), ...EMAILS, ...NAMED.map((name) => `value-of-${name}`)]

function payload(): Record<string, unknown> {
  return {
    ...HARMLESS,
    repository: { full_name: 'octo/demo' },
    commits: EMAILS.map((email) => ({
      author: { email, name: 'A' },
      message: `Signed-off-by: A <${email}>`,
    })),
    [EMAILS[0] ?? '']: 'as a name',
    note: Object.values(TOKENS).join(' and '),
    links: [
      `https://user:value-of-password@host.example/x?token=value-of-access-token&page=2`,
      `https://value-of-refresh_token@host.example/x#access_token=value-of-apiKey`,
      `https://host.example/?email=${encodeURIComponent(EMAILS[1] ?? '')}`,
    ],
    settings: Object.fromEntries(NAMED.map((name) => [name, `value-of-${name}`])),
    credentials: { user: 'value-of-pwd', nested: [{ x: 'value-of-passphrase' }], pin: 1234 },
    text: NAMED.map((name) => `${name}: value-of-${name}\n${name}=value-of-${name}`).join('\n'),
    inner: JSON.stringify({ password: 'value-of-password', to: EMAILS[0] }),
    header: `curl -H "Authorization: Bearer ${TOKENS['jwt']}" https://x.example`,
  }
}

async function exported(here: Place, ...flags: string[]) {
  const { code, out, err } = await here.run('export', 'last', ...flags)
  expect([code, code === 0 ? '' : err]).toEqual([0, ''])
  return { fixture: JSON.parse(out), out, err }
}

/** The names and kinds of what a value holds. */
function shapeOf(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(shapeOf)
  if (typeof value !== 'object' || value === null) return typeof value
  return Object.entries(value).map(([name, inner]) => [name.includes('@') ? '@' : name, shapeOf(inner)])
}

async function take(
  relay: Serving,
  headers: readonly Header[],
  body: string,
  at = '/webhook',
): Promise<void> {
  const { status } = await post(relay.address + at, { headers, body: Buffer.from(body) })
  expect(status).toBe(200)
}

function leftIn(text: string): string[] {
  const plain = text.replaceAll(String.raw`\n`, '\n')
  const all = `${text}\n${plain}\n${decodeURIComponent(plain.replaceAll(/%(?![0-9a-f]{2})/gi, '%25')).replaceAll('+', ' ')}`
  return MARKS.filter((mark) => all.includes(mark) || all.includes(mark.replaceAll('\n', String.raw`\n`)))
}

describe('relay export --redact', () => {
  const bodies: Readonly<Record<string, [type: string, body: string]>> = {
    JSON: ['application/json', JSON.stringify(payload())],
    'indented JSON': ['application/json', `${JSON.stringify(payload(), null, 2)}\n`],
    'a form with JSON': [
      'application/x-www-form-urlencoded',
      `payload=${encodeURIComponent(JSON.stringify(payload()))}`,
    ],
  }

  it.each(Object.keys(bodies))('leaves nothing secret in %s, and its structure', async (kind) => {
    await using here = await place({ host: 'none' })
    const relay = await here.serve()
    const [type = '', body = ''] = bodies[kind] ?? []
    const { headers } = githubDelivery({ body })
    const lines = headers.map(([name, value]): Header =>
      /^content-type$/i.test(name) ? [name, type] : [name, value],
    )
    await take(relay, [...lines, ['X-Note', `mail ${EMAILS[0]}`], ['X-Api-Key', TOKENS['aws'] ?? '']], body)
    const { fixture, out, err } = await exported(here, '--redact')
    expect(leftIn(out)).toEqual([])
    expect(err).toBe('')
    expect(Object.keys(fixture.headers).filter((name) => /signature|key/i.test(name))).toEqual([])
    const text = kind.includes('form') ? new URLSearchParams(fixture.body).get('payload') : fixture.body
    const made = JSON.parse(text ?? '')
    expect(made).toMatchObject(HARMLESS)
    expect(shapeOf(made)).toEqual(shapeOf(payload()))
    // What was equal stays equal, and what was not does not become so.
    const emails = made.commits.map(({ author }: { author: { email: string } }) => author.email)
    expect(new Set(emails).size).toBe(EMAILS.length)
    expect(made.commits.map(({ message }: { message: string }) => message)).toEqual(
      emails.map((email: string) => `Signed-off-by: A <${email}>`),
    )
    expect(made.settings.password).not.toBe(made.settings.pwd)
    expect(text?.includes('\n  "ref": "refs/heads/main"')).toBe(kind === 'indented JSON')
  })

  it('leaves out the signature of every scheme, and signs with its own key when it is replayed', async () => {
    for (const {
      scheme,
      secret,
      sign: signWith,
      body,
      bodyAt,
      type = 'application/json',
      proof,
    } of Object.values(SENDERS)) {
      await using here = await place({ host: 'none' })
      await using target = await receiver()
      const env = { RELAY_SOURCES: `own=${scheme}`, RELAY_SOURCE_OWN_SECRET: secret }
      const relay = await here.serveWith({ env })
      const now = Date.now()
      const sent = bodyAt?.(now) ?? body
      await take(
        relay,
        [['Content-Type', type], ...(await signWith(sent, secret, now))],
        sent,
        '/webhook/own',
      )
      const { fixture, out } = await exported(here, '--redact')
      expect([
        scheme,
        Object.keys(fixture.headers)
          .map((name) => name.toLowerCase())
          .filter((name) => name === proof),
      ]).toEqual([scheme, []])
      expect([scheme, typeof fixture.secret, out.includes(secret) || out.includes(SECRET)]).toEqual([
        scheme,
        'string',
        false,
      ])
      const file = path.join(emptyFolder(), 'f.json')
      writeFileSync(file, out)
      const replayed = await here.runWith({ env }, 'replay', file, '--to', target.url)
      expect([scheme, replayed.code, replayed.err]).toEqual([scheme, 0, '1 sent\n'])
      // A receiver with the fixture's key takes it, as this other relay does.
      await using there = await place({ host: 'none' })
      const other = await there.serveWith({
        env: { RELAY_SOURCES: `own=${scheme}`, RELAY_SOURCE_OWN_SECRET: fixture.secret },
      })
      const [got] = target.received
      const { status } = await post(`${other.address}/webhook/own`, {
        headers: (got?.headers ?? []).filter(([name]) => !/^(host|connection|content-length)$/i.test(name)),
        body: got?.body ?? Buffer.of(),
      })
      expect([scheme, status]).toEqual([scheme, 200])
    }
  })

  it('is signed by the testing kit, and by the profile for the running relay', async () => {
    await using here = await place({ host: 'none' })
    const relay = await here.serve()
    await relay.deliver()
    const file = path.join(emptyFolder(), 'f.json')
    expect(await here.run('export', 'last', '--redact', '--pretty', '--out', file)).toMatchObject({ code: 0 })
    const fixture = await loadFixture(file)
    const request = signedRequest(fixture)
    const body = Buffer.from(await request.clone().arrayBuffer())
    expect(request.headers.get('x-hub-signature-256')).toBe(sign(fixture.secret ?? '', body))
    expect(await here.run('replay', file)).toMatchObject({ code: 0 })
    await using target = await receiver()
    const argv = ['replay', file, '--secret-env', 'OTHER', '--to', target.url]
    expect(await here.runWith({ env: { OTHER: 'other' } }, ...argv)).toMatchObject({ code: 0 })
    const [got] = target.received
    expect(got && valuesOf(got, 'x-hub-signature-256')).toEqual([sign('other', got?.body ?? '')])
  })

  it('says without it that the real signature is in the file, if it is', async () => {
    await using here = await place({ host: 'none' })
    const relay = await here.serve('--source', 'open=none')
    await relay.deliver()
    const told = /real signature.*--redact/
    expect((await exported(here)).err).toMatch(told)
    await take(relay, [['Content-Type', 'text/plain']], 'x', '/webhook/open')
    expect((await exported(here)).err).toBe('')
  })

  it('takes text, XML and forms of fields, and refuses what is not text', async () => {
    await using here = await place({ host: 'none' })
    const relay = await here.serve('--source', 'open=none')
    const texts = [
      `password: value-of-password\nmail alice@corp.example`,
      `<a><password>value-of-password</password><mail>alice@corp.example</mail></a>`,
      `--b\r\nContent-Disposition: form-data; name="x"\r\n\r\ntoken=value-of-apiKey alice@corp.example\r\n--b--`,
      `password=value-of-password&mail=alice%40corp.example&n=1`,
    ]
    for (const [i, text] of texts.entries()) {
      const type = i === 3 ? 'application/x-www-form-urlencoded' : 'text/plain'
      await take(relay, [['Content-Type', type]], text, '/webhook/open')
      const { out } = await exported(here, '--redact')
      expect([text, leftIn(out)]).toEqual([text, []])
    }
    const bytes = Buffer.from([0xff, 0xfe, 0x00])
    await post(`${relay.address}/webhook/open`, {
      headers: [['Content-Type', 'application/octet-stream']],
      body: bytes,
    })
    expect(await here.run('export', 'last', '--redact')).toMatchObject({
      code: 2,
      out: '',
      err: expect.stringContaining('not text'),
    })
  })

  it.each([
    ['nested JSON', '['.repeat(500_000)],
    ['letters', `x@${'a'.repeat(1_000_000)}`],
    ['addresses', `[${'"a@b.example",'.repeat(70_000)}1]`],
    ['other addresses', Array.from({ length: 50_000 }, (_, i) => `a${i}@b.example`).join(' ')],
    ['names with values', Array.from({ length: 50_000 }, (_, i) => `token=abcdef${i}`).join('&')],
    ['starts of tokens', 'eyJ-'.repeat(250_000)],
    ['assignments', 'a='.repeat(500_000)],
    ['the beginnings of keys', '-----BEGIN A PRIVATE KEY'.repeat(40_000)],
    ['the start of an element', '<aa '.repeat(250_000)],
  ])('ends, whatever a stranger has written: %s', { timeout: 30_000 }, async (_, text) => {
    await using here = await place({ host: 'none' })
    const relay = await here.serve('--source', 'open=none')
    await take(relay, [['Content-Type', 'text/plain']], text, '/webhook/open')
    expect(await here.run('export', 'last', '--redact')).toMatchObject({ code: 0 })
  })

  it('changes nothing that GitHub’s examples need: shas, ids, names and addresses of repositories', async () => {
    await using here = await place({ host: 'none' })
    const relay = await here.serve()
    for (const name of readdirSync('fixtures/github').filter((file) => !file.includes('.form.'))) {
      const { body = '', payload: given } = JSON.parse(readFileSync(`fixtures/github/${name}`, 'utf8'))
      const text = body || JSON.stringify(given)
      const { headers } = githubDelivery({ body: text, id: name })
      await take(relay, headers, text)
      const made = JSON.parse((await exported(here, '--redact')).fixture.body ?? '')
      const lost = changed(JSON.parse(text), made).filter(([before]) => !/@|secret|-----BEGIN/.test(before))
      expect([name, lost]).toEqual([name, []])
    }
  })
})

/** The texts that differ between two values of one shape. */
function changed(before: unknown, after: unknown): [before: string, after: string][] {
  if (typeof before === 'object' && before !== null) {
    const [old, made] = [Object.entries(before), Object.entries(Object(after))]
    return old.flatMap(([, value], i) => changed(value, made[i]?.[1]))
  }
  return before === after ? [] : [[String(before), String(after)]]
}
