import { describe, expect, it } from 'vitest'
import { canary } from '../kit/canary.js'
import { hurryDevice } from '../kit/code-host.js'
import { githubDelivery, post } from '../kit/delivery.js'
import { contentsOf, type Env } from '../kit/folder.js'
import { addressOf, beginSignIn, device, deviceOf, finishSignIn, setUpApp, signInAt } from '../kit/pages.js'
import { CLIENT, faulty, type Place, place, type PlaceOptions, type Serving } from '../kit/place.js'
import { closedPort } from '../kit/ports.js'
import { type Ran, run } from '../kit/run.js'
import { sentSecrets, type Tapped, tapRequests } from '../kit/tap.js'

const WEBHOOK_SECRETS = {
  RELAY_WEBHOOK_SECRET: 'canary-webhook-secret',
  RELAY_WEBHOOK_SECRET_PREVIOUS: 'canary-previous-secret',
}
/** All that can be said is said, so that what must not be said would show. */
const LOUD = { RELAY_DEBUG: '1' }
const COMMENT = { owner: 'octo', repo: 'demo', issueNumber: 1, body: 'hello' }
/** So short that `relay token` renews each, and yet usable for the length of a test. */
const LIFETIMES = { access: 50, refresh: 3600 }

/** A relay whose sign-ins and requests are watched. */
class Watched {
  readonly canary = canary()
  readonly #url: string

  constructor({ address }: Serving) {
    this.#url = address
  }

  call(path: string, init?: RequestInit): Promise<number> {
    return this.canary.call(`${this.#url}${path}`, init)
  }

  act(name: string, token: string, body: object): Promise<number> {
    const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' }
    return this.call(`/api/${name}`, { method: 'POST', headers, body: JSON.stringify(body) })
  }

  async deliver(secret: string, body: string): Promise<number> {
    const answer = await post(`${this.#url}/webhook`, githubDelivery({ secret, body }))
    this.canary.text('answers', answer.body)
    return answer.status
  }

  /** Begins a sign-in; the cookie is a secret. */
  async begin(user: string) {
    const begun = await beginSignIn(`${this.#url}/auth/sandbox?userId=${user}`)
    this.canary.secret('cookie', begun.cookie.split('=')[1] ?? '')
    return begun
  }

  /** Signs a user in; the code and the state are secrets. */
  async signIn(user: string) {
    const signedIn = await finishSignIn(await this.begin(user))
    this.canary.secret('code', signedIn.code)
    this.canary.secret('state', signedIn.state)
    return signedIn
  }

  /** Sign-ins that fail in the middle, each in its own way. */
  async failToSignIn({ faults }: Place['sandbox']): Promise<void> {
    const cancelled = await finishSignIn(await this.begin('bob'), 'cancel')
    expect(cancelled.location).toContain('reason=access_denied')
    const elsewhere = await finishSignIn({ ...(await this.begin('bob')), cookie: 'other=1' })
    expect(elsewhere.location).toContain('reason=invalid_state')
    for (const fault of ['502', 'invalid-json', 'reset'] as const) {
      faults.next('token', fault)
      await finishSignIn(await this.begin('bob'))
    }
  }
}

const OF_A_SIGN_IN = ['PKCE verifier', 'access token', 'client secret', 'code', 'cookie', 'state']

const portOf = ({ url }: { readonly url: string }): number => Number(new URL(url).port)

