import path from 'node:path'
import type { Context } from '../../src/cli/context.js'
import { main } from '../../src/cli/main.js'
import { publication } from '../../src/cli/profile.js'
import { serviceSettings } from '../../src/cli/session.js'
import { openSettings } from '../../src/cli/settings/read.js'
import { serve, type ServeOptions, type Serving } from '../../src/serve/serve.js'
import type { Store } from '../../src/store/kv.js'
import { openDatabase } from '../../src/store/open.js'
import { type Grant, grantAt } from '../../src/testing/sandbox.js'
import { startSandbox, type TestSandbox, type TestSandboxOptions } from '../../src/testing/index.js'
import { Tokens } from '../../src/tokens/tokens.js'
import { emptyFolder } from '../kit/folder.js'
import { testShell } from '../rooms/cli-shell.js'

export const USER = 'ada'
const CLIENT = { id: 'relay-test', secret: 'client-secret-canary' }

/** A profile's data in a folder of its own, and commands run on it as {@link USER}. */
interface Shell {
  readonly home: string
  readonly env: Readonly<Record<string, string>>
  run(argv: readonly string[]): Promise<{ readonly code: number; readonly out: string; readonly err: string }>
}

/** The service of an environment's settings in this process, which commands find as they find `relay serve`. */
export async function serveFor({ env }: Pick<Context, 'env'>, options: ServeOptions = {}): Promise<Serving> {
  const { shell } = testShell({ env })
  const own = openSettings(shell, {}).read()
  const { onTaken } = publication(shell, own)
  return serve(serviceSettings({ own }, { sandbox: false, inspect: true }), { ...options, onTaken })
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
  const home = emptyFolder()
  const env = {
    RELAY_HOME: home,
    RELAY_USER: USER,
    RELAY_PROVIDER: 'sandbox',
    RELAY_PROVIDER_URL: sandbox.url,
    RELAY_CLIENT_ID: CLIENT.id,
    RELAY_CLIENT_SECRET: CLIENT.secret,
  }
  const shell: Shell = {
    home,
    env,
    async run(argv) {
      const { shell: context, out, err } = testShell({ env })
      return { code: await main(argv, context), out: out(), err: err() }
    },
  }
  await using store = await profileStore(shell)
  const signIn = { accessToken: grant.access_token, origin: sandbox.url, expiresAt: Date.now() + 86_400_000 }
  await new Tokens(store).save(USER, signIn)
  return { sandbox, grant, shell, [Symbol.asyncDispose]: () => sandbox[Symbol.asyncDispose]() }
}

/** The store of the shell's profile, as another process has it open. */
export async function profileStore({ home }: Pick<Shell, 'home'>): Promise<Store & AsyncDisposable> {
  const database = await openDatabase({ kind: 'file', folder: path.join(home, 'default') })
  return { ...database.store, [Symbol.asyncDispose]: () => database[Symbol.asyncDispose]() }
}
