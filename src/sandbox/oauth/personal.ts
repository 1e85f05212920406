import { Hono } from 'hono'
import type { Clock } from '../../base/time.js'
import type { HttpEnv } from '../../http/body.js'
import { newTokenPage, shownTokenPage } from '../pages/personal-token.js'
import { OWNER } from '../seed.js'
import { readForm } from './form.js'
import { Once } from './once.js'
import type { Permissions } from './permissions.js'
import { SCOPES } from './scopes.js'
import type { AccessTokens } from './tokens.js'

/** Lifetime of the form: an hour. */
const FORM_LIFETIME_MS = 3_600_000

/** Personal access tokens, which the user makes for programs without an application (https://docs.github.com/authentication/keeping-your-account-and-data-secure/managing-your-personal-access-tokens). */
export function personalTokenRoutes(tokens: AccessTokens, clock: Clock): Hono<HttpEnv> {
  const forms = new Once<true>(clock, FORM_LIFETIME_MS)
  return new Hono<HttpEnv>()
    .get('/settings/tokens/new', () => newTokenPage(forms.put(true)))
    .post('/settings/tokens', async (c) => {
      const form = await readForm(c)
      if (!forms.take(form.get('authenticity_token') ?? '')) return newTokenPage(forms.put(true), 422)
      return shownTokenPage(tokens.issuePersonal(OWNER, readRights(form)).accessToken)
    })
}

/** Only scopes that the page offers. */
function readRights(form: URLSearchParams): { scopes: string[] } | { permissions: Permissions } {
  const kind = form.get('kind')
  if (kind === 'read' || kind === 'write') return { permissions: { '*': kind } }
  return { scopes: form.getAll('scope').filter((scope) => Object.hasOwn(SCOPES, scope)) }
}
