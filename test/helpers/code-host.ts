import type { TestSandbox } from '../../src/testing/index.js'

/** The OAuth application of a sandbox that stands in for a code host: `startSandbox({ client: CLIENT })`. */
export const CLIENT = { id: 'canary', secret: 'canary-client-secret' }

/** The environment in which a program takes that sandbox for its code host. */
export function codeHost({ url }: TestSandbox): Record<string, string> {
  return {
    RELAY_PROVIDER: 'sandbox',
    RELAY_PROVIDER_URL: url,
    RELAY_CLIENT_ID: CLIENT.id,
    RELAY_CLIENT_SECRET: CLIENT.secret,
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
