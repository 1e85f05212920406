import { z } from 'zod/mini'
import { RelayError } from '../../base/errors.js'
import { Secret } from '../../base/secret.js'
import type { ResponseHead } from '../../net/client.js'
import { GITLAB_WEBHOOK } from '../../senders/gitlab.js'
import { fieldsOf } from '../../json/parse.js'
import type * as host from '../host.js'
import { type Api, RestClient } from '../rest.js'
import { GitLabAccount, pagePath } from './account.js'
import { HOOK_EVENTS } from './hooks.js'

/** GitLab lists the events of a hook for 7 days (https://docs.gitlab.com/api/project_webhooks/). */
const LOG_PERIOD_MS = 7 * 86_400_000

const TRAITS: host.HostTraits = {
  webhook: GITLAB_WEBHOOK,
  nestedOwners: true,
  separateNumbers: true,
  commentPaths: (on, id) => [`${pagePath(on)}#note_${id}`],
  testEvent: 'push',
  testNeedsEvent: false,
  hookEvents: HOOK_EVENTS,
  logPeriod: LOG_PERIOD_MS,
  // `web_hook_event_resend` in lib/gitlab/application_rate_limiter.rb, with the project and the user as its scope
  // (lib/api/hooks/resend_hook.rb). Administrators can change it from 19.3 on.
  resendsPerMinute: 5,
  words: {
    label: 'GitLab',
    hookScopes: 'the scope api',
    hookRole: 'the role Maintainer in the project',
    testHint: ({ url, owner, repo, id }) =>
      `GitLab sends nothing to private addresses unless its administrator allows it, and tests the hooks of a project five times a minute at most; ${url}/${owner}/${repo}/-/hooks/${id}/edit shows what it sent`,
    registrationToken: 'of an administrator, with the scope api',
    registrationEnd: 'Then save it there, and enter both here',
    applicationForm: ({ name, callbackUrl }) => [
      ['Name', name],
      ['Redirect URI', callbackUrl],
      ['Confidential', 'yes'],
      ['Scopes', 'api'],
    ],
  },
}

/** gitlab.com and self-managed GitLab, from 17.4 on. */
export const GITLAB: host.HostKind = { ...TRAITS, pathAllowed: true, isEmulated: false, open }

function open(url: URL, calling: host.CallingOptions): host.OpenedHost {
  const web = url.href.replace(/\/+$/, '')
  const apiUrl = `${web}/api/v4`
  const headers = { accept: 'application/json' }
  const { label } = TRAITS.words
  const api: Api = { label, base: apiUrl, headers, ...calling }
  /** Calls of its OAuth server, which are not part of the API. */
  const pages: Api = { ...api, base: web }
  return {
    ...TRAITS,
    name: 'gitlab',
    url: web,
    origin: url.origin,
    apiUrl,
    /** @see https://docs.gitlab.com/api/oauth2/ */
    oauth: {
      authorizationEndpoint: `${web}/oauth/authorize`,
      tokenEndpoint: `${web}/oauth/token`,
      deviceEndpoint: `${web}/oauth/authorize_device`,
      issuer: undefined,
      // No narrower scope may write notes or merge.
      scopes: ['api'],
      repeatsRedirectUri: true,
      deviceTakesSecret: true,
      checksTokenFirst: true,
    },
    // All of its API needs a token. A header identifies it (lib/api/api.rb).
    probe: { address: `${apiUrl}/version`, recognise },
    registrationPage: `${web}/-/user_settings/applications`,
    as: (token, options) => {
      const client = (of: Api): RestClient => new RestClient(of, { token }, options)
      return new GitLabAccount({ rest: client(api), oauth: client(pages), web, token })
    },
    /** POST /applications, for administrators alone (https://docs.gitlab.com/api/applications/). */
    async register(token, { name, redirectUri }, options) {
      const body = { name, redirect_uri: redirectUri, scopes: 'api', confidential: true }
      const rest = new RestClient(api, { token }, options)
      const made = rest.call('POST', '/applications', { body, answer: created })
      const { value } = await made.catch((error: unknown) => {
        if (!(error instanceof RelayError && error.kind === 'forbidden')) throw error
        throw new RelayError(
          'forbidden',
          'GitLab lets only administrators register an application by API. Everybody else registers it on its page, and gives an empty line in place of the token',
          {
            cause: error,
          },
        )
      })
      return { id: value.application_id, secret: new Secret(value.secret) }
    },
  }
}

const created = z.object({
  application_id: z.string().check(z.minLength(1)),
  secret: z.string().check(z.minLength(1)),
})

/**
 * Recognizes GitLab by the header of its API's responses, also of a refusal (lib/api/api.rb). Only a signed-in user can read
 * the version.
 */
function recognise({ status, header, json }: ResponseHead & { readonly json: unknown }): string | undefined {
  const { version } = fieldsOf(json)
  if (header('x-gitlab-meta') === undefined || ![200, 401, 403, 429].includes(status)) return undefined
  return status === 200 && typeof version === 'string' ? `GitLab ${version}` : 'GitLab'
}
