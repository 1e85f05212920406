import { createProvider } from '../../providers/open.js'
import { findSandboxClient } from '../../sandbox/client.js'
import { createTokens } from '../../tokens/tokens.js'
import { readUser } from '../user.js'
import { readKeptWebhookSecret } from '../webhook-secret.js'
import { commandFor, type Facts } from './facts.js'
import { none, ok, wrong, type Verdict } from './finding.js'

/** Anything shorter can be tried out offline by who has seen one delivery. */
const SHORTEST_SECRET = 20
/** Fewer different characters are no random text of that length. */
const FEWEST_DIFFERENT = 8

/** Whether the webhook secret, and the one before it, would stand up to guessing. */
export function checkWebhookSecret({ options, folder, kind }: Facts): Verdict {
  const kept = options.webhookSecret === undefined ? readKeptWebhookSecret(folder, kind)?.reveal() : undefined
  const secret = options.webhookSecret ?? kept
  if (secret === undefined) return none('not made yet: relay serve makes one at first start')
  const weak = [secret, options.webhookSecretPrevious].some((text) => text !== undefined && isWeak(text))
  if (weak)
    return wrong(
      `too easy to guess: fewer than ${SHORTEST_SECRET} characters, or too few different ones`,
      'RELAY_WEBHOOK_SECRET=$(openssl rand -hex 32), here and at the code host',
    )
  return ok(kept === undefined ? 'set' : 'made by relay')
}

function isWeak(secret: string): boolean {
  return secret.length < SHORTEST_SECRET || new Set(secret).size < FEWEST_DIFFERENT
}

/** Whether users can sign in: the OAuth application is known. */
export async function checkClient({
  options,
  instance,
  store,
  provider,
  publicUrl,
}: Facts): Promise<Verdict> {
  const { clientId, clientSecret } = options
  if (store && instance && (await findSandboxClient(store, instance.providerUrl)))
    return ok("the sandbox's own")
  const missing = [
    ...(clientId === undefined ? ['RELAY_CLIENT_ID'] : []),
    ...(clientSecret === undefined ? ['RELAY_CLIENT_SECRET'] : []),
  ].join(' and ')
  if (missing === '') return ok('RELAY_CLIENT_ID and RELAY_CLIENT_SECRET are set')
  if (provider === 'sandbox') return none('the sandbox brings its own')
  return wrong(
    `${missing} not set: nobody can sign in`,
    `register an OAuth application at the code host that returns to ${redirectUri(publicUrl, provider)}, and set them`,
  )
}

/** Where the code host sends a browser back to; registered there to the letter. Port 0 is not known before it is used. */
export function redirectUri(publicUrl: string, provider: string): string {
  return `${publicUrl.replace(/:0$/, ':<port>')}/auth/${provider}/callback`
}

/** Whether the user has a token, it lives, and it is this code host's. The token is not sent anywhere. */
export async function checkToken(facts: Facts, now: number): Promise<Verdict> {
  const { options, store, provider, providerUrl } = facts
  const user = readUser(options)
  const login = commandFor(options, options.user === undefined ? 'login' : `login --user ${user}`)
  const tokens = store && createTokens(store)
  const holder = await tokens?.get(user)
  if (!tokens || !holder) {
    const renewal = await tokens?.refreshable(user)
    return renewal
      ? ok(`${user}'s has ended, and is renewed when next used`)
      : wrong(`${user} is not signed in`, login)
  }
  if (providerUrl === undefined) return none('the code host is not known')
  const { origin } = createProvider({ name: provider, url: providerUrl })
  if (holder.origin !== origin) return wrong(`${user}'s is from ${holder.origin}, not ${origin}`, login)
  const hours = Math.floor((holder.expiresAt - now) / 3_600_000)
  return ok(`${user}'s, for ${hours < 48 ? `${hours} h` : `${Math.floor(hours / 24)} days`}`)
}
