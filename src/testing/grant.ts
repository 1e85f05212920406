import { parseUrl } from '../base/parse-url.js'
import { RelayError } from '../base/errors.js'
import { readText, sendOnce } from '../net/client.js'
import { consent, formOf } from './consent.js'

export interface Client {
  readonly id: string
  readonly secret: string
}

/** Response of the token endpoint. It has a refresh token if the sandbox's tokens expire. */
export interface Grant {
  readonly access_token: string
  readonly refresh_token?: string
}

/** Nothing listens here and nothing is sent here: the code is read from the redirect's URL. */
const REDIRECT_URI = 'http://127.0.0.1:1/callback'

/**
 * Gets tokens from a sandbox in the way of a browser and an application: consent page, form, token endpoint.
 * @throws RelayError `unauthenticated` when the sandbox gives none.
 */
export async function grantAt(url: string, { id, secret }: Client, scope = 'repo'): Promise<Grant> {
  const query = new URLSearchParams({ client_id: id, redirect_uri: REDIRECT_URI, scope })
  const redirect = await consent(`${url}/login/oauth/authorize?${query.toString()}`)
  const code = parseUrl(redirect)?.searchParams.get('code') ?? ''
  const exchange = { client_id: id, client_secret: secret, code, redirect_uri: REDIRECT_URI }
  const response = await sendOnce(`${url}/login/oauth/access_token`, formOf(exchange))
  const text = await readText(response)
  const grant: Grant =
    response.status === 200 && text.includes('"access_token"') ? JSON.parse(text) : { access_token: '' }
  if (grant.access_token === '') throw new RelayError('unauthenticated', `The sandbox gave no token: ${text}`)
  return grant
}
