import path from 'node:path'
import { Readable } from 'node:stream'
import { Secret } from '../../src/base/secret.js'
import { DEFAULT_MAX_BODY, DEFAULT_TOKEN_TTL } from '../../src/base/settings.js'
import type { Context } from '../../src/cli/context.js'
import { main } from '../../src/cli/main.js'
import { startSandbox, type Sandbox } from '../../src/sandbox/start.js'
import { serve, type Serving } from '../../src/serve.js'
import { openDatabase } from '../../src/store/open.js'
import { createTokens, type SignIn } from '../../src/tokens/tokens.js'
import { emptyFolder, testContext } from '../helpers/context.js'
import { sandboxToken } from '../helpers/sandbox-token.js'
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
  readonly token: string
  readonly shell: Shell
}

export async function startAlone(): Promise<Alone> {
  const sandbox = await startSandbox({ clientId: CLIENT.id, clientSecret: new Secret(CLIENT.secret) })
  const token = await sandboxToken(sandbox, CLIENT)
  const here = shell({
    RELAY_PROVIDER: 'sandbox',
    RELAY_PROVIDER_URL: sandbox.url,
    RELAY_CLIENT_ID: CLIENT.id,
    RELAY_CLIENT_SECRET: CLIENT.secret,
  })
  await keepToken(here, { accessToken: token, origin: sandbox.url })
  return { sandbox, token, shell: here, [Symbol.asyncDispose]: () => sandbox.close() }
}

/** Has {@link USER} signed in with this token. */
export async function keepToken(
  { home }: Shell,
  token: Partial<SignIn> & Pick<SignIn, 'accessToken' | 'origin'>,
): Promise<void> {
  await using database = await openDatabase({ kind: 'file', folder: path.join(home, 'default') })
  await createTokens(database.store).save(USER, { expiresAt: Date.now() + DAY, ...token })
}

/** What is piped into a command. */
export function piped(...chunks: (string | Uint8Array)[]): Readable {
  return Readable.from(chunks.map((chunk) => Buffer.from(chunk)))
}
