import { OwnApp } from '../../auth/setup.js'
import { type ErrorKind, RelayError } from '../../base/errors.js'
import { parseUrl } from '../../base/address.js'
import { lacksSecret, sameAddress, type SavedHook, SavedHooks } from '../../codehost/hooks.js'
import type { AppHook, CodeHost, HookDelivery, RepoHook } from '../../codehost/host.js'
import { openHost } from '../../codehost/hosts.js'
import { Journal } from '../../journal/journal.js'
import { readTunnel } from '../../serve/tunnel.js'
import type { Database } from '../../store/open.js'
import { Tokens } from '../../tokens/tokens.js'
import { publicAddress } from '../profile.js'
import { userOf } from '../session.js'
import { formatRepo, parseRepo } from '../target.js'
import { type CheckResult, commandFor, fail, LIMIT_MS, ok, skip, type Subject } from './doctor-host.js'

/**
 * Whether the hooks that send here, and the webhook of the profile's App, have fitting settings. What the code host does not show, it
 * says nothing of.
 */
export async function checkHook(subject: Subject): Promise<CheckResult> {
  const { provider: name, providerUrl: url } = subject.attached.values
  const { data } = subject
  if (!data || url === undefined) return skip('there is no journal yet')
  const checked = { ...subject, data, host: openHost({ name, url, timeLimit: LIMIT_MS }) }
  const [app, hooks] = await Promise.all([checkApp(checked), checkHooks(checked)])
  if (!app) return hooks
  const results = [app, hooks]
  const failed = results.find(({ state }) => state === 'fail')
  const fine = results.filter(({ state }) => state === 'ok').map(({ text }) => text)
  return failed ?? (fine.length > 0 ? ok(fine.join('; ')) : app)
}

interface Checked extends Subject {
  readonly data: Database
  readonly host: CodeHost
}

/** The addresses at which deliveries reach this relay. */
async function ownAddresses({ attached, data }: Checked): Promise<readonly string[]> {
  const { instance } = attached
  const tunnel = instance && (await readTunnel(data.store, instance.pid))
  // The port is not known before relay listens.
  return [`${publicAddress(attached)}/webhook`, tunnel?.url ?? ''].filter(
    (url) => parseUrl(url) !== undefined,
  )
}

// The App

/** Whether the App's webhook has fitting settings, as far as it shows them to the App's key. Undefined if the profile has no such App. */
async function checkApp(checked: Checked): Promise<CheckResult | undefined> {
  const { attached, data, host, shell } = checked
  // Another check reports what cannot be read.
  const app = await OwnApp.find(data.secrets, host, { signal: shell.signal }).catch(() => undefined)
  if (!app) return undefined
  try {
    return await inspect(checked, app)
  } catch (error) {
    if (!(error instanceof RelayError)) throw error
    const { kind, message } = error
    return kind === 'gone' || kind === 'forbidden'
      ? fail(message, commandFor(attached, 'setup --app-hook'))
      : skip(`that of ${app.slug} cannot be seen (${message})`)
  }
}

async function inspect(checked: Checked, app: OwnApp): Promise<CheckResult> {
  const { attached } = checked
  const { instance } = attached
  const [{ installations, installUrl }, hook, { deliveries }] = await Promise.all([
    app.describe(),
    app.hook(),
    app.log.page(),
  ])
  // Without an instance, the address of its tunnel is not known.
  const here = instance ? await ownAddresses(checked) : [app.savedUrl]
  const problem = problemOfApp(hook, here)
  if (problem !== undefined)
    return fail(
      `the webhook of ${app.slug} ${problem}`,
      `${instance ? 'restart' : 'run'} ${commandFor(attached, 'serve')}, which corrects it`,
    )
  return installations === 0
    ? skip(`${app.slug} is installed on no repository yet: open ${installUrl} in a browser`)
    : judgeLast(app, deliveries)
}

function problemOfApp({ url, contentType, hasSecret }: AppHook, here: readonly string[]): string | undefined {
  if (!here.some((one) => sameAddress(one, url))) return `leads to ${url}, not to ${here.join(' or ')}`
  if (!hasSecret) return 'has no secret, so that relay refuses its deliveries'
  return contentType === 'json' ? undefined : `sends ${contentType}, not JSON`
}

/** A ping came before relay had agreed with the App on a secret. Whether the webhook is active, only its deliveries show. */
function judgeLast({ slug }: OwnApp, deliveries: readonly HookDelivery[]): CheckResult {
  const last = deliveries.find(({ event }) => event !== 'ping')
  if (!last) return ok(`the webhook of ${slug} fits`)
  const { statusCode, status } = last
  if (isAnswered(statusCode)) return ok(`the webhook of ${slug} fits, and its last delivery was answered`)
  return statusCode === 401
    ? fail(
        `the webhook of ${slug} signed its last delivery with another secret: it was answered 401`,
        'restart relay serve, which gives it the secret of this profile',
      )
    : fail(
        `the last delivery of ${slug} failed: ${statusCode} ${status}`,
        'start relay serve --catch-up, which gets what was missed',
      )
}

