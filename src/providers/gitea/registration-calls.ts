// The call to Gitea that registers an OAuth application; loaded when it is made.
import { z } from 'zod'
import { Secret } from '../../base/secret.js'
import type { OAuthClient } from '../../base/settings.js'
import { send, type UserApi } from '../http.js'

const created = z.object({ client_id: z.string().min(1), client_secret: z.string().min(1) })

/**
 * POST /user/applications/oauth2 (CreateOAuth2ApplicationOptions in Gitea's modules/structs/user_app.go). Versions before 1.17
 * ignore `confidential_client`: all their applications are confidential.
 */
export async function createApplication(
  api: UserApi,
  { name, redirectUri }: { readonly name: string; readonly redirectUri: string },
): Promise<OAuthClient> {
  const body = { name, redirect_uris: [redirectUri], confidential_client: true }
  const path = ['user', 'applications', 'oauth2']
  const { value } = await send(api, { method: 'POST', path, body, answer: created })
  return { id: value.client_id, secret: new Secret(value.client_secret) }
}
