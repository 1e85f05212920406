import { Secret } from '../../src/base/secret.js'
import type { Sandbox } from '../../src/sandbox/start.js'

const SECRET = 'canary-client-secret'

/** The OAuth application of a sandbox that stands in for a code host: `startSandbox(CLIENT)`. */
export const CLIENT = { clientId: 'canary', clientSecret: new Secret(SECRET) }

/** The environment in which a program takes that sandbox for its code host. */
export function codeHost({ url }: Sandbox): Record<string, string> {
  return {
    RELAY_PROVIDER: 'sandbox',
    RELAY_PROVIDER_URL: url,
    RELAY_CLIENT_ID: CLIENT.clientId,
    RELAY_CLIENT_SECRET: SECRET,
  }
}

/** The request of an action, with the user's token. */
export function action(token: string, body: unknown): RequestInit {
  return {
    method: 'POST',
    headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' },
    body: JSON.stringify(body),
  }
}
