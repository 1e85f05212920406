import { parseUrl } from '../../../base/parse-url.js'
import { type ErrorKind, RelayError } from '../../../base/errors.js'
import { lacksSecret, sameAddress, type SavedHook, SavedHooks } from '../../../codehost/hooks.js'
import { Journal } from '../../../journal/journal.js'
import type { SendOnce } from '../../../net/client.js'
import type { CodeHost, RepoHook } from '../../../codehost/host.js'
import { openHost } from '../../../codehost/hosts.js'
import type { Database } from '../../../store/open.js'
import { Tokens, type TokenOwner } from '../../../tokens/tokens.js'
import { readTunnel } from '../../../serve/tunnel.js'
import { formatRepo } from '../../session/repo.js'
import { readUser } from '../../session/user.js'
import { type CheckContext, commandFor } from './context.js'
import { type CheckResult, fail, ok, skip } from './result.js'

/** Entries of the journal whose repositories are asked about. */
const RECENT = 200
/** Repositories that are asked about, those of `--hook` first. */
const MAX_REPOS = 10

export interface HooksCheck {
  readonly sendOnce: SendOnce
  /** For each request to the code host, in milliseconds. */
  readonly timeLimit: number
  readonly signal: AbortSignal
}

/** A repository, and what is known about its hook here. */
interface Repo {
  readonly name: string
  /** Whether the running instance has it in `--hook`. */
  readonly planned: boolean
  /** What the profile saved about its hook. */
  readonly saved: SavedHook | undefined
}

/**
 * Whether the hooks that send here have fitting settings: those of `--hook`, those that the profile made, and those of the
 * repositories in the journal. Asks with the user's token.
 */
export async function checkHooks(
  context: CheckContext,
  database: Database | undefined,
  { sendOnce, timeLimit, signal }: HooksCheck,
): Promise<CheckResult> {
  const { provider, providerUrl } = context.options
  if (!database || providerUrl === undefined) return skip('there is no journal yet')
  const host = openHost({ name: provider, url: providerUrl, sendOnce, timeLimit })
  const owner = await new Tokens(database.secrets).get(readUser(context.options))
  if (owner?.origin !== host.origin) return skip('asking about them needs a sign-in')
  const repos = await knownRepos(context, database, host)
  if (repos.length === 0) return skip('none was made, and the journal has no delivery of a repository')
  const addresses = await ownAddresses(context)
  const results = await Promise.all(
    repos.map((repo) => checkRepo(host, owner, repo, { addresses, context, signal })),
  )
  const bad = results.find(({ state }) => state === 'fail')
  return bad ?? results.find(({ state }) => state === 'ok') ?? results[0] ?? skip('none')
}

async function knownRepos(
  { instance }: CheckContext,
  { sql, store }: Database,
  host: CodeHost,
): Promise<readonly Repo[]> {
  const saved = new Map(
    (await new SavedHooks(store, host).list()).map((hook) => [keyOf(formatRepo(hook)), hook]),
  )
  const planned = instance?.hooks ?? []
  const names = [...planned, ...[...saved.values()].map(formatRepo), ...(await recentRepos(sql))]
  const repos = new Map<string, Repo>()
  for (const name of names)
    if (!repos.has(keyOf(name)))
      repos.set(keyOf(name), { name, planned: planned.includes(name), saved: saved.get(keyOf(name)) })
  return [...repos.values()].slice(0, MAX_REPOS)
}

/** Code hosts' names have no capitals of their own. */
function keyOf(name: string): string {
  return name.toLowerCase()
}

/** The newest first. */
async function recentRepos(sql: Database['sql']): Promise<readonly string[]> {
  const repos = new Set<string>()
  for await (const { repo } of new Journal(sql).select({ last: RECENT })) if (repo !== null) repos.add(repo)
  return [...repos]
}

