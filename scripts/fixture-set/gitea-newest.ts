type Fields = Readonly<Record<string, unknown>>

/** Fields that are new since 1.15, by the field after which they stand. */
type Additions = Readonly<Record<string, Fields>>

const ZERO_TIME = '0001-01-01T00:00:00Z'
const WEB = 'https://gitea.example.com'

const USER: Additions = {
  login: { login_name: '', source_id: 0 },
  avatar_url: { html_url: `${WEB}/octo` },
}
const REPOSITORY: Additions = {
  size: { language: '', languages_url: `${WEB}/api/v1/repos/octo/demo/languages` },
  html_url: { url: `${WEB}/api/v1/repos/octo/demo`, link: '' },
  updated_at: { archived_at: ZERO_TIME },
  has_projects: { projects_mode: 'all', has_releases: true, has_packages: true, has_actions: true },
  allow_squash_merge: {
    allow_fast_forward_only_merge: true,
    allow_rebase_update: true,
    allow_manual_merge: false,
    autodetect_manual_merge: false,
    default_delete_branch_after_merge: false,
  },
  default_merge_style: { default_allow_maintainer_edit: false },
  mirror_interval: { object_format_name: 'sha1', mirror_updated: ZERO_TIME, topics: [], licenses: [] },
}
const ISSUE: Additions = {
  ref: { assets: [] },
  milestone: { project: null },
  due_date: { time_estimate: 0 },
  repository: { pin_order: 0, content_version: 0 },
}
const COMMENT: Additions = { body: { assets: [] } }
const PUSH: Additions = { commits: { total_commits: 1 } }
const ISSUES: Additions = { sender: { commit_id: '' } }
const PULL_REQUEST: Additions = { pull_request: { requested_reviewer: null }, sender: { commit_id: '' } }

/** The additions to an object, which is recognized by its fields. */
function additionsTo(object: Fields): Additions {
  const has = (...names: string[]): boolean => names.every((name) => name in object)
  if (has('login', 'username')) return USER
  if (has('owner', 'clone_url')) return REPOSITORY
  if (has('commits', 'pusher')) return PUSH
  if (has('issue_url', 'body')) return COMMENT
  if (has('original_author', 'title')) return ISSUE
  if (has('pull_request', 'action')) return PULL_REQUEST
  return has('issue', 'number', 'action') ? ISSUES : {}
}

/**
 * A payload of 1.15 with the fields that Gitea has added since: modules/structs/{user,repo,issue,issue_comment,hook}.go, main. Its
 * pull requests have gained more.
 */
export function newest(payload: unknown): unknown {
  if (Array.isArray(payload)) return payload.map(newest)
  if (typeof payload !== 'object' || payload === null) return payload
  const additions = additionsTo({ ...payload })
  const fields = Object.entries(payload)
    // Omitted since it is empty.
    .filter(([name, value]) => name !== 'parent' || value !== null)
    .flatMap(([name, value]) => [[name, newest(value)] as const, ...Object.entries(additions[name] ?? {})])
  return Object.fromEntries(fields)
}
