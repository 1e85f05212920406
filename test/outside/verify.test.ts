import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, it } from 'vitest'
import type { Fixture } from 'webhook-relay/testing'
import {
  type DeliveryOptions,
  giteaDelivery,
  githubDelivery,
  SECRET,
  sign,
  type WebhookRequest,
} from '../kit/delivery.js'
import { emptyFolder, type Env } from '../kit/folder.js'
import { fill } from '../kit/journal.js'
import { fails, prints, type Ran, run, type RunContext, start } from '../kit/run.js'
import { bare, opened } from './example.js'
import { json } from './fixture.js'

const env = { RELAY_WEBHOOK_SECRET: SECRET }
const FORM = 'application/x-www-form-urlencoded'
const form = (payload: string): string => new URLSearchParams({ payload }).toString()
const BODY = '{"action":"opened","zen":"<é> \\u001B"}'
const GITEA_BODY = '{\n  "zen": "\\u003cé\\u003e"\n}'

/** The file of a request, every header line in it. */
function fixture(provider: string, { headers, body }: WebhookRequest): Fixture {
  const names = [...new Set(headers.map(([name]) => name))]
  const lines = names.map((name) => headers.filter(([each]) => each === name).map(([, value]) => value))
  return {
    relay: 1,
    provider,
    event: 'push',
    delivery: 'id-1',
    headers: Object.fromEntries(names.map((name, i) => [name, lines[i] ?? []])),
    body: Buffer.from(body).toString(),
  }
}

const github = (options: DeliveryOptions = {}) =>
  fixture('github', githubDelivery({ body: BODY, id: 'id-1', ...options }))
const gitea = (options: DeliveryOptions = {}) =>
  fixture('gitea', giteaDelivery({ body: GITEA_BODY, id: 'id-1', ...options }))
/** Runs the command with the secret. */
function verify(argv: readonly string[], { env: more, ...over }: Partial<RunContext>): Promise<Ran> {
  return run(['verify', ...argv], { ...over, env: { ...env, ...more } })
}

const headers = (set: DeliveryOptions['set']) => ({ set: { 'X-Hub-Signature-256': undefined, ...set } })

/** A folder with these fixtures. */
function folder(files: Readonly<Record<string, Fixture | string>>): string {
  const cwd = emptyFolder()
  for (const [name, content] of Object.entries(files))
    writeFileSync(path.join(cwd, name), typeof content === 'string' ? content : JSON.stringify(content))
  return cwd
}

const digest = sign(SECRET, Buffer.from(BODY)).slice('sha256='.length)
const WANTED = 'expected X-Hub-Signature-256: sha256=<64 lower-case hex digits>'

const OTHER = 'signed with another secret, or the body was changed on its way'
const NEWLINE = "the sender's secret ends in a newline, relay's does not"
const MISSING = 'there is no X-Hub-Signature-256: does the webhook have a secret at the code host?'

