import { RelayError } from '../base/errors.js'
import { outboundFetch } from '../providers/fetch.js'
import type { Serving } from '../serve/serve.js'
import { consent } from './consent.js'

/**
 * Signs a user in at a relay with its sandbox, through every step that a browser takes, and gives the access token.
 * @throws RelayError `usage` for a user id that the relay refuses, `unauthenticated` saying why signing in failed.
 */
export async function signIn(
  { url, relay }: Pick<Serving, 'url' | 'relay'>,
  userId: string,
): Promise<string> {
  const begun = await outboundFetch(`${url}/auth/sandbox?userId=${encodeURIComponent(userId)}`, {
    redirect: 'manual',
  })
  const page = begun.headers.get('location')
  if (page === null) throw new RelayError('usage', `Cannot sign in: ${await begun.text()}`)
  const [cookie = ''] = (begun.headers.get('set-cookie') ?? '').split(';')
  const back = await outboundFetch(await consent(page), { headers: { cookie }, redirect: 'manual' })
  const reason = new URL(back.headers.get('location') ?? url).searchParams.get('reason')
  const holder = await relay.tokens.get(userId)
  if (reason !== null || !holder)
    throw new RelayError('unauthenticated', `Cannot sign in: ${reason ?? 'there is no token'}`)
  return holder.accessToken
}