describe('no secret is in any log line, answer or stack trace', () => {
  it('of a run with everything in it', async () => {
    const env = { ...LOUD, ...WEBHOOK_SECRETS }
    await using here = await place({ env, sandbox: { lifetimes: LIFETIMES } })
    const { sandbox } = here
    using tap = tapRequests(portOf(sandbox))
    const serving = await here.serve('--verbose')
    const run = new Watched(serving)
    for (const [name, secret] of Object.entries(WEBHOOK_SECRETS)) run.canary.secret(name, secret)

    const { code, state } = await run.signIn('ada')
    await run.failToSignIn(sandbox)
    expect(await run.call(`/auth/sandbox/callback?code=${code}&state=${state}`)).toBe(302)
    const tokenOf = (): Promise<Ran> => here.run('token', '--verbose')
    const printed = await tokenOf()
    const token = printed.out.trim()
    expect(token).toMatch(/^gho_/)
    run.canary.heard(printed, token)

    expect(await run.act('comment', token, COMMENT)).toBe(200)
    expect(await run.act('comment', token, { ...COMMENT, owner: '..' })).toBe(400)
    expect(await run.act('comment', token, { ...COMMENT, issueNumber: 404 })).toBe(404)
    expect(await run.act('comment', `${token}x`, COMMENT)).toBe(401)
    for (const fault of ['502', 'rate-limit', 'reset', 'reset-after', 'invalid-json'] as const) {
      sandbox.faults.next('comment', fault)
      expect([429, 502]).toContain(await run.act('comment', token, COMMENT))
    }
    const { RELAY_WEBHOOK_SECRET: current, RELAY_WEBHOOK_SECRET_PREVIOUS: previous } = WEBHOOK_SECRETS
    expect(await run.deliver(current, '{}')).toBe(200)
    expect(await run.deliver(previous, '{}')).toBe(200)
    expect(await run.deliver('wrong', '{}')).toBe(401)
    expect(await run.deliver(current, '{')).toBe(400)

    // A renewal that fails, and one that is refused.
    sandbox.faults.next('token', '502')
    run.canary.heard(await tokenOf(), token)
    expect(await run.call('/auth/token/ada', { method: 'DELETE' })).toBe(200)
    run.canary.heard(await tokenOf())

    const ended = await serving.stop()
    expect(ended.code).toBe(0)
    run.canary.heard(ended)
    run.canary.secrets(sentSecrets(tap.requests))
    expect(run.canary.textOf('output').length + run.canary.textOf('answers').length).toBeGreaterThan(2000)
    run.canary.check([...Object.keys(WEBHOOK_SECRETS), ...OF_A_SIGN_IN, 'refresh token'])
  })

  it('of a start that fails', async () => {
    const env = { ...LOUD, ...WEBHOOK_SECRETS, RELAY_CLIENT_SECRET: CLIENT.secret }
    const { code, out, err } = await run(['serve', '--json', '-v'], { env })
    expect({ code, out }).toEqual({ code: 2, out: '' })
    expect(err).toContain('RELAY_CLIENT_ID')
    expect(err).not.toMatch(/canary/)
  })

  it('while the disk is full: of deliveries, sign-ins and revocations that cannot be stored', async () => {
    await using here = await place({ env: { ...LOUD, ...WEBHOOK_SECRETS } })
    using tap = tapRequests(portOf(here.sandbox))
    const storage = faulty()
    const serving = await here.serveWith({ seams: { storage } }, '--verbose')
    const run = new Watched(serving)
    for (const [name, secret] of Object.entries(WEBHOOK_SECRETS)) run.canary.secret(name, secret)
    await run.signIn('ada')
    const begun = await run.begin('bob')
    storage.now('fails')
    expect(await run.deliver(WEBHOOK_SECRETS.RELAY_WEBHOOK_SECRET, '{}')).toBe(503)
    expect((await finishSignIn(begun)).location).toContain('reason=storage_failed')
    expect(await run.call('/auth/sandbox?userId=carol')).toBe(503)
    expect(await run.call('/auth/token/ada', { method: 'DELETE' })).toBe(503)
    run.canary.heard(await serving.stop())
    run.canary.secrets(sentSecrets(tap.requests))
    run.canary.check([...Object.keys(WEBHOOK_SECRETS), ...OF_A_SIGN_IN])
  })
})

/** Commands that use the token and a hook. */
const FEW = [
  'whoami --json',
  'hook add octo/demo',
  'hook test octo/demo',
  'comment octo/demo#1 hello',
  'hook remove octo/demo --json',
]
/** Further ones that have a reason to name what they work with. */
const COMMANDS = [
  ...FEW,
  'config',
  'config --json',
  'doctor',
  'hook list octo/demo --json',
  'catch-up --json',
  'catch-up --dry-run',
  'log --json',
  'log --refused',
  'show last',
  'show last --json',
  'export last',
]