describe('relay verify, of each fault', () => {
  const RE_ENCODED = 'the body was re-encoded on its way: it was signed as'
  const COVERS = 'the signature covers the'
  const compact = JSON.stringify(JSON.parse(GITEA_BODY))
  const spaced = JSON.stringify(JSON.parse(BODY), null, 4)
  const SHA1 = { 'X-Hub-Signature': `sha1=${'a'.repeat(40)}` }
  const EMPTY = { 'X-Hub-Signature-256': 'sha256=', 'X-Gitea-Signature': '' }

  it.each<[string, Fixture, string, Record<string, string>?]>([
    ['wrong_secret', github({ secret: 'other' }), OTHER],
    ['secret_white_space', github({ secret: `${SECRET}\n` }), NEWLINE],
    [
      'secret_white_space',
      github(),
      "relay's secret has white space at its end, the sender's does not",
      { RELAY_WEBHOOK_SECRET: `${SECRET} ` },
    ],
    [
      're_encoded',
      github({ signed: BODY, body: spaced }),
      `${RE_ENCODED} compact JSON with upper-case escapes, as GitHub writes it`,
    ],
    [
      're_encoded',
      gitea({ signed: GITEA_BODY, body: compact }),
      `${RE_ENCODED} two-space indented JSON with Go's escapes, as Gitea writes it`,
    ],
    [
      'form',
      github({ signed: BODY, body: form(BODY), type: FORM }),
      `${COVERS} JSON inside the form, as Gitea signs: is the provider right?`,
    ],
    [
      'form',
      gitea({ body: form(GITEA_BODY), type: FORM }),
      `${COVERS} form as sent, as GitHub signs: is the provider right?`,
    ],
    ['form', github({ signed: form(BODY) }), `${RE_ENCODED} a form`],
    ['form', gitea({ type: FORM }), 'Content-Type says form, but the body is not a form'],
    ['only_sha1', github(headers(SHA1)), `there is only a SHA-1 signature (X-Hub-Signature), ${WANTED}`],
    [
      'wrong_header',
      github(headers({ 'X-Gitea-Signature': digest })),
      `the signature is in X-Gitea-Signature, ${WANTED}; otherwise it is right`,
    ],
    [
      'truncated',
      github({ signed: BODY, body: BODY.slice(0, 20) }),
      'the body seems cut off: its JSON is incomplete after 20 bytes',
    ],
    [
      'truncated',
      github({ signed: `${BODY}x`, set: { 'Content-Length': '1000' } }),
      `the body is cut off: only ${Buffer.byteLength(BODY)} of 1000 bytes arrived`,
    ],
    [
      'empty_signature',
      gitea(headers(EMPTY)),
      'the signature is empty: the webhook has no secret at the code host',
    ],
    [
      'malformed_signature',
      github(headers({ 'X-Hub-Signature-256': digest })),
      `X-Hub-Signature-256 lacks the prefix sha256=, ${WANTED}; otherwise it is right`,
    ],
    [
      'repeated_signature',
      github(headers({ 'X-Hub-Signature-256': [`sha256=${digest}`, `sha256=${digest}`] })),
      'X-Hub-Signature-256 is given more than once',
    ],
    ['no_signature', github(headers({})), MISSING],
  ])('%s: $2', async (reason, file, hint, over = {}) => {
    const cwd = folder({ 'a.json': file })
    const error = 'The signature does not match'
    const { provider } = file
    const result = { name: 'a.json', provider, event: 'push', delivery: 'id-1', valid: false, reason, hint }
    const [said, object] = await Promise.all([
      verify(['a.json'], { cwd, env: over }),
      verify(['a.json', '--json'], { cwd, env: over }),
    ])
    expect(said).toEqual({ ...fails(5, error), out: `invalid  a.json  ${hint}\n` })
    const failure = { v: 1, type: 'error', code: 'invalid_signature', error }
    const printed = { code: object.code, out: JSON.parse(object.out), err: JSON.parse(object.err) }
    expect(printed).toEqual({ code: 5, out: { v: 1, type: 'signature', ...result }, err: failure })
  })
})

