import path from 'node:path'
import { Readable } from 'node:stream'
import { Command } from 'commander'
import { Secret } from '../../src/base/secret.js'
import {
  DEFAULT_KEEP,
  DEFAULT_KEEP_MAX,
  DEFAULT_MAX_BODY,
  DEFAULT_TOKEN_TTL,
  NO_HAND_ON,
} from '../../src/base/settings.js'
import type { Context } from '../../src/cli/context.js'
import { main } from '../../src/cli/main.js'
import type { SandboxOptions } from '../../src/sandbox/options.js'
import { startSandbox, type Sandbox } from '../../src/sandbox/start.js'
import { serve, type Serving } from '../../src/serve/serve.js'
import type { Store } from '../../src/store/contract.js'
import { openDatabase } from '../../src/store/open.js'
import { createTokens, type SignIn } from '../../src/tokens/tokens.js'
import { emptyFolder, testContext } from '../helpers/context.js'
import { sandboxGrant, type SandboxGrant } from '../helpers/sandbox-token.js'
import { signIn } from '../helpers/sign-in.js'

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
  readonly serving: Serving
  readonly sandbox: Sandbox
  readonly shell: Shell
}

export async function startServed(): Promise<Served> {
  const home = emptyFolder()
  const serving = await serve(
    {
      profile: 'default',
      folder: path.join(home, 'default'),
      provider: 'sandbox',
      providerUrl: 'http://127.0.0.1',
      webhookSecrets: { current: new Secret('secret') },
      host: '127.0.0.1',
      port: 0,
      allowedHosts: [],
      store: 'file',
      maxBody: DEFAULT_MAX_BODY,
      tokenTtl: DEFAULT_TOKEN_TTL,
      handOn: NO_HAND_ON,
      concurrency: 1,
      onDuplicate: 'if-failed',
      keep: DEFAULT_KEEP,
      keepMax: DEFAULT_KEEP_MAX,
    },
    { sandboxPort: 0 },
  )
  const { sandbox } = serving
  if (!sandbox) throw new Error('unreachable: a sandbox port was given')
  await signIn(serving.url, USER)
  return {
    serving,
    sandbox,
    shell: shell({}, home),
    [Symbol.asyncDispose]: () => serving[Symbol.asyncDispose](),
  }
}

/** A sandbox that runs alone, no instance, and a token of its for {@link USER}. */
export interface Alone extends AsyncDisposable {
  readonly sandbox: Sandbox
  readonly grant: SandboxGrant
  readonly shell: Shell
}

export async function startAlone(options: Pick<SandboxOptions, 'lifetimes'> = {}): Promise<Alone> {
  const client = { clientId: CLIENT.id, clientSecret: new Secret(CLIENT.secret) }
  const sandbox = await startSandbox({ ...client, ...options })
  const grant = await sandboxGrant(sandbox, CLIENT)
  const here = shell({
    RELAY_PROVIDER: 'sandbox',
    RELAY_PROVIDER_URL: sandbox.url,
    RELAY_CLIENT_ID: CLIENT.id,
    RELAY_CLIENT_SECRET: CLIENT.secret,
  })
  await keepToken(here, { accessToken: grant.access_token, origin: sandbox.url })
  return { sandbox, grant, shell: here, [Symbol.asyncDispose]: () => sandbox.close() }
}

/** Has {@link USER} signed in with this token. */
export async function keepToken(
  shell: Shell,
  signIn: Partial<SignIn> & Pick<SignIn, 'accessToken' | 'origin'>,
): Promise<void> {
  await using store = await profileStore(shell)
  await createTokens(store).save(USER, { expiresAt: Date.now() + DAY, ...signIn })
}

/** The store of the shell's profile, as another process has it open. */
export async function profileStore({ home }: Shell): Promise<Store> {
  const { store } = await openDatabase({ kind: 'file', folder: path.join(home, 'default') })
  return store
}

/** What commander makes of a command line, given to a command's `run` in place of the real one. */
export async function parsed<Args extends readonly unknown[]>(
  add: (program: Command, context: Context, run: (context: Context, ...args: Args) => Promise<void>) => void,
  argv: readonly string[],
): Promise<Args | undefined> {
  let given: Args | undefined
  const program = new Command('relay')
    .option('--json')
    .exitOverride()
    .configureOutput({ writeErr() {} })
  add(program, testContext().context, async (_, ...args) => {
    given = args
  })
  await program.parseAsync(argv, { from: 'user' })
  return given
}

/** What is piped into a command. */
export function piped(...chunks: (string | Uint8Array)[]): Readable {
  return Readable.from(chunks.map((chunk) => Buffer.from(chunk)))
}