const MADE: Env = { RELAY_WEBHOOK_SECRET: undefined }
const NO_CLIENT: Env = { ...MADE, RELAY_CLIENT_ID: undefined, RELAY_CLIENT_SECRET: undefined }
/** The database, whose records are where secrets belong, and the file that is one. */
const HOMES = /^relay\.db|^webhook-secret$/

/** A person's machine where all that commands say and leave in files is looked through for what the code host knows. */
async function watchedPlace(options: PlaceOptions) {
  const env = { ...LOUD, RELAY_PORT: String(await closedPort()), ...options.env }
  const here = await place({ ...options, env })
  const tap = tapRequests(portOf(here.sandbox))
  const kept = canary()
  return {
    here,
    kept,
    /** Runs commands while `relay serve` with these flags runs, once that has its hook. */
    async useCommands(flags: readonly string[], commands = FEW): Promise<void> {
      const serving = await here.serveWith({}, '--port', here.env['RELAY_PORT'] ?? '', '--verbose', ...flags)
      const state = flags.includes('--catch-up') ? 'caught up' : 'ready'
      await serving.object({ type: 'hook', state })
      for (const operation of ['hook', 'deliveries'] as const) here.sandbox.faults.next(operation, '502')
      for (const command of commands) kept.heard(await here.run(...command.split(' '), '--verbose'))
      await here.sandbox.idle()
      await serving.object({ type: 'delivery', event: 'issue_comment' })
      kept.heard(await serving.stop())
    },
    /** Looks for the secrets, which are of these kinds. */
    async check(kinds: readonly string[]): Promise<void> {
      const revealed = (await here.run('config', '--reveal', 'webhookSecret')).out.trim()
      kept.secret('webhook secret', revealed)
      kept.secrets(sentSecrets(tap.requests))
      kept.text('addresses', tap.requests.map(({ url }: Tapped) => url).join('\n'))
      kept.text('files', contentsOf(here.home, HOMES))
      kept.check(['webhook secret', ...kinds])
    },
    async [Symbol.asyncDispose]() {
      tap[Symbol.dispose]()
      await here[Symbol.asyncDispose]()
    },
  }
}

/** What signs in with an App: its client, its key, and tokens that are renewed. */
const OF_AN_APP = ['App key', 'JWT', 'PKCE verifier', 'access token', 'client secret', 'refresh token']

describe('no secret of an App, a device or a hook is in an output, an address or a file where it does not belong', () => {
  it('with an App', async () => {
    await using watched = await watchedPlace({ env: NO_CLIENT })
    const { here, kept } = watched
    kept.heard(await setUpApp(here, '--verbose'))
    const login = here.start('login', '--no-browser', '--verbose')
    await signInAt(await addressOf(login))
    kept.heard(await login.ended)
    await watched.useCommands(['--catch-up'], COMMANDS)
    expect(kept.textOf('output')).toMatch(/"type":"caught-up"/)
    expect(kept.textOf('output')).toContain('"body":"hello"')
    await watched.check(OF_AN_APP)
  })

  it('with the device flow, and a hook of the repository', async () => {
    await using watched = await watchedPlace({ env: MADE })
    const { here, kept } = watched
    kept.secret('client secret', CLIENT.secret)
    await hurryDevice(here.sandbox)
    const login = here.start('login', '--device', '--verbose')
    const { address, code } = await deviceOf(login)
    await device(address, code)
    kept.heard(await login.ended)
    await watched.useCommands(['--hook', 'octo/demo', '--catch-up'])
    expect(kept.textOf('output')).toContain('ping of octo/demo arrived')
    await watched.check(['access token', 'client secret', 'device code'])
  })

  it('with a token that the user made, and no client', async () => {
    await using watched = await watchedPlace({ env: NO_CLIENT })
    const { here, kept } = watched
    const stdin = await here.sandbox.token('repo')
    kept.heard(await here.runWith({ stdin }, 'login', '--with-token', '--verbose'))
    await watched.useCommands(['--hook', 'octo/demo'])
    expect(kept.textOf('output')).toContain('ping of octo/demo arrived')
    await watched.check(['access token', 'client secret'])
  })
})
