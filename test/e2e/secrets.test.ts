import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, it } from 'vitest'
import { startSandbox, type TestSandbox } from '../../src/testing/index.js'
import { openDatabase } from '../../src/store/open.js'
import { action, CLIENT, codeHost } from '../helpers/code-host.js'
import { emptyFolder } from '../helpers/context.js'
import { githubDelivery, post } from '../helpers/delivery.js'
import { describeWith } from '../helpers/needs.js'
import { type Ended, Program, relay } from '../helpers/program.js'
import { beginSignIn, finishSignIn, signIn } from '../helpers/sign-in.js'

const WEBHOOK_SECRETS = {
  RELAY_WEBHOOK_SECRET: 'canary-webhook-secret',
  RELAY_WEBHOOK_SECRET_PREVIOUS: 'canary-previous-secret',
}
/** All that can be said is said, so that what must not be said would show. */
const LOUD = { RELAY_DEBUG: '1' }
const SERVE = ['serve', '--port', '0', '--json', '--verbose']
const SANDBOX = [...SERVE, '--sandbox', '--sandbox-port', '0']

const COMMENT = { owner: 'octo', repo: 'demo', issueNumber: 1, body: 'hello' }
/** So short that `relay token` renews each, and yet usable for the length of a test. */
const LIFETIMES = { access: 50, refresh: 3600 }

/** What a run said to anybody, and what it must not have said. */
class Run {
  readonly #said: string[] = []
  readonly #secrets = new Map<string, string>()
  readonly #folder: string

  /** `folder` is the profile's. */
  constructor(folder: string, secrets: Readonly<Record<string, string>> = {}) {
    this.#folder = folder
    for (const [name, secret] of Object.entries(secrets)) this.secret(name, secret)
  }

  secret(name: string, value: string): void {
    if (value.length < 8) throw new Error(`no secret to look for: ${name}`)
    this.#secrets.set(value, name)
  }

  /** What a command or a service said; `result` is what a command was run for, and is a secret. */
  heard({ out, err }: Ended, result = ''): void {
    this.#said.push(result === '' ? out : out.replaceAll(result, ''), err)
  }

  /** Makes a request; keeps its answer, and gives the status. */
  async call(url: string, init?: RequestInit): Promise<number> {
    const response = await fetch(url, { redirect: 'manual', ...init })
    this.#said.push(JSON.stringify([...response.headers]), await response.text())
    return response.status
  }

  async deliver(url: string, secret: string, body: string): Promise<number> {
    const answer = await post(`${url}/webhook`, githubDelivery({ secret, body }))
    this.#said.push(answer.body)
    return answer.status
  }

  /** Begins a sign-in, and reads its PKCE verifier from the store; the cookie is a secret too. */
  async begin(url: string, userId: string) {
    const begun = await beginSignIn(`${url}/auth/sandbox?userId=${userId}`)
    this.secret('cookie', begun.cookie.split('=')[1] ?? '')
    await this.readStore()
    return begun
  }

