import { type AccountChange, accountText } from '../auth/accounts.js'
import { createSignIn } from '../auth/parts.js'
import { Queue } from '../base/queue.js'
import type { OAuthClient } from '../base/settings.js'
import { aborted, deadline } from '../base/wait.js'
import { systemClock } from '../base/time.js'
import { listen } from '../http/listen.js'
import { reachedAt } from '../http/reached.js'
import { createRouter } from '../http/router.js'
import { authRoutes } from '../server/auth.js'
import { homeRoutes } from '../server/home.js'
import type { Shell } from './command.js'
import { explainPort } from './port-owner.js'
import type { UserProfile } from './user-profile.js'

/** Time for a browser to follow the redirect to the last page. Programs do not follow it. Milliseconds. */
const LAST_PAGE_LIMIT = 1_000

/**
 * Receives the callback of the code host, for a sign-in while no instance runs. Serves only the requests of a sign-in,
 * on the configured port. A delivery that arrives meanwhile gets 404. Does not take the profile.
 * @param login nonce under which the command waits for the sign-in
 * @throws RelayError `settings` if the port is in use
 */
export async function receiveCallback(
  shell: Shell,
  profile: UserProfile,
  { client, login }: { readonly client: OAuthClient; readonly login: string },
) {
  const { out, seams } = shell
  const { host, tokens, database, limits, values } = profile
  const { tokenTtl, port, allowHost: allowedHosts = [], inspectHost: inspectHosts } = values
  const { log } = out
  const settings = { ...values, allowedHosts, inspectHosts }
  const { publicUrl, baseUrl, hostAllowed } = reachedAt(settings, () => listener.url)
  const asked = new AbortController()
  // One wait is enough for any number of outcomes.
  const outcomes = new Queue<undefined>(1, () => undefined)
  const router = createRouter({ hostAllowed, log })
  router.use('/', (c, next) => {
    if (c.req.query('auth') !== undefined) asked.abort()
    return next()
  })
  const parts = {
    host,
    client,
    store: database.store,
    tokens,
    tokenTtl,
    clock: seams?.clock ?? systemClock,
    log,
    timeLimit: limits.tokenEndpoint,
    // The command itself reports its own sign-in.
    onAccount: (change: AccountChange) => change.login === login || log.warn(accountText(change)),
    onOutcome: () => outcomes.push(undefined),
  }
  const signIn = createSignIn(parts, publicUrl)
  router
    .route('/', homeRoutes({ places: () => ({}), command: profile.command }))
    .route('/', authRoutes({ signIn, baseUrl }))
  const { headers, request, idle, stop: grace } = limits
  const timeLimits = { headers, request, idle, grace }
  const listening = listen(router.fetch, { host: values.host, port, log, limits: timeLimits })
  const listener = await listening.catch(async (error: unknown) => {
    throw await explainPort(shell, values, error)
  })
  return {
    url: listener.url,
    outcomes,
    /**
     * Resolves once the browser has requested the last page, or does not request it here. Its request is still
     * answered.
     */
    async lastPage(): Promise<void> {
      if (values.baseUrl === undefined) await aborted(deadline(LAST_PAGE_LIMIT, asked.signal))
    },
    [Symbol.asyncDispose]: () => listener.close(),
  }
}
