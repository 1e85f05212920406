import { mkdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { startSandbox, type TestSandbox, type TestSandboxOptions } from 'webhook-relay/testing'
import type { Limits } from '../../src/base/seams.js'
import { Closing } from './closing.js'
import { type Answer, type DeliveryOptions, githubDelivery, giteaDelivery, post, SECRET } from './delivery.js'
import { emptyFolder, type Env } from './folder.js'
import { type FakeGitea, fakeGitea } from './gitea.js'
import { type FakeGitLab, fakeGitLab } from './gitlab.js'
import { addressOf, signInAt } from './pages.js'
import { database } from './postgres.js'
import { keyring } from './keyring.js'
import { leaveOut } from './needs.js'
import {
  BUILT,
  type Ran,
  run,
  type RunContext,
  type Running,
  type Seams,
  start,
  type StartOptions,
} from './run.js'

/** The user that every place has, unless a command says otherwise. */
export const USER = 'ada'
/** The sandbox's repository. */
export const REPO = 'octo/demo'
/** relay's OAuth application at the place's code host. */
export const CLIENT = { id: 'canary', secret: 'canary-client-secret' }

export interface PlaceOptions {
  /** The code host. Default: `sandbox`. */
  readonly host?: 'sandbox' | 'gitea' | 'gitlab' | 'none'
  /** Of a GitLab. */
  readonly gitlab?: Parameters<typeof fakeGitLab>[0]
  /** Of the sandbox. */
  readonly sandbox?: TestSandboxOptions
  /** Whether the sandbox's repository has a webhook to the relay that was started last. Default: false. */
  readonly webhook?: boolean
  /** Whether {@link USER} is signed in from the start, with a token from the code host's settings page. Default: false. */
  readonly signedIn?: boolean
  /** Default: `file`. */
  readonly store?: 'file' | 'keychain' | 'postgres'
  /** Further variables, which replace those of the place. */
  readonly env?: Env
}

/** A person's machine. */
export type Place = Awaited<ReturnType<typeof place>>

/** A relay that runs. */
export interface Serving extends Running {
  /** Where it listens. */
  readonly address: string
  readonly port: number
  /** Sends a delivery that the code host of the place would send, signed with {@link SECRET}. */
  deliver(options?: DeliveryOptions): Promise<Answer>
}

/** A person's machine: a data folder, an environment, a code host, commands and relays. Disposing of it ends all of them. */
export async function place(options: PlaceOptions = {}) {
  const { host = 'sandbox', store = 'file' } = options
  await using stack = new Closing()
  let owned: Closing = stack
  const closing = (): Closing => owned
  let receiver = ''
  const home = emptyFolder()
  const cwd = emptyFolder()
  const configFolder = path.join(emptyFolder(), 'relay')
  mkdirSync(configFolder)
  const hook = options.webhook ? { webhook: () => receiver, secret: SECRET } : {}
  const sandbox =
    host === 'sandbox'
      ? stack.use(await startSandbox({ client: CLIENT, ...hook, ...options.sandbox }))
      : undefined
  const gitea = host === 'gitea' ? stack.use(await fakeGitea()) : undefined
  const gitlab = host === 'gitlab' ? stack.use(await fakeGitLab(options.gitlab)) : undefined
  const env: Record<string, string> = {
    RELAY_HOME: home,
    RELAY_USER: USER,
    RELAY_WEBHOOK_SECRET: SECRET,
    ...(sandbox && hostVariables('sandbox', sandbox.url, options.sandbox?.client ?? CLIENT)),
    ...(gitea && hostVariables('gitea', gitea.url, gitea.state.client)),
    ...(gitlab && hostVariables('gitlab', gitlab.url, gitlab.state.oauth.client)),
    ...(store === 'keychain' && { RELAY_STORE: 'keychain', ...(await keyring()).env }),
    ...(store === 'postgres' && stack.use(await database()).env),
    ...options.env,
  }
  const common = { env, cwd, configFolder }
  const within = (over: Partial<RunContext>): Partial<RunContext> => ({
    ...common,
    ...over,
    env: { ...env, ...over.env },
  })
  const outputOf = async (argv: readonly string[], over: Partial<RunContext> = {}): Promise<string> => {
    const { code, out, err } = await run(argv, within(over))
    if (code !== 0) throw new Error(`relay ${argv.join(' ')} ended with ${code}:\n${err}`)
    return out
  }
  const startWith = (over: StartOptions, ...argv: string[]): Running =>
    closing().use(start(argv, { ...within(over), ...(over.wrapper && { wrapper: over.wrapper }) }))
  /** As `serve`, with injected limits, clock, chance or storage faults, in this process, or with other options. */
  const serveWith = async (over: StartOptions, ...flags: string[]): Promise<Serving> => {
    const running = startWith(over, 'serve', '--port', '0', '--json', ...flags)
    const address = await running.url()
    receiver = `${address}/webhook`
    return Object.assign(running, {
      address,
      port: Number(new URL(address).port),
      deliver: (delivery: DeliveryOptions = {}) =>
        post(`${address}/webhook`, (gitea ? giteaDelivery : githubDelivery)(delivery)),
    })
  }
  const here = {
    /** The data folder. */
    home,
    cwd,
    /** The folder with the user's own settings. */
    configFolder,
    env: env as Env,
    /** The code host, which a test may end. @throws Error where it is another one. */
    get sandbox(): TestSandbox & AsyncDisposable {
      if (!sandbox) throw new Error('the place has another code host')
      return sandbox
    },
    get gitea(): FakeGitea {
      if (!gitea) throw new Error('the place has another code host')
      return gitea
    },
    get gitlab(): FakeGitLab {
      if (!gitlab) throw new Error('the place has another code host')
      return gitlab
    },
    /** Runs a command to its end. */
    run: (...argv: string[]): Promise<Ran> => run(argv, within({})),
    /** The same, in another environment, folder or terminal, or with standard input. */
    runWith: (over: Partial<RunContext>, ...argv: string[]): Promise<Ran> => run(argv, within(over)),
    /** Starts a command, which ends with the place. */
    start: (...argv: string[]): Running => startWith({}, ...argv),
    startWith,
    /** Starts `relay serve --port 0 --json` with further flags, and waits until it listens. It ends with the place. */
    serve: (...flags: string[]): Promise<Serving> => serveWith({}, ...flags),
    serveWith,
    /** Writes the user's own settings, config.json, which replaces the one before. */
    configure: (settings: object): void =>
      writeFileSync(path.join(configFolder, 'config.json'), JSON.stringify(settings)),
    /** Signs a user in with `relay login`, as a person does in the browser, and returns the access token. */
    async signIn(user = USER): Promise<string> {
      await using login = start(
        ['login', '--no-browser', '--user', user],
        within({ env: { RELAY_PORT: '0' } }),
      )
      await signInAt(await addressOf(login))
      const { code, err } = await login.ended
      if (code !== 0) throw new Error(`relay login ended with ${code}:\n${err}`)
      return (await outputOf(['token', '--user', user])).trim()
    },
    /** Has a user signed in with this token, or one that the sandbox gives, by `relay login --with-token`. */
    async useToken(token?: string, user = USER): Promise<string> {
      const given = token ?? (await here.sandbox.token('repo'))
      await outputOf(['login', '--with-token', '--user', user], { stdin: given })
      return given
    },
    [Symbol.asyncDispose]: (): Promise<void> => owned[Symbol.asyncDispose](),
  }
  if (options.signedIn) await here.useToken(gitea?.state.token ?? gitlab?.token())
  owned = stack.move()
  return here
}

/** A storage fault that a test turns on and off, for `serveWith({ seams: { storage } })`. */
export function faulty(): { readonly fails: boolean; now(mode: 'works' | 'fails'): void } {
  let fails = false
  return {
    get fails() {
      return fails
    },
    now(mode) {
      fails = mode === 'fails'
    },
  }
}

/** The limits that relay has when a test injects none. In a copy without the sources, the test is left out. */
export async function defaultLimits(): Promise<Limits> {
  if (BUILT) leaveOut('it reads the sources')
  return (await import('../../src/base/seams.js')).TIME_LIMITS
}

/** The variables by which a program takes this server for its code host. */
export function hostVariables(
  provider: 'sandbox' | 'gitea' | 'github' | 'gitlab',
  url: string,
  client: { readonly id: string; readonly secret: string },
): Env {
  return {
    RELAY_PROVIDER: provider,
    RELAY_PROVIDER_URL: url,
    RELAY_CLIENT_ID: client.id,
    RELAY_CLIENT_SECRET: client.secret,
  }
}

export type { Seams }