describe('relay verify', () => {
  it('says with which secret it is signed, exit 0', async () => {
    const cwd = folder({ 'a.json': github(), 'long-name.json': github({ secret: 'old' }) })
    const over = { cwd, env: { RELAY_WEBHOOK_SECRET_PREVIOUS: 'old' } }
    expect(await verify(['a.json', 'long-name.json'], over)).toEqual(
      prints('valid    a.json\nvalid    long-name.json  signed with the previous secret\n'),
    )
    const of = { name: 'long-name.json', provider: 'github', event: 'push', delivery: 'id-1' }
    const found = await json(verify(['long-name.json', '--json'], over))
    expect(found).toEqual({ v: 1, type: 'signature', ...of, valid: true, by: 'previous' })
  })

  it('takes folders and standard input, and counts what does not fit', async () => {
    const cwd = folder({ 'a.json': github(), 'b\u001b[2J.json': github({ secret: 'other' }) })
    const stdin = JSON.stringify(gitea())
    expect(await verify(['.', '-'], { cwd, stdin })).toEqual({
      ...fails(5, '1 of 3 signatures do not match'),
      out: ['valid    a.json\n', `invalid  b\\u{1b}[2J.json  ${OTHER}\n`, 'valid    standard input\n'].join(
        '',
      ),
    })
  })

  it('keeps within the lines of a terminal', async () => {
    const cwd = folder({ 'a.json': github({ secret: `${SECRET}\n` }), 'name.json': github(headers({})) })
    const terminal = { columns: 66, streams: ['stdout'] } as const
    const { out } = await verify(['.'], { cwd, terminal, env: { NO_COLOR: '1' } })
    expect(out.split('\n')).toEqual([
      'invalid  a.json',
      `         ${NEWLINE}`,
      'invalid  name.json',
      '         there is no X-Hub-Signature-256: does the webhook have a',
      '             secret at the code host?',
      '',
    ])
  })

  it('ends between two fixtures when it is interrupted', async () => {
    // Explaining a large body takes a while.
    const large = JSON.stringify({ text: 'x'.repeat(2_000_000) })
    const slow = github({ secret: 'other', body: large })
    const cwd = folder({ 'a.json': github(), 'b.json': slow, 'c.json': github() })
    await using running = start(['verify', '.'], { cwd, env })
    await running.prints('valid    a.json\n')
    const { code, out } = await running.stop('SIGINT')
    expect({ code, last: out.includes('c.json') }).toEqual({ code: 130, last: false })
  })

  it('takes entries of the journal', async () => {
    await using here = await bare({ env })
    const { headers, body } = githubDelivery({ body: BODY })
    await fill(here, [opened('a', { headers, body }), opened('b', { headers, body: '{}' })])
    expect(await here.run('verify', '1')).toEqual(prints('valid    #1\n'))
    expect((await here.run('verify', 'last')).code).toBe(5)
    const none = 'The journal has no entry #9. Its entries are #1 to #2'
    expect(await here.run('verify', '9')).toEqual(fails(6, none))
  })

  it('takes the secret of a variable, of a file, or of the profile', async () => {
    const cwd = folder({ 'a.json': github(), secret: `${SECRET}\n`, windows: `${SECRET}\r\n` })
    const code = async (variables: Env, ...flags: string[]) =>
      (await run(['verify', 'a.json', ...flags], { cwd, env: variables })).code
    expect(await code({ MINE: SECRET, RELAY_WEBHOOK_SECRET: 'other' }, '--secret-env', 'MINE')).toBe(0)
    expect(await code({ MINE: 'x', RELAY_WEBHOOK_SECRET_PREVIOUS: SECRET }, '--secret-env', 'MINE')).toBe(5)
    expect(await code({ RELAY_WEBHOOK_SECRET_FILE: 'secret' })).toBe(0)
    expect(await code({ RELAY_WEBHOOK_SECRET_FILE: 'windows' })).toBe(0)
    await using here = await bare()
    const relay = await here.serve()
    const { out } = await here.run('config', '--reveal', 'webhookSecret')
    writeFileSync(path.join(cwd, 'made.json'), JSON.stringify(github({ secret: out.trim() })))
    expect((await here.runWith({ cwd }, 'verify', 'made.json')).code).toBe(0)
    await relay.stop()
    expect((await here.runWith({ cwd }, 'verify', 'made.json')).code).toBe(0)
    expect((await here.runWith({ cwd }, 'verify', 'a.json')).code).toBe(5)
  })

  it('shows no secret, and no signature that would be right', async () => {
    const cwd = folder({
      'a.json': github({ secret: 'other' }),
      'b.json': github(headers({ 'X-Signature': 'f'.repeat(64) })),
      'c.json': github({ signed: BODY, body: JSON.stringify(JSON.parse(BODY)) }),
    })
    for (const flags of [[], ['--json'], ['--verbose']]) {
      const { out, err } = await verify(['.', ...flags], { cwd, env: { RELAY_DEBUG: '1' } })
      expect(out).toContain('c.json')
      expect(out + err).not.toMatch(/[0-9a-f]{40}|Secret to Everybody/)
    }
  })
})
