import { apiError, type GitLabCall, type GitLabToken, paged, userOf } from './gitlab-parts.js'
import type { FullReply } from './receiver.js'

/** The head of merge request !2, one that was pushed later, and the commit that its merge makes. */
export const GITLAB_HEAD = 'a'.repeat(40)
export const GITLAB_PUSHED = 'b'.repeat(40)
export const GITLAB_MERGED = 'c'.repeat(40)

interface Note {
  readonly id: number
  body: string
  readonly username: string
  readonly system: boolean
}

interface Award {
  readonly id: number
  readonly name: string
  readonly username: string
}

interface Subject {
  readonly type: 'Issue' | 'MergeRequest'
  readonly iid: number
  readonly notes: Note[]
  state: string
}

/** Pipeline that a merge request names: by default that of its head. */
export interface GitLabPipeline {
  readonly id: number
  readonly status: string
  readonly sha?: string
  readonly ref?: string
}

/** A job or an external status of a commit. */
export interface GitLabStatus {
  readonly id: number
  readonly name: string
  readonly status: string
  readonly allow_failure?: boolean
}

export function subjectsState() {
  const subject = (type: Subject['type'], iid: number): Subject => ({ type, iid, notes: [], state: 'opened' })
  return {
    /** Issues #2 and #3, and merge request !2: numbers clash. */
    all: [subject('Issue', 2), subject('Issue', 3), subject('MergeRequest', 2)],
    awards: new Map<string, Award[]>(),
    lastId: 0,
    /** Who may not merge: `can_be_merged_by?`. */
    mayNotMerge: new Set<string>(),
    head: GITLAB_HEAD,
    /** `detailed_merge_status` of !2. */
    status: 'mergeable',
    /** Looks at !2 after which the status is `mergeable`, where it is `checking`. */
    looks: 0,
    /** The merge itself fails with this (`merge_error`). */
    mergeError: null as string | null,
    pipeline: undefined as GitLabPipeline | undefined,
    statuses: [] as GitLabStatus[],
    /** Bodies of the merges that were asked for. */
    merges: [] as Readonly<Record<string, unknown>>[],
    autoMerges: 0,
    merged: undefined as string | undefined,
    /** Whether the project is merged by squashing or by a merge commit. */
    squashed: false,
  }
}

export type SubjectsState = ReturnType<typeof subjectsState>
type State = SubjectsState

/** Answers requests about issues, merge requests, notes, emoji and statuses. Undefined for another. */
export function answerSubjects(state: State, call: GitLabCall): FullReply | undefined {
  const { path, request, token } = call
  const statuses = /^\/repository\/commits\/([0-9a-f]+)\/statuses$/.exec(path)
  if (statuses) return statusesOf(state, statuses[1] ?? '', call)
  const found = /^\/(issues|merge_requests)\/(\d+)(\/.*)?$/.exec(path)
  if (!found) return undefined
  const [, kind, number, rest = ''] = found
  const type = kind === 'issues' ? 'Issue' : 'MergeRequest'
  const subject = state.all.find((each) => each.type === type && each.iid === Number(number))
  // `find_project_issue` and the others raise RecordNotFound (lib/api/api.rb).
  if (!subject) return apiError(404, '404 Not found')
  const what = `${request.method} ${rest}`
  if (what === 'GET ')
    return { body: type === 'Issue' ? showIssue(subject) : showMergeRequest(state, subject) }
  if (what === 'PUT /merge' && type === 'MergeRequest') return merge(state, subject, call)
  const [, noteId, awards] = /^\/notes(?:\/(\d+))?(\/award_emoji)?$/.exec(rest) ?? []
  if (rest === '/award_emoji' || awards !== undefined) return awardOf(state, subject, noteId, call)
  if (what === 'GET /notes') return listNotes(subject, call)
  if (what === 'POST /notes') return createNote(state, subject, call)
  const note = subject.notes.find((each) => each.id === Number(noteId))
  if (!note || request.method !== 'PUT') return apiError(404, '404 Not found')
  // lib/api/helpers/notes_helpers.rb, `authorize! :admin_note`.
  if (note.username !== token.username) return apiError(403, '403 Forbidden')
  note.body = String(call.body['body'])
  return { body: showNote(subject, note) }
}

