import { once } from 'node:events'
import { createServer } from 'node:net'
import path from 'node:path'
import { afterEach } from 'vitest'
import { Disposal } from '../../../../src/base/disposal.js'
import type { Context } from '../../../../src/old/context.js'
import { diagnose } from '../../../../src/old/commands/doctor/diagnose.js'
import type { NamedResult } from '../../../../src/old/commands/doctor/result.js'
import type { Flags } from '../../../../src/old/settings/read.js'
import type { Store } from '../../../../src/store/kv.js'
import { openDatabase } from '../../../../src/store/open.js'
import { Tokens, type TokenGrant } from '../../../../src/tokens/tokens.js'
import { emptyFolder, testContext } from '../../../helpers/context.js'
import { scriptedServer, type Answer, type Received } from '../../../helpers/scripted-server.js'

export const SECRETS = {
  RELAY_CLIENT_SECRET: 'canary-client-secret',
  RELAY_WEBHOOK_SECRET: 'canary-webhook-secret-0123',
}
export const TOKEN = 'canary-token'
const HOUR = 3_600_000

let closing = new Disposal()

/** Has a resource closed after the test. */
export function closeAfter<Resource extends AsyncDisposable>(resource: Resource): Resource {
  return closing.use(resource)
}

afterEach(async () => {
  await closing[Symbol.asyncDispose]()
  closing = new Disposal()
})

/** A Gitea whose clock is so many milliseconds ahead, and where {@link TOKEN} is of the account octo. */
export function gitea({ path, headers }: Received, ahead = 0): Answer {
  const date = { date: new Date(Date.now() + ahead).toUTCString() }
  if (path === '/api/v1/version') return { headers: date, body: { version: '1.21.0' } }
  // Of a client that it knows, with a code that it does not know.
  if (path === '/login/oauth/access_token')
    return { status: 400, headers: date, body: { error: 'unauthorized_client' } }
  const known = path === '/api/v1/user' && headers.authorization === `Bearer ${TOKEN}`
  return known ? { headers: date, body: { login: 'octo' } } : { status: 404, headers: date, body: {} }
}

/** A code host that answers so. */
export async function codeHost(answer: (request: Received) => Answer = gitea) {
  return closing.use(await scriptedServer(answer))
}

/** A profile in which nothing is wrong, but for what `env` changes and `data` does to its store. */
export async function profile(
  env: Record<string, string> = {},
  data: (store: Store) => Promise<void> = async () => {},
) {
  const home = emptyFolder()
  const host = await codeHost()
  const { context, out, err } = testContext({
    env: {
      RELAY_HOME: home,
      RELAY_USER: 'ada',
      RELAY_PROVIDER: 'gitea',
      RELAY_PROVIDER_URL: host.url,
      RELAY_CLIENT_ID: 'client-id',
      RELAY_PORT: '0',
      ...SECRETS,
      ...env,
    },
  })
  const folder = path.join(home, 'default')
  await using database = await openDatabase({ kind: 'file', folder })
  await signIn(database.store, { origin: host.url })
  await data(database.store)
  return { context, folder, host, out, err }
}

export async function signIn(store: Store, over: Partial<TokenGrant>): Promise<void> {
  const expiresAt = Date.now() + 10 * HOUR + 60_000
  await new Tokens(store).save('ada', {
    accessToken: TOKEN,
    expiresAt,
    origin: 'http://127.0.0.1:1',
    ...over,
  })
}

export async function findings(context: Context, flags: Flags = {}): Promise<NamedResult[]> {
  return diagnose(context, flags, { nodeVersion: '20.18.0' })
}

/** The finding of one check, in words: its state, what it says, and what mends it. */
export async function finding(check: string, given: Promise<{ context: Context }>, flags?: Flags) {
  const { context } = await given
  const found = (await findings(context, flags)).find((one) => one.check === check)
  return found && [found.state, found.text, ...(found.fix === undefined ? [] : [found.fix])]
}

export async function used(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  closing.defer(async () => void server.close())
  const address = server.address()
  return typeof address === 'object' && address ? address.port : 0
}
