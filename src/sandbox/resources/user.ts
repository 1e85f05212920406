import { nodeId } from './node-id.js'
import type { View } from './view.js'

/** Account, as in every resource (https://docs.github.com/rest/users/users). */
export function userResource(view: View, login: string) {
  const { id, type } = view.user(login)
  const api = `${view.api}/users/${login}`
  return {
    login,
    id,
    node_id: nodeId('User', id),
    avatar_url: `${view.web}/${login}.png`,
    gravatar_id: '',
    url: api,
    html_url: `${view.web}/${login}`,
    followers_url: `${api}/followers`,
    following_url: `${api}/following{/other_user}`,
    gists_url: `${api}/gists{/gist_id}`,
    starred_url: `${api}/starred{/owner}{/repo}`,
    subscriptions_url: `${api}/subscriptions`,
    organizations_url: `${api}/orgs`,
    repos_url: `${api}/repos`,
    events_url: `${api}/events{/privacy}`,
    received_events_url: `${api}/received_events`,
    type,
    user_view_type: 'public',
    site_admin: false,
  }
}