function showIssue({ iid, state }: Subject) {
  return { id: 100 + iid, iid, project_id: 7, state, title: `Issue ${iid}` }
}

/** lib/api/entities/merge_request.rb, and its parents. A look makes GitLab check it. */
function showMergeRequest(state: State, { iid, state: shown }: Subject) {
  const status = state.status
  if (state.status === 'checking' && --state.looks <= 0) state.status = 'mergeable'
  const isMerged = shown === 'merged'
  return {
    id: 200 + iid,
    iid,
    project_id: 7,
    state: shown,
    title: 'Add a greeting',
    sha: state.head,
    merge_commit_sha: isMerged && !state.squashed ? GITLAB_MERGED : null,
    squash_commit_sha: isMerged && state.squashed ? GITLAB_MERGED : null,
    merge_status:
      status === 'mergeable' ? 'can_be_merged' : status === 'checking' ? 'checking' : 'cannot_be_merged',
    detailed_merge_status: isMerged ? 'not_open' : status,
    merge_error: state.mergeError,
    draft: status === 'draft_status',
    source_project_id: 7,
    target_project_id: 7,
    head_pipeline: state.pipeline ? { sha: state.head, ref: 'topic', ...state.pipeline } : null,
    web_url: `http://x/group/sub/demo/-/merge_requests/${iid}`,
  }
}

/** lib/api/entities/note.rb */
function showNote({ type, iid }: Subject, { id, body, username, system }: Note) {
  const common = {
    id,
    type: null,
    body,
    author: userOf(username),
    system,
    noteable_type: type,
    noteable_iid: iid,
  }
  return {
    ...common,
    created_at: '2026-11-01T00:00:00.000Z',
    resolvable: false,
    confidential: false,
    internal: false,
  }
}

/** lib/api/notes.rb: newest first, unless asked otherwise; notes of the system among them. */
function listNotes(subject: Subject, call: GitLabCall): FullReply {
  const all = call.query.get('sort') === 'asc' ? subject.notes : subject.notes.toReversed()
  return paged(all, call, (note) => showNote(subject, note))
}

/** Some names of lib/gitlab/quick_actions. */
const COMMANDS = /^\/(close|reopen|merge|label|assign)\b.*$/gm

/**
 * `process_note_creation_result` of lib/api/helpers/notes_helpers.rb: a text of commands alone is 202 with what they did
 * (lib/api/entities/note_commands.rb), and no note.
 */
function createNote(state: State, subject: Subject, { body: given, token }: GitLabCall): FullReply {
  const text = given['body']
  if (typeof text !== 'string') return { status: 400, body: { error: 'body is missing' } }
  const lines = text.replaceAll('\r', '')
  const commands = lines.match(COMMANDS) ?? []
  if (commands.some((each) => each.startsWith('/close'))) subject.state = 'closed'
  const left = lines.replaceAll(COMMANDS, '').trim()
  if (commands.length > 0 && left === '')
    return {
      status: 202,
      body: { commands_changes: { state_event: 'close' }, summary: ['Closed this issue.'] },
    }
  if (left === '') return apiError(400, `400 Bad request - Note {:note=>["can't be blank"]}`)
  const note: Note = { id: ++state.lastId, body: left, username: token.username, system: false }
  subject.notes.push(note)
  return { status: 201, body: showNote(subject, note) }
}

/** The emoji that tests use, of those of TanukiEmoji. */
const KNOWN_EMOJI = new Set('thumbsup thumbsdown laughing confused heart tada rocket eyes'.split(' '))

/**
 * lib/api/award_emoji.rb of 01ea65e0e9ea and the newest, app/services/award_emojis/add_service.rb: whatever is wrong is 404, also a
 * repeated one (gitlab-org/gitlab#26060).
 */
