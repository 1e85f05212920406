import { verify } from 'node:crypto'
import { isObject } from '../../json/parse.js'
import { GitHubError } from '../github-error.js'
import type { App, Apps } from './apps.js'

/** Longest lifetime of an App's token, in seconds. */
const MAX_LIFETIME_S = 600

/**
 * The App that a token authenticates: JWT, RS256, `iss` the App's id or client id, valid for at most 10 minutes
 * (https://docs.github.com/apps/creating-github-apps/authenticating-with-a-github-app/generating-a-json-web-token-jwt-for-a-github-app).
 * `now` is in milliseconds.
 * @throws GitHubError 401, or 404 for an App that is not registered
 */
export function authenticateApp(apps: Apps, token: string, now: number): App {
  const [header = '', payload = '', signature = '', ...rest] = token.split('.')
  const claims = decode(payload)
  if (rest.length > 0 || decode(header)?.['alg'] !== 'RS256' || !claims) throw undecodable()
  const { iss } = claims
  if (typeof iss !== 'string' && typeof iss !== 'number')
    throw new GitHubError(401, "Missing 'issuer' claim ('iss') in assertion")
  const app = apps.find(String(iss))
  if (!app) throw new GitHubError(404, 'Integration not found')
  const signed = Buffer.from(`${header}.${payload}`)
  if (!verify('RSA-SHA256', signed, app.publicKey, Buffer.from(signature, 'base64url'))) throw undecodable()
  checkTimes(claims, now / 1000)
  return app
}

function checkTimes({ iat, exp }: Readonly<Record<string, unknown>>, now: number): void {
  if (typeof exp !== 'number' || exp <= now)
    throw new GitHubError(
      401,
      "'Expiration time' claim ('exp') must be a numeric value representing the future time at which the assertion expires",
    )
  if (exp > now + MAX_LIFETIME_S)
    throw new GitHubError(401, "'Expiration time' claim ('exp') is too far in the future")
  if (typeof iat !== 'number' || !Number.isInteger(iat) || iat > now)
    throw new GitHubError(
      401,
      "'Issued at' claim ('iat') must be an Integer representing the time that the assertion was issued",
    )
}

function decode(part: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(Buffer.from(part, 'base64url').toString())
    return isObject(value) ? value : undefined
  } catch {
    return undefined
  }
}

function undecodable(): GitHubError {
  return new GitHubError(401, 'A JSON web token could not be decoded')
}