  /** Whatever the profile keeps secret now. */
  async readStore(): Promise<void> {
    await using database = await openDatabase({ kind: 'file', folder: this.#folder })
    for (const key of await database.store.list('')) {
      const row = Object(await database.store.get(key))
      for (const field of ['accessToken', 'refreshToken', 'verifier', 'secret', 'key'])
        if (typeof row[field] === 'string') this.secret(`${key.split(':')[0]} ${field}`, row[field])
    }
  }

  /** The kinds of secrets there were, and those that were said. */
  result() {
    const said = this.#said.join('\n')
    const told = [...this.#secrets].flatMap(([secret, name]) => (said.includes(secret) ? [name] : []))
    return { kinds: [...new Set(this.#secrets.values())].toSorted(), told, length: said.length }
  }
}

/** Sign-ins that fail in the middle, each in its own way. */
async function failToSignIn(run: Run, url: string, sandbox?: TestSandbox): Promise<void> {
  const cancelled = await finishSignIn(await run.begin(url, 'bob'), 'cancel')
  expect(cancelled.location).toContain('reason=access_denied')
  const begun = await run.begin(url, 'bob')
  const elsewhere = await finishSignIn({ ...begun, cookie: 'other=1' })
  expect(elsewhere.location).toContain('reason=invalid_state')
  for (const fault of ['502', 'invalid-json', 'reset'] as const) {
    sandbox?.faults.next('token', fault)
    if (sandbox) await finishSignIn(await run.begin(url, 'bob'))
  }
}

describe('no secret is in any log line, answer or stack trace', () => {
  it('of a run with everything in it', async () => {
    await using sandbox = await startSandbox({ client: CLIENT, lifetimes: LIFETIMES })
    const home = emptyFolder()
    const secrets = { ...WEBHOOK_SECRETS, client: CLIENT.secret }
    const run = new Run(path.join(home, 'default'), secrets)
    const env = { RELAY_HOME: home, ...LOUD, ...codeHost(sandbox), ...WEBHOOK_SECRETS }
    await using program = new Program(SERVE, env)
    const url = await program.url()

    const { code, state } = await finishSignIn(await run.begin(url, 'ada'))
    run.secret('code', code)
    run.secret('state', state)
    await run.readStore()
    await failToSignIn(run, url, sandbox)
    expect(await run.call(`${url}/auth/sandbox/callback?code=${code}&state=${state}`)).toBe(302)
    const printed = await relay(['token', '--user', 'ada', '--verbose'], env)
    const token = printed.out.trim()
    expect(token).toMatch(/^gho_/)
    run.heard(printed, token)
    await run.readStore()

    const act = (name: string, body: unknown, bearer = token): Promise<number> =>
      run.call(`${url}/api/${name}`, action(bearer, body))
    expect(await act('comment', COMMENT)).toBe(200)
    expect(await act('comment', { ...COMMENT, owner: '..' })).toBe(400)
    expect(await act('comment', { ...COMMENT, issueNumber: 404 })).toBe(404)
    expect(await act('comment', COMMENT, `${token}x`)).toBe(401)
    for (const fault of ['502', 'rate-limit', 'reset', 'reset-after', 'invalid-json'] as const) {
      sandbox.faults.next('comment', fault)
      expect([429, 502]).toContain(await act('comment', COMMENT))
    }
    const { RELAY_WEBHOOK_SECRET: current, RELAY_WEBHOOK_SECRET_PREVIOUS: previous } = WEBHOOK_SECRETS
    expect(await run.deliver(url, current, '{}')).toBe(200)
    expect(await run.deliver(url, previous, '{}')).toBe(200)
    expect(await run.deliver(url, 'wrong', '{}')).toBe(401)
    expect(await run.deliver(url, current, '{')).toBe(400)

    // A renewal that fails, and one that is refused.
    sandbox.faults.next('token', '502')
    run.heard(await relay(['token', '--user', 'ada', '--verbose'], env), token)
    expect(await run.call(`${url}/auth/token/ada`, { method: 'DELETE' })).toBe(200)
    run.heard(await relay(['token', '--user', 'ada', '--verbose'], env))

    const ended = await program.stop()
    expect(ended.code).toBe(0)
    run.heard(ended)
    expect(run.result()).toEqual({
      kinds: [
        'RELAY_WEBHOOK_SECRET',
        'RELAY_WEBHOOK_SECRET_PREVIOUS',
        'client',
        'code',
        'cookie',
        'instance key',
        'oauth-state verifier',
        'refresh refreshToken',
        'state',
        'token accessToken',
      ],
      told: [],
      length: expect.toSatisfy((length: number) => length > 2000),
    })
  })

  it('of a run with an embedded sandbox', async () => {
    const home = emptyFolder()
    const folder = path.join(home, 'sandbox')
    const run = new Run(folder)
    await using program = new Program(SANDBOX, { RELAY_HOME: home, ...LOUD })
    const url = await program.url()
    run.secret('webhook', readFileSync(path.join(folder, 'webhook-secret'), 'utf8').trim())
    await finishSignIn(await run.begin(url, 'ada'))
    await failToSignIn(run, url)
    await run.readStore()
    const printed = await relay(['token', '--user', 'ada'], { RELAY_HOME: home, RELAY_PROFILE: 'sandbox' })
    expect(await run.call(`${url}/api/comment`, action(printed.out.trim(), COMMENT))).toBe(200)
    await program.object({ event: 'issue_comment' })
    const ended = await program.stop()
    expect(ended.code).toBe(0)
    run.heard(ended)
    expect(run.result()).toEqual({
      kinds: [
        'cookie',
        'instance key',
        'oauth-state verifier',
        'sandbox-client secret',
        'token accessToken',
        'webhook',
      ],
      told: [],
      length: expect.toSatisfy((length: number) => length > 1000),
    })
  })

  it('of a start that fails', async () => {
    const secrets = { RELAY_CLIENT_SECRET: CLIENT.secret, ...WEBHOOK_SECRETS }
    const { code, out, err } = await relay(['serve', '--json', '-v'], { ...LOUD, ...secrets })
    expect({ code, out }).toEqual({ code: 2, out: '' })
    expect(err).toContain('RELAY_CLIENT_ID')
    expect(err).not.toMatch(/canary/)
  })
})

describeWith('Linux', 'no secret is shown while the disk is full', () => {
  it('by deliveries, sign-ins and revocations that cannot be stored', async () => {
    await using sandbox = await startSandbox({ client: CLIENT })
    const home = emptyFolder()
    const run = new Run(path.join(home, 'default'), { ...WEBHOOK_SECRETS })
    const env = { RELAY_HOME: home, ...LOUD, ...codeHost(sandbox), ...WEBHOOK_SECRETS }
    await using program = new Program(SERVE, env)
    const url = await program.url()
    await signIn(url, 'ada')
    const begun = await run.begin(url, 'bob')
    // From now on nothing beyond a file's first page can be written.
    spawnSync('prlimit', ['--pid', String(program.pid), '--fsize=4096:'])
    expect(await run.deliver(url, WEBHOOK_SECRETS.RELAY_WEBHOOK_SECRET, '{}')).toBe(503)
    expect((await finishSignIn(begun)).location).toContain('reason=storage_failed')
    expect(await run.call(`${url}/auth/sandbox?userId=carol`)).toBe(503)
    expect(await run.call(`${url}/auth/token/ada`, { method: 'DELETE' })).toBe(503)
    run.heard(await program.stop())
    expect(run.result()).toMatchObject({ told: [] })
  })
})
