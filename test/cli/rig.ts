import path from 'node:path'
import { Readable } from 'node:stream'
import { Chalk } from 'chalk'
import type { Context } from '../../src/old/context.js'
import { main } from '../../src/old/main.js'
import { type Line, render } from '../../src/old/output/line.js'
import { publishInstance, type RunningInstance, secretPrint } from '../../src/instance/running.js'
import { publish } from '../../src/old/session/publish.js'
import { completeSettings } from '../../src/old/settings/complete.js'
import { prepare } from '../../src/old/settings/prepare.js'
import { serve, type ServeOptions, type Serving } from '../../src/serve/serve.js'
import type { Store } from '../../src/store/kv.js'
import { openDatabase } from '../../src/store/open.js'
import { type Grant, grantAt } from '../../src/testing/grant.js'
import {
  startRelay,
  startSandbox,
  type TestRelay,
  type TestSandbox,
  type TestSandboxOptions,
} from '../../src/testing/index.js'
import { Tokens, type TokenGrant } from '../../src/tokens/tokens.js'
import { emptyFolder, testContext } from '../helpers/context.js'

export const DAY = 86_400_000
export const USER = 'ada'
const CLIENT = { id: 'relay-test', secret: 'client-secret-canary' }

export interface Ran {
  readonly code: number
  readonly out: string
  readonly err: string
}

/** A command line in this process. */
export interface Shell {
  readonly home: string
  readonly env: Readonly<Record<string, string>>
  run(argv: readonly string[], over?: Partial<Context>): Promise<Ran>
}

/** A profile's data in a folder of its own, and commands run on it as {@link USER}. */
export function shell(env: Readonly<Record<string, string>> = {}, home = emptyFolder()): Shell {
  const all = { RELAY_HOME: home, RELAY_USER: USER, ...env }
  return {
    home,
    env: all,
    async run(argv, over = {}) {
      const { context, out, err } = testContext({ ...over, env: { ...all, ...over.env } })
      return { code: await main(argv, context), out: out(), err: err() }
    },
  }
}

/** A running instance with its sandbox, where {@link USER} has signed in. */
export interface Served extends AsyncDisposable {
  readonly serving: TestRelay
  readonly sandbox: TestSandbox
  readonly shell: Shell
}

export async function startServed(): Promise<Served> {
  const home = emptyFolder()
  const settings = { profile: 'default', folder: path.join(home, 'default'), store: 'file' } as const
  const serving = await startRelay({ secret: 'secret', settings, ...registered(home) })
  await serving.signIn(USER)
  return {
    serving,
    sandbox: serving.sandbox,
    shell: shell({}, home),
    [Symbol.asyncDispose]: () => serving[Symbol.asyncDispose](),
  }
}

/** Has an instance that this process runs known to commands, as that of `relay serve` is. */
export function registered(home: string, over: Partial<RunningInstance> = {}): Pick<ServeOptions, 'onTaken'> {
  return {
    onTaken(record, { profile, store: place, webhookSecrets }) {
      const store = typeof place === 'string' ? place : place.toString()
      const print = secretPrint(record, webhookSecrets.current)
      const given = { profile, store, sandbox: true, secretPrint: print, madeSecret: null }
      return publishInstance(home, { ...record, ...given, ...over })
    },
  }
}

/** The service of a context's settings in this process, which other commands find as they find `relay serve`. */
export async function serveFor(context: Context, options: ServeOptions = {}): Promise<Serving> {
  const prepared = prepare(context, {})
  return serve(completeSettings(prepared.options), { ...options, onTaken: publish(prepared) })
}

/** A sandbox that runs alone, no instance, and a token of its for {@link USER}. */
export interface Alone extends AsyncDisposable {
  readonly sandbox: TestSandbox & AsyncDisposable
  readonly grant: Grant
  readonly shell: Shell
}

export async function startAlone(options: Pick<TestSandboxOptions, 'lifetimes'> = {}): Promise<Alone> {
  const sandbox = await startSandbox({ client: CLIENT, ...options })
  const grant = await grantAt(sandbox.url, CLIENT)
  const here = shell({
    RELAY_PROVIDER: 'sandbox',
    RELAY_PROVIDER_URL: sandbox.url,
    RELAY_CLIENT_ID: CLIENT.id,
    RELAY_CLIENT_SECRET: CLIENT.secret,
  })
  await keepToken(here, { accessToken: grant.access_token, origin: sandbox.url })
  return { sandbox, grant, shell: here, [Symbol.asyncDispose]: () => sandbox[Symbol.asyncDispose]() }
}

/** Has {@link USER} signed in with this token. */
export async function keepToken(
  shell: Shell,
  signIn: Partial<TokenGrant> & Pick<TokenGrant, 'accessToken' | 'origin'>,
): Promise<void> {
  await using store = await profileStore(shell)
  await new Tokens(store).save(USER, { expiresAt: Date.now() + DAY, ...signIn })
}

/** The store of the shell's profile, as another process has it open. */
export async function profileStore({ home }: Shell): Promise<Store & AsyncDisposable> {
  const database = await openDatabase({ kind: 'file', folder: path.join(home, 'default') })
  return { ...database.store, [Symbol.asyncDispose]: () => database[Symbol.asyncDispose]() }
}

/** A line as a terminal without colors shows it. */
export function plain(line: Line): string {
  return render(line, new Chalk({ level: 0 }))
}

/** What is piped into a command. */
export function piped(...chunks: (string | Uint8Array)[]): Readable {
  return Readable.from(chunks.map((chunk) => Buffer.from(chunk)))
}
