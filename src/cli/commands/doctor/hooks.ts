import { silentLog } from '../../../base/log.js'
import { RelayError } from '../../../base/errors.js'
import { sameAddress } from '../../../hooks/ensure.js'
import { openJournal } from '../../../journal/open.js'
import type { SendOnce } from '../../../net/send-once.js'
import type { RepoHook } from '../../../providers/hooks.js'
import { createProvider } from '../../../providers/open.js'
import type { Provider } from '../../../providers/provider.js'
import type { Database } from '../../../store/database.js'
import { createTokens, type TokenOwner } from '../../../tokens/tokens.js'
import { readStatus } from '../../../tunnel/state.js'
import { readUser } from '../../session/user.js'
import { type CheckContext, commandFor } from './context.js'
import { type CheckResult, fail, ok, skip } from './result.js'

/** Entries of the journal whose repositories are asked about, and how many repositories at most. */
const RECENT = 200
const MAX_REPOS = 5

export interface HooksCheck {
  readonly sendOnce: SendOnce
  /** For each request to the code host, in milliseconds. */
  readonly timeLimit: number
  readonly signal: AbortSignal
}

/** Whether the hooks that send here, of the repositories in the journal, have fitting settings. Asks with the user's token. */
export async function checkHooks(
  context: CheckContext,
  database: Database | undefined,
  { sendOnce, timeLimit, signal }: HooksCheck,
): Promise<CheckResult> {
  const { provider, providerUrl } = context.options
  if (!database || providerUrl === undefined) return skip('there is no journal yet')
  const host = createProvider({ name: provider, url: providerUrl, sendOnce, timeLimit })
  const owner = await createTokens(database.store).get(readUser(context.options))
  if (owner?.origin !== host.origin) return skip('asking about them needs a sign-in')
  const repos = await recentRepos(database)
  if (repos.length === 0) return skip('the journal has no delivery of a repository')
  const addresses = await ownAddresses(context)
  const results = await Promise.all(
    repos.map((repo) => checkRepo(host, owner, repo, { addresses, context, signal })),
  )
  const bad = results.find(({ state }) => state === 'fail')
  return bad ?? results.find(({ state }) => state === 'ok') ?? results[0] ?? skip('none')
}

async function recentRepos({ sql }: Database): Promise<readonly string[]> {
  const repos = new Set<string>()
  for await (const { repo } of openJournal(sql, { log: silentLog }).select({ last: RECENT }))
    if (repo !== null) repos.add(repo)
  // The newest come last.
  return [...repos].slice(-MAX_REPOS)
}

/** The addresses at which deliveries reach this relay. */
export async function ownAddresses({ publicUrl, instance, store }: CheckContext): Promise<readonly string[]> {
  const tunnel = instance && store && (await readStatus(store, instance.pid))
  return [`${publicUrl}/webhook`, ...(tunnel?.url ? [tunnel.url] : [])].filter((url) => URL.canParse(url))
}

interface RepoCheck {
  readonly addresses: readonly string[]
  readonly context: CheckContext
  readonly signal: AbortSignal
}

async function checkRepo(
  host: Provider,
  { accessToken }: TokenOwner,
  fullName: string,
  { addresses, context, signal }: RepoCheck,
): Promise<CheckResult> {
  const [owner = '', repo = ''] = fullName.split('/')
  let hooks: readonly RepoHook[]
  try {
    hooks = await host.hooks.list(accessToken, { owner, repo }, { signal })
  } catch (error) {
    if (!(error instanceof RelayError)) throw error
    return skip(`those of ${fullName} cannot be seen (${error.message})`)
  }
  const own = hooks.filter(({ url }) => addresses.some((address) => sameAddress(url, address)))
  if (own.length === 0) return skip(`none of ${fullName} sends to ${addresses.join(' or ')}`)
  const wrong = own.map(problemOf).find((problem) => problem !== undefined)
  if (wrong === undefined) return ok(`that of ${fullName} fits, and its last delivery was answered`)
  return fail(`that of ${fullName} ${wrong}`, commandFor(context.options, `hook add ${fullName}`))
}

const CONTENT_TYPES: ReadonlySet<string> = new Set(['json', 'form'])

function problemOf({ active, hasSecret, contentType, events, lastResponse }: RepoHook): string | undefined {
  if (!active) return 'is inactive'
  if (hasSecret === false) return 'has no secret, so that relay refuses its deliveries'
  if (!CONTENT_TYPES.has(contentType)) return `sends ${contentType}, not JSON`
  if (events.length === 0) return 'sends no event'
  const { code = 200, message = '' } = lastResponse ?? {}
  if (code === 401) return 'signs with another secret than this profile: its last delivery was answered 401'
  return code >= 200 && code < 300 ? undefined : `failed last: ${code} ${message}`.trimEnd()
}
