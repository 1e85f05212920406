import { type AuthorizationServer, authorizationServer, OAUTH_CLIENT } from '../kit/authorization-server.js'
import { Closing } from '../kit/closing.js'
import type { Env } from '../kit/folder.js'
import { exchange, type RawAnswer, requestText } from '../kit/http.js'
import { beginSignIn } from '../kit/pages.js'
import { hostVariables, type Place, place, type Seams, type Serving } from '../kit/place.js'

/** On every answer about signing in. */
export const PRIVATE = { 'cache-control': 'no-store', 'referrer-policy': 'no-referrer' }

/** A relay with an authorization server as its code host, which ends with it. */
export interface Rig extends AsyncDisposable {
  readonly server: AuthorizationServer
  readonly here: Place
  relay: Serving
  ask(method: string, path: string, headers?: Record<string, string>): Promise<RawAnswer>
  /** Starts signing in and lets the user agree: the query and the address to come back with, and the browser's cookie. */
  agreed(userId?: string): Promise<{ query: URLSearchParams; cookie: string; back: string }>
  /** The exit code of `relay token` for that user: 4 if there is no token. */
  tokenOf(userId: string): Promise<number>
}

export interface RigOptions {
  /** Of the sandbox the issuer is known, as it is of github.com. */
  readonly name?: 'github' | 'gitea' | 'sandbox'
  readonly env?: Env
  readonly seams?: (server: AuthorizationServer) => Seams
}

export async function startRig({ name = 'github', env = {}, seams }: RigOptions = {}): Promise<Rig> {
  await using stack = new Closing()
  const server = stack.use(await authorizationServer())
  const all = { ...hostVariables(name, server.url, OAUTH_CLIENT), ...env }
  const here = stack.use(await place({ host: 'none', env: all }))
  const owned = stack.move()
  const rig: Rig = {
    server,
    here,
    relay: await here.serveWith(seams ? { seams: seams(server) } : {}),
    ask: (method, path, headers) => exchange(rig.relay.port, requestText(method, path, headers)),
    async agreed(userId = 'alice') {
      const address = `${rig.relay.address}/auth/${name}?userId=${encodeURIComponent(userId)}`
      const { authorize, cookie } = await beginSignIn(address)
      const query = server.approve(authorize)
      return { query, cookie, back: `/auth/${name}/callback?${query.toString()}` }
    },
    tokenOf: async (userId) => (await here.run('token', '--user', userId)).code,
    [Symbol.asyncDispose]: () => owned[Symbol.asyncDispose](),
  }
  return rig
}