function awardOf(state: State, subject: Subject, noteId: string | undefined, call: GitLabCall): FullReply {
  const { request, body, token } = call
  if (noteId !== undefined && !subject.notes.some(({ id }) => id === Number(noteId)))
    return apiError(404, '404 Not found')
  const key = `${subject.type} ${subject.iid} ${noteId ?? ''}`
  const all = state.awards.get(key) ?? []
  state.awards.set(key, all)
  const show = ({ id, name, username }: Award) => ({
    id,
    name,
    user: userOf(username),
    awardable_id: 1,
    url: null,
  })
  if (request.method === 'GET') return paged(all, call, show)
  const name = String(body['name'])
  const isThere = all.some((each) => each.name === name && each.username === token.username)
  const wrong = isThere
    ? 'Name has already been taken'
    : KNOWN_EMOJI.has(name)
      ? ''
      : 'Name is not a valid emoji name'
  if (wrong !== '') return apiError(404, `404 Award Emoji ["${wrong}"] Not Found`)
  const award = { id: ++state.lastId, name, username: token.username }
  all.push(award)
  return { status: 201, body: show(award) }
}

/** lib/api/commit_statuses.rb: the latest of each name. */
function statusesOf(state: State, sha: string, call: GitLabCall): FullReply {
  if (sha !== state.head) return apiError(404, '404 Commit Not Found')
  return paged(state.statuses, call, ({ allow_failure = false, ...each }) => ({
    ...each,
    sha,
    ref: 'topic',
    allow_failure,
    description: null,
    target_url: null,
  }))
}

/** States of a pipeline that has not ended (app/models/concerns/ci/has_status.rb). */
const ACTIVE = new Set(['created', 'waiting_for_resource', 'preparing', 'pending', 'running'])

/** What an automatic merge waits for (app/services/auto_merge/merge_when_checks_pass_service.rb): not conflicts and rebases. */
const AWAITED = new Set([
  'ci_must_pass',
  'ci_still_running',
  'discussions_not_resolved',
  'draft_status',
  'not_approved',
])

/**
 * lib/api/merge_requests.rb, `put ':id/merge_requests/:merge_request_iid/merge'` with `execute_merge`, in its order:
 * 401 for who may not merge, 409 for another head, 405 for what is not mergeable, 422 if the merge fails.
 */
function merge(state: State, subject: Subject, { body, token }: GitLabCall): FullReply {
  state.merges.push(body)
  if (state.mayNotMerge.has(token.username) || !isDeveloper(token)) return apiError(401, '401 Unauthorized')
  if (body['sha'] !== undefined && body['sha'] !== state.head)
    return apiError(409, `SHA does not match HEAD of source branch: ${state.head}`)
  const notAllowed = apiError(405, '405 Method Not Allowed')
  const unmerged = apiError(422, 'Branch cannot be merged')
  const isAuto = body['auto_merge'] === true || body['merge_when_pipeline_succeeds'] === true
  const isActive = state.pipeline !== undefined && ACTIVE.has(state.pipeline.status)
  const isReady = subject.state === 'opened' && state.status === 'mergeable'
  if (isAuto) {
    const isAwaited = subject.state === 'opened' && (isActive || AWAITED.has(state.status))
    if (isAwaited) {
      state.autoMerges++
      return { body: { ...showMergeRequest(state, subject), merge_when_pipeline_succeeds: true } }
    }
    // `pipeline_allows_merge?`, then `execute_immediate_merge!`.
    if (state.pipeline && state.pipeline.status !== 'success') return notAllowed
    if (!isReady) return unmerged
  }
  if (!isReady) return notAllowed
  if (state.mergeError !== null) return unmerged
  // `merge_request.update(squash: params[:squash]) if params[:squash]`: false leaves it as it is.
  state.squashed ||= body['squash'] === true
  subject.state = 'merged'
  state.merged = GITLAB_MERGED
  return { body: showMergeRequest(state, subject) }
}

function isDeveloper({ username }: GitLabToken): boolean {
  return username !== 'guest'
}
