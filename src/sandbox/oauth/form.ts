import type { Context } from 'hono'
import { readBody, type HttpEnv } from '../../http/body.js'

/** Body limit of forms and token requests, which have a few short fields or a manifest of about 1 KB. */
const FORM_LIMIT = 65_536

/** GitHub's texts for failed requests of applications (https://docs.github.com/apps/oauth-apps/building-oauth-apps/authorizing-oauth-apps). */
const FAILURES = {
  bad_verification_code: 'The code passed is incorrect or expired.',
  incorrect_client_credentials: 'The client_id and/or client_secret passed are incorrect.',
  redirect_uri_mismatch: 'The redirect_uri MUST match the registered callback URL for this application.',
  bad_refresh_token: 'The refresh token passed is incorrect or expired.',
  unsupported_grant_type: 'The grant type is not supported.',
  authorization_pending: 'The authorization request is still pending.',
  slow_down: 'Too many requests have been made in the same timeframe.',
  expired_token: 'This device code has expired.',
  access_denied: 'The authorization request was denied.',
  incorrect_device_code: 'The device_code provided is not valid.',
  device_flow_disabled: 'Device Flow must be explicitly enabled for this App',
} as const

export type Failure = keyof typeof FAILURES

/** Fields of a response. */
export type Fields = Readonly<Record<string, string | number>>

/** Reads a form or a JSON object, the two encodings that GitHub accepts. Anything else has no fields. */
export async function readFields(c: Context<HttpEnv>): Promise<URLSearchParams> {
  const text = await readText(c)
  if (!/^application\/json\b/i.test(c.req.header('content-type') ?? '')) return new URLSearchParams(text)
  return toForm(parseObject(text))
}

/** Reads the form of a page. */
export async function readForm(c: Context<HttpEnv>): Promise<URLSearchParams> {
  return new URLSearchParams(await readText(c))
}

/** Sends a form, or JSON if `Accept` names it, like GitHub. */
export function respond(c: Context, fields: Fields, status: 200 | 400 | 404 = 200): Response {
  c.header('Cache-Control', 'no-store')
  if (c.req.header('accept')?.includes('application/json')) return c.json(fields, status)
  c.header('Content-Type', 'application/x-www-form-urlencoded; charset=utf-8')
  return c.body(toForm(fields).toString(), status)
}

/** Fields of a failure's response, which GitHub mostly sends with status 200. */
export function failure(error: Failure): Fields {
  return {
    error,
    error_description: FAILURES[error],
    error_uri:
      'https://docs.github.com/apps/managing-oauth-apps/troubleshooting-oauth-app-access-token-request-errors/',
  }
}

async function readText(c: Context<HttpEnv>): Promise<string> {
  return new TextDecoder().decode(await readBody(c, FORM_LIMIT))
}

function parseObject(text: string): object {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? value : {}
  } catch {
    return {}
  }
}

function toForm(object: object): URLSearchParams {
  return new URLSearchParams(
    Object.entries(object).map(([name, value]): [string, string] => [name, String(value)]),
  )
}
