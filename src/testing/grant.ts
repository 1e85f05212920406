import { outboundFetch } from '../providers/fetch.js'
import { RelayError } from '../base/errors.js'
import { consent } from './consent.js'

/** An OAuth application. */
export interface Client {
  readonly id: string
  readonly secret: string
}

/** What a token endpoint answers; a sandbox whose tokens end gives a refresh token too. */
export interface Grant {
  readonly access_token: string
  readonly refresh_token?: string
}

/** Nothing listens there, and nothing is sent: the code is read out of the address. */
const REDIRECT_URI = 'http://127.0.0.1:1/callback'

/**
 * Tokens of a sandbox, got as a browser and an application get them: the consent page, its form, the token endpoint.
 * @throws RelayError `unauthenticated` when the sandbox gives none.
 */
export async function grantAt(url: string, { id, secret }: Client, scope = 'repo'): Promise<Grant> {
  const query = new URLSearchParams({ client_id: id, redirect_uri: REDIRECT_URI, scope })
  const back = await consent(`${url}/login/oauth/authorize?${query.toString()}`)
  const code = URL.canParse(back) ? (new URL(back).searchParams.get('code') ?? '') : ''
  const redeem = { client_id: id, client_secret: secret, code, redirect_uri: REDIRECT_URI }
  const answer = await outboundFetch(`${url}/login/oauth/access_token`, {
    method: 'POST',
    headers: { accept: 'application/json' },
    body: new URLSearchParams(redeem),
  })
  const text = await answer.text()
  const grant: Grant = answer.ok && text.includes('"access_token"') ? JSON.parse(text) : { access_token: '' }
  if (grant.access_token === '') throw new RelayError('unauthenticated', `The sandbox gave no token: ${text}`)
  return grant
}
