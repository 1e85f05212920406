import { RelayError } from '../base/errors.js'
import { readText, sendOnce } from '../net/client.js'
import type { Serving } from '../serve/serve.js'
import { consent } from './consent.js'

/**
 * Signs a user in at a relay with its sandbox, with every step of a browser, and returns the access token.
 * @throws RelayError `usage` for an invalid user id, `unauthenticated` with the reason when the sign-in fails.
 */
export async function signIn(
  { url, relay }: Pick<Serving, 'url' | 'relay'>,
  userId: string,
): Promise<string> {
  const get = (address: string, headers = {}) => sendOnce(address, { method: 'GET', headers })
  const started = await get(`${url}/auth/sandbox?userId=${encodeURIComponent(userId)}`)
  const text = await readText(started)
  const page = started.header('location')
  if (page === undefined) throw new RelayError('usage', `Cannot sign in: ${text}`)
  const [cookie = ''] = (started.header('set-cookie') ?? '').split(';')
  const result = await get(await consent(page), { cookie })
  result.discard()
  const reason = new URL(result.header('location') ?? url).searchParams.get('reason')
  const owner = await relay.tokens.get(userId)
  if (reason !== null || !owner)
    throw new RelayError('unauthenticated', `Cannot sign in: ${reason ?? 'there is no token'}`)
  return owner.accessToken
}
