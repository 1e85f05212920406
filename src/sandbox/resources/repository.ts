import { nodeId } from './node-id.js'
import type { Repo } from '../model.js'
import { userResource } from './user.js'
import type { View } from './view.js'

/** Repository, as in payloads and pull requests (https://docs.github.com/rest/repos/repos). */
export function repositoryResource(view: View, fullName: string) {
  const repo = view.repo(fullName)
  const web = `${view.web}/${fullName}`
  return {
    id: repo.id,
    node_id: nodeId('Repository', repo.id),
    name: repo.name,
    full_name: fullName,
    private: false,
    owner: userResource(view, repo.owner),
    html_url: web,
    description: repo.description,
    fork: false,
    ...apiLinks(view.repoApi(fullName)),
    ...properties(view, repo),
    git_url: `git://${new URL(web).host}/${fullName}.git`,
    ssh_url: `git@${new URL(web).hostname}:${fullName}.git`,
    clone_url: `${web}.git`,
    svn_url: web,
  }
}

function properties(view: View, { fullName, hasIssues, createdAt }: Repo) {
  const openIssues = view.state.issues.filter((issue) => issue.repo === fullName && !issue.closedAt).length
  return {
    created_at: createdAt,
    updated_at: createdAt,
    pushed_at: createdAt,
    homepage: null,
    size: 1,
    stargazers_count: 0,
    watchers_count: 0,
    language: null,
    has_issues: hasIssues,
    has_projects: false,
    has_downloads: false,
    has_wiki: false,
    has_pages: false,
    has_discussions: false,
    forks_count: 0,
    mirror_url: null,
    archived: false,
    disabled: false,
    open_issues_count: openIssues,
    license: null,
    allow_forking: true,
    is_template: false,
    web_commit_signoff_required: false,
    topics: [],
    custom_properties: {},
    visibility: 'public',
    forks: 0,
    open_issues: openIssues,
    watchers: 0,
    default_branch: 'main',
  }
}

function apiLinks(api: string) {
  return {
    url: api,
    forks_url: `${api}/forks`,
    keys_url: `${api}/keys{/key_id}`,
    collaborators_url: `${api}/collaborators{/collaborator}`,
    teams_url: `${api}/teams`,
    hooks_url: `${api}/hooks`,
    issue_events_url: `${api}/issues/events{/number}`,
    events_url: `${api}/events`,
    assignees_url: `${api}/assignees{/user}`,
    branches_url: `${api}/branches{/branch}`,
    tags_url: `${api}/tags`,
    blobs_url: `${api}/git/blobs{/sha}`,
    git_tags_url: `${api}/git/tags{/sha}`,
    git_refs_url: `${api}/git/refs{/sha}`,
    trees_url: `${api}/git/trees{/sha}`,
    statuses_url: `${api}/statuses/{sha}`,
    languages_url: `${api}/languages`,
    stargazers_url: `${api}/stargazers`,
    contributors_url: `${api}/contributors`,
    subscribers_url: `${api}/subscribers`,
    subscription_url: `${api}/subscription`,
    commits_url: `${api}/commits{/sha}`,
    git_commits_url: `${api}/git/commits{/sha}`,
    comments_url: `${api}/comments{/number}`,
    issue_comment_url: `${api}/issues/comments{/number}`,
    contents_url: `${api}/contents/{+path}`,
    compare_url: `${api}/compare/{base}...{head}`,
    merges_url: `${api}/merges`,
    archive_url: `${api}/{archive_format}{/ref}`,
    downloads_url: `${api}/downloads`,
    issues_url: `${api}/issues{/number}`,
    pulls_url: `${api}/pulls{/number}`,
    milestones_url: `${api}/milestones{/number}`,
    notifications_url: `${api}/notifications{?since,all,participating}`,
    labels_url: `${api}/labels{/name}`,
    releases_url: `${api}/releases{/id}`,
    deployments_url: `${api}/deployments`,
  }
}