function isAnswered(status: number): boolean {
  return status >= 200 && status < 300
}

// The hooks of repositories

/** Entries of the journal whose repositories are asked about. */
const RECENT = 200
/** Repositories that are asked about, those of `--hook` first. */
const MAX_REPOS = 10

/** A repository, and what is known about its hook here. */
interface Known {
  /** `octo/demo` */
  readonly name: string
  /** Whether the running instance has it in `--hook`. */
  readonly isPlanned: boolean
  /** What the profile saved about its hook. */
  readonly saved: SavedHook | undefined
}

/** Those of `--hook`, those that the profile made, and those of the repositories in the journal. Asks with the user's token. */
async function checkHooks(checked: Checked): Promise<CheckResult> {
  const { attached, data, host } = checked
  const owner = await new Tokens(data.secrets).get(userOf(attached.values))
  if (owner?.origin !== host.origin) return skip('asking about them needs a sign-in')
  const repos = await knownRepos(checked)
  const addresses = await ownAddresses(checked)
  const results = await Promise.all(
    repos.map((repo) => checkRepo(checked, owner.accessToken, repo, addresses)),
  )
  const [first = skip('none was made, and the journal has no delivery of a repository')] = results
  const of = (state: CheckResult['state']) => results.find((result) => result.state === state)
  return of('fail') ?? of('ok') ?? first
}

async function knownRepos({ attached, data, host }: Checked): Promise<readonly Known[]> {
  // Names of repositories have no capitals of their own.
  const saved = new Map(
    (await new SavedHooks(data.store, host).list()).map((hook) => [formatRepo(hook).toLowerCase(), hook]),
  )
  const planned = attached.instance?.hooks ?? []
  const recent: string[] = []
  for await (const { repo } of new Journal(data.sql).select({ last: RECENT }))
    if (repo !== null) recent.push(repo)
  const names = new Map<string, string>()
  for (const name of [...planned, ...[...saved.values()].map(formatRepo), ...recent]) {
    const key = name.toLowerCase()
    if (!names.has(key)) names.set(key, name)
  }
  return [...names].slice(0, MAX_REPOS).map(([key, name]) => ({
    name,
    isPlanned: planned.includes(name),
    saved: saved.get(key),
  }))
}

async function checkRepo(
  { attached, host, shell: { signal } }: Checked,
  token: string,
  { name, isPlanned, saved }: Known,
  addresses: readonly string[],
): Promise<CheckResult> {
  const fix = commandFor(attached, `hook add ${name}`)
  const isWanted = isPlanned || saved !== undefined
  let hooks: readonly RepoHook[]
  try {
    hooks = await host.as(token, { signal }).hooks.list(parseRepo(name))
  } catch (error) {
    if (!(error instanceof RelayError)) throw error
    const text = `those of ${name} cannot be seen (${error.message})`
    return isWanted && LASTING.has(error.kind) ? fail(text, `${fix}, which says what is missing`) : skip(text)
  }
  const isHere = (url: string): boolean => addresses.some((address) => sameAddress(url, address))
  const own = hooks.filter(({ url }) => isHere(url) || (saved && sameAddress(url, saved.url)))
  const none = `none of ${name} sends to ${addresses.join(' or ')}`
  if (own.length === 0) return isWanted ? fail(none, fix) : skip(none)
  // Without an instance, relay has no address of its own now.
  const isAway = ({ url }: RepoHook): boolean =>
    attached.instance !== undefined && !isHere(url) && saved?.chosen === false
  const wrong = firstOf(own, (hook) => problemOf(hook, saved, isAway(hook)))
  if (wrong !== undefined) return fail(`that of ${name} ${wrong}`, fix)
  const failed = firstOf(own, problemOfAnswer)
  // The next delivery may be long in coming.
  if (failed !== undefined)
    return fail(`that of ${name} ${failed}`, `${fix}, then ${commandFor(attached, `hook test ${name}`)}`)
  const hasAnswers = own.every(({ lastResponse }) => lastResponse !== undefined)
  return ok(`that of ${name} fits${hasAnswers ? ', and its last delivery was answered' : ''}`)
}

/** Failures that do not end by themselves. */
const LASTING: ReadonlySet<ErrorKind> = new Set(['forbidden', 'invalid_token', 'not_found', 'unprocessable'])

function firstOf(
  hooks: readonly RepoHook[],
  find: (hook: RepoHook) => string | undefined,
): string | undefined {
  return hooks.map(find).find((problem) => problem !== undefined)
}

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
  if (lacking.length === 0) return undefined
  return `sends ${events.join(', ')} alone, and not ${lacking.includes('*') ? 'every event' : lacking.join(', ')}`
}

function problemOfAnswer({ lastResponse, hasSecret }: RepoHook): string | undefined {
  if (!lastResponse || isAnswered(lastResponse.code)) return undefined
  const { code, message } = lastResponse
  if (code !== 401) return `failed last: ${code} ${message}`.trimEnd()
  // Where the code host does not show whether it has a secret, it may have none.
  const what = hasSecret ? 'signs with another secret than' : 'does not sign with the secret of'
  return `${what} this profile: its last delivery was answered 401`
}