/** The addresses at which deliveries reach this relay. */
export async function ownAddresses({ publicUrl, instance, store }: CheckContext): Promise<readonly string[]> {
  const tunnel = instance && store && (await readTunnel(store, instance.pid))
  return [`${publicUrl}/webhook`, ...(tunnel?.url ? [tunnel.url] : [])].filter(
    (url) => parseUrl(url) !== undefined,
  )
}

interface RepoCheck {
  readonly addresses: readonly string[]
  readonly context: CheckContext
  readonly signal: AbortSignal
}

async function checkRepo(
  host: CodeHost,
  { accessToken }: TokenOwner,
  { name, planned, saved }: Repo,
  { addresses, context, signal }: RepoCheck,
): Promise<CheckResult> {
  const fix = commandFor(context.options, `hook add ${name}`)
  const [owner = '', repo = ''] = name.split('/')
  let hooks: readonly RepoHook[]
  try {
    hooks = await host.as(accessToken, { signal }).hooks.list({ owner, repo })
  } catch (error) {
    if (!(error instanceof RelayError)) throw error
    const text = `those of ${name} cannot be seen (${error.message})`
    const isWanted = planned || saved !== undefined
    return isWanted && LASTING.has(error.kind) ? fail(text, `${fix}, which says what is missing`) : skip(text)
  }
  const isHere = (url: string): boolean => addresses.some((address) => sameAddress(url, address))
  const own = hooks.filter(({ url }) => isHere(url) || (saved && sameAddress(url, saved.url)))
  const none = `none of ${name} sends to ${addresses.join(' or ')}`
  if (own.length === 0) return planned || saved ? fail(none, fix) : skip(none)
  // Without an instance, relay has no address of its own now.
  const isAway = ({ url }: RepoHook): boolean =>
    context.instance !== undefined && !isHere(url) && saved?.chosen === false
  const wrong = own
    .map((hook) => problemOf(hook, saved, isAway(hook)))
    .find((problem) => problem !== undefined)
  if (wrong !== undefined) return fail(`that of ${name} ${wrong}`, fix)
  const failed = own.map(problemOfAnswer).find((problem) => problem !== undefined)
  if (failed === undefined) {
    const isAnswered = own.every(({ lastResponse }) => lastResponse !== undefined)
    return ok(`that of ${name} fits${isAnswered ? ', and its last delivery was answered' : ''}`)
  }
  // The next delivery may be long in coming.
  return fail(`that of ${name} ${failed}`, `${fix}, then ${commandFor(context.options, `hook test ${name}`)}`)
}

/** Failures that do not end by themselves. */
const LASTING: ReadonlySet<ErrorKind> = new Set(['forbidden', 'invalid_token', 'not_found', 'unprocessable'])

const CONTENT_TYPES: ReadonlySet<string> = new Set(['json', 'form'])

/** `isAway`: it leads to an address that this relay had before. */
function problemOf(hook: RepoHook, saved: SavedHook | undefined, isAway: boolean): string | undefined {
  const { url, active, contentType, events } = hook
  if (isAway) return `sends to ${url}, which is not the address of the running relay`
  if (!active) return 'is inactive'
  if (lacksSecret(hook, saved)) return 'has no secret, so that relay refuses its deliveries'
  if (!CONTENT_TYPES.has(contentType)) return `sends ${contentType}, not JSON`
  if (events.length === 0) return 'sends no event'
  // As the code host showed them when relay gave them to it: Gitea shows several for one.
  const given = saved?.shown?.events ?? []
  const lacking = given.filter((event) => !events.includes(event) && !events.includes('*'))
  if (lacking.length > 0)
    return `sends ${events.join(', ')} alone, and not ${lacking.includes('*') ? 'every event' : lacking.join(', ')}`
  return undefined
}

function problemOfAnswer({ lastResponse }: RepoHook): string | undefined {
  const { code = 200, message = '' } = lastResponse ?? {}
  if (code === 401) return 'signs with another secret than this profile: its last delivery was answered 401'
  return code >= 200 && code < 300 ? undefined : `failed last: ${code} ${message}`.trimEnd()
}
