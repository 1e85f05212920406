import { createPrivateKey, sign } from 'node:crypto'
import { RelayError } from '../../base/errors.js'
import type { AppIdentity } from '../registration.js'

/** Seconds by which the token is dated back, since clocks differ, and for which it is valid: GitHub allows 600 in all. */
const BACKDATED = 60
const LIFETIME = 540

/**
 * Token that authenticates an App: a JWT (RFC 7519) signed with RS256, valid for 9 minutes
 * (https://docs.github.com/apps/creating-github-apps/authenticating-with-a-github-app/generating-a-json-web-token-jwt-for-a-github-app).
 * `now` is in milliseconds.
 * @throws RelayError `settings` if the key is not a private key
 */
export function appToken({ id, privateKey }: AppIdentity, now: number): string {
  const seconds = Math.floor(now / 1000)
  const claims = { iat: seconds - BACKDATED, exp: seconds + LIFETIME, iss: String(id) }
  const signed = `${encode({ alg: 'RS256', typ: 'JWT' })}.${encode(claims)}`
  try {
    const key = createPrivateKey(privateKey.reveal())
    return `${signed}.${sign('RSA-SHA256', Buffer.from(signed), key).toString('base64url')}`
  } catch {
    // Without a cause, which may quote the key.
    throw new RelayError('settings', 'The stored key of the App is unusable. Run relay setup again')
  }
}

function encode(part: object): string {
  return Buffer.from(JSON.stringify(part)).toString('base64url')
}
