import { execFileSync } from 'node:child_process'
import { Disposal } from '../../src/base/disposal.js'
import { signIn } from '../../test/helpers/sign-in.js'
import { temporaryFolder } from './folder.js'
import { type Env, RELAY, type Server, startProgram, startRelay } from './server.js'

/** A running relay whose code host is a sandbox in a process of its own, and where a user is signed in. */
export interface SignedIn extends AsyncDisposable {
  readonly relay: Server
  readonly sandbox: Server
  /** The user's access token. */
  readonly token: string
  /** What the user's commands find in their environment. */
  readonly env: Env
}

const CLIENT = { RELAY_CLIENT_ID: 'bench', RELAY_CLIENT_SECRET: 'bench-secret' }
const USER = 'bench'

export async function startSignedIn(): Promise<SignedIn> {
  await using started = new Disposal()
  const home = temporaryFolder()
  started.defer(async () => home[Symbol.dispose]())
  const sandbox = started.use(await startProgram('sandbox', CLIENT))
  const provider = { RELAY_PROVIDER: 'sandbox', RELAY_PROVIDER_URL: sandbox.url, ...CLIENT }
  const own = { HOME: home.path, RELAY_HOME: home.path, RELAY_USER: USER }
  const env = { PATH: process.env['PATH'] ?? '', ...own, ...provider }
  const relay = started.use(await startRelay(env))
  await signIn(relay.url, USER)
  const token = execFileSync(process.execPath, [RELAY, 'token'], { env, encoding: 'utf8' }).trim()
  const owner = started.move()
  return { relay, sandbox, token, env, [Symbol.asyncDispose]: () => owner[Symbol.asyncDispose]() }
}
