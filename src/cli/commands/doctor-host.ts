import { findOwnApp, type OwnApp } from '../../auth/setup.js'
import { TokenEndpoint } from '../../auth/token-endpoint.js'
import { deadline } from '../../base/wait.js'
import { type ErrorKind, RelayError } from '../../base/errors.js'
import { isLoopback, parseUrl } from '../../base/address.js'
import { Secret } from '../../base/secret.js'
import { DEFAULTS, PROVIDER_NAMES } from '../../base/settings.js'
import { systemClock } from '../../base/time.js'
import { lacksSecret, sameAddress, type SavedHook, SavedHooks } from '../../codehost/hooks.js'
import type { CodeHost, Probe, RepoHook } from '../../codehost/host.js'
import { HOST_KINDS, openHost } from '../../codehost/hosts.js'
import { parseJson } from '../../codehost/rest.js'
import { Journal } from '../../journal/journal.js'
import { readText, sendOnce } from '../../net/client.js'
import { describeConnectionError } from '../../net/errors.js'
import { findSandboxClient } from '../../sandbox/client.js'
import { readTunnel } from '../../serve/tunnel.js'
import type { Database } from '../../store/open.js'
import { Tokens } from '../../tokens/tokens.js'
import type { Shell } from '../command.js'
import { roughly } from '../output/time.js'
import { type Attached, publicAddress, redirectUri } from '../profile.js'
import { userOf } from '../session.js'
import { formatRepo, parseRepo } from '../target.js'

// What the checks of `relay doctor` have in common, and those that ask the code host.

/** What a check found. Its texts contain no secret. */
export interface CheckResult {
  /** `skip`: the check does not apply, or nothing is known. */
  readonly state: 'ok' | 'fail' | 'skip'
  readonly text: string
  /** How to fix a failure: a command, or what to set. */
  readonly fix?: string
}

/** The profile that is checked. */
export interface Subject {
  readonly shell: Shell
  /** With the OAuth client that relay setup stored, where none is set. */
  readonly attached: Attached
  /** Undefined when the profile has no data yet, or it cannot be opened. */
  readonly data: Database | undefined
  /** Why the data cannot be opened. */
  readonly problem: string | undefined
}

export type Check = (subject: Subject) => Promise<CheckResult>

export const ok = (text: string): CheckResult => ({ state: 'ok', text })
export const fail = (text: string, fix: string): CheckResult => ({ state: 'fail', text, fix })
export const skip = (text: string): CheckResult => ({ state: 'skip', text })

/** The first failure; else all that is fine; else the first that says why nothing is known. */
function combine(results: readonly CheckResult[]): CheckResult {
  const fine = results.filter(({ state }) => state === 'ok').map(({ text }) => text)
  const [first = skip('nothing to check')] = results
  return results.find(({ state }) => state === 'fail') ?? (fine.length > 0 ? ok(fine.join('; ')) : first)
}

/** The time limit of a check. Milliseconds. */
export const LIMIT_MS = 5000

/** A command line of relay for the profile. */
export function commandFor({ profile }: Pick<Attached, 'profile'>, command: string): string {
  return profile === DEFAULTS.profile ? `relay ${command}` : `relay ${command} --profile ${profile}`
}

const CLOCK_COMMANDS: { readonly [name in NodeJS.Platform]?: string } = {
  linux: 'sudo timedatectl set-ntp true',
  darwin: 'sudo sntp -sS time.apple.com',
  win32: 'w32tm /resync',
}
export const SET_CLOCK = CLOCK_COMMANDS[process.platform] ?? "set this machine's clock"

// The code host and the OAuth client

/** Whether the code host answers, is of the configured kind, agrees on the time, knows the client, and can return browsers. */
export async function checkHost(subject: Subject): Promise<CheckResult> {
  return combine([
    ...(await checkAnswer(subject)),
    await checkClient(subject),
    ...checkAddress(subject.attached),
  ])
}

/** OAuth and TLS tolerate a minute; with more, states and tokens expire too early or too late. Milliseconds. */
const MAX_CLOCK_DIFFERENCE = 60_000

/** Whether the code host answers at its address, is of the configured kind, and agrees on the time. Sends no token. */
async function checkAnswer({ attached, shell }: Subject): Promise<CheckResult[]> {
  const { provider: name, providerUrl: url } = attached.values
  const { isEmulated, pathAllowed } = HOST_KINDS[name]
  if (url === undefined)
    return [
      isEmulated
        ? skip('the sandbox is not running')
        : fail(`the address of your ${name} is not set`, 'set RELAY_PROVIDER_URL=https://…'),
    ]
  const signal = deadline(LIMIT_MS, shell.signal)
  const { probe } = openHost({ name, url })
  let answer: Answer
  try {
    answer = await ask(probe, signal)
  } catch (error) {
    if (error instanceof RelayError) throw error
    return [
      fail(
        `${url} cannot be reached (${describeConnectionError(error)})`,
        isEmulated
          ? commandFor(attached, 'serve --sandbox')
          : `run curl -I ${url}, and set HTTPS_PROXY if there is a proxy`,
      ),
    ]
  }
  const { software, status, ahead } = answer
  const { href, origin, pathname } = new URL(url)
  const place = href.replace(/\/+$/, '')
  if (software === undefined) {
    for (const other of PROVIDER_NAMES) {
      const { probe: theirs } = openHost({ name: other, url })
      const isAsked = theirs.address === probe.address
      const found = isAsked ? undefined : await ask(theirs, signal).catch(() => undefined)
      if (found?.software !== undefined)
        return [fail(`${place} is ${found.software}, not ${name}`, `set RELAY_PROVIDER=${other}`)]
    }
    return [
      fail(
        `${place} answers, but not as ${name}: ${probe.address} gave ${status}`,
        'check RELAY_PROVIDER_URL and its path',
      ),
    ]
  }
  if (!pathAllowed && pathname !== '/')
    return [fail(`${place} has a path, but ${software} has none`, `set RELAY_PROVIDER_URL=${origin}`)]
  const fine = ok(`${place} is ${isEmulated ? 'the sandbox' : software}`)
  if (Number.isNaN(ahead)) return [fine]
  const seconds = Math.round(Math.abs(ahead) / 1000)
  if (Math.abs(ahead) <= MAX_CLOCK_DIFFERENCE)
    return [fine, ok(`clocks agree within ${Math.max(1, seconds)} s`)]
  return [
    fail(
      `this machine's clock is ${seconds} s ${ahead > 0 ? 'ahead of' : 'behind'} the code host's`,
      SET_CLOCK,
    ),
  ]
}

/** The answer of a code host about itself. */
interface Answer {
  readonly status: number
  /** Its software and version; undefined when it is not of the expected kind. */
  readonly software: string | undefined
  /** Milliseconds by which our clock is ahead; NaN if it sent no time. */
  readonly ahead: number
}

async function ask({ address, recognise }: Probe, signal: AbortSignal): Promise<Answer> {
  const headers = { accept: 'application/json', 'user-agent': 'webhook-relay' }
  const before = systemClock()
  const response = await sendOnce(address, { method: 'GET', headers, signal })
  const ours = (before + systemClock()) / 2
  const { status, header } = response
  const json = parseJson(await readText(response))
  const theirs = Date.parse(header('date') ?? '')
  return { status, software: recognise({ status, header, json }), ahead: ours - theirs }
}

/** Whether users can sign in: relay, or its instance if one runs, has an OAuth client, and the code host knows it. */
async function checkClient(subject: Subject): Promise<CheckResult> {
  const { attached, shell } = subject
  const { values, origins } = attached
  const found = await findClient(subject)
  const { clientId: id, clientSecret: secret, provider: name, providerUrl: url } = values
  if (found.state !== 'ok' || id === undefined || secret === undefined || url === undefined) return found
  const host = openHost({ name, url })
  const options = { timeLimit: LIMIT_MS, signal: shell.signal }
  const isKnown = await new TokenEndpoint(host, { id, secret: new Secret(secret) }, options).knowsClient()
  if (isKnown === undefined) return ok(`${found.text}; ${url} did not say whether it knows it`)
  if (isKnown) return ok(`${found.text}; ${url} knows it`)
  return fail(
    `${url} does not know client ${id}, or its secret`,
    origins.clientSecret?.kind === 'setup'
      ? commandFor(attached, 'setup')
      : 'correct RELAY_CLIENT_ID and RELAY_CLIENT_SECRET',
  )
}

/** Whether relay, or its instance if one runs, has an OAuth client. Asks nothing. */
async function findClient({ attached, data }: Subject): Promise<CheckResult> {
  const { instance, values, origins } = attached
  const { clientId, clientSecret, provider } = values
  const { isEmulated } = HOST_KINDS[provider]
  if (instance && data && (await findSandboxClient(data.secrets, instance.providerUrl)))
    return ok("the OAuth client is the sandbox's own")
  if (instance?.clientId) return ok(`process ${instance.pid} has client id ${instance.clientId}`)
  const isHere = clientId !== undefined && clientSecret !== undefined
  const setup = commandFor(attached, 'setup')
  if (instance?.clientId === null && (!isEmulated || isHere))
    return fail(
      `process ${instance.pid} has no OAuth client: sign-in is off`,
      isHere ? `restart ${commandFor(attached, 'serve')}` : `${setup}, then restart relay serve`,
    )
  if (isHere) return ok(`client id ${clientId} (${origins.clientSecret?.text ?? origins.clientId?.text})`)
  if (isEmulated) return skip('the sandbox has its own')
  const missing = [
    ...(clientId === undefined ? ['RELAY_CLIENT_ID'] : []),
    ...(clientSecret === undefined ? ['RELAY_CLIENT_SECRET'] : []),
  ]
  return fail(`${missing.join(' and ')} not set: no user can sign in`, setup)
}

/** Whether a browser can return from the code host when it signs in; nothing where the port is not known yet. */
function checkAddress(attached: Attached): CheckResult[] {
  const { instance, values } = attached
  const address = publicAddress(attached)
  const { protocol, hostname, host, port } = new URL(address)
  const isLocal = isLoopback(hostname)
  if (protocol === 'http:' && !isLocal)
    return [
      fail(
        `${address} is not encrypted: others on the network can read codes and tokens`,
        `set RELAY_PUBLIC_URL=https://${host}`,
      ),
    ]
  if (port === '0') return []
  const listening = instance ? new URL(instance.url).port : String(values.port)
  const known = port || (protocol === 'https:' ? '443' : '80')
  if (isLocal && listening !== '0' && known !== listening)
    return [
      fail(
        `the public address has port ${known}, but relay listens on ${listening}`,
        `set RELAY_PUBLIC_URL=${protocol}//${hostname}:${listening}`,
      ),
    ]
  const { baseUrl = address, provider } = values
  return [ok(`sign-in returns to ${redirectUri(address, provider)}, then to ${baseUrl}`)]
}

// The user

/** Whether the user has an unexpired token of this code host that works. The token is sent only to the host it came from. */
export async function checkSignIn(subject: Subject): Promise<CheckResult> {
  const { shell, attached, data, problem } = subject
  if (problem !== undefined) return skip('the database cannot be opened')
  const { provider: name, providerUrl: url, store, user: given } = attached.values
  if (store === 'memory') return skip('only the instance has the tokens, in memory')
  const user = userOf(attached.values)
  const login = commandFor(attached, given === undefined ? 'login' : `login --user ${user}`)
  const tokens = data && new Tokens(data.secrets)
  const owner = await tokens?.get(user)
  if (!owner) {
    if (!(await tokens?.refreshable(user))) return fail(`${user} is not signed in`, login)
    if ((await findClient(subject)).state === 'ok')
      return ok(`the token of ${user} has expired; its next use renews it`)
    return fail(
      `the token of ${user} has expired, and renewing it needs the OAuth client`,
      `${commandFor(attached, 'setup')}, or start the relay that has it`,
    )
  }
  if (url === undefined) return skip('the code host is not known')
  const host = openHost({ name, url, timeLimit: LIMIT_MS })
  if (owner.origin !== host.origin)
    return fail(`the token of ${user} is from ${owner.origin}, not ${host.origin}`, login)
  const expiry = `expires in ${roughly(owner.expiresAt - systemClock())}`
  try {
    const { login: account } = await host.as(owner.accessToken, { signal: shell.signal }).facts()
    return ok(`${user} is signed in as ${account}; the token ${expiry}`)
  } catch (error) {
    if (!(error instanceof RelayError)) throw error
    if (error.kind === 'invalid_token') return fail(`the code host rejects the token of ${user}`, login)
    return skip(`the token of ${user} ${expiry}; relay could not check that it works (${error.message})`)
  }
}

// The hooks

/** What the checks of hooks work with. */
interface Hooks extends Subject {
  readonly data: Database
  readonly host: CodeHost
  /** The addresses at which deliveries reach this relay. */
  readonly here: readonly string[]
}

/**
 * Whether the hooks that send here, and the webhook of the profile's App, have fitting settings. What the code host does not show is not
 * judged.
 */
export async function checkHook(subject: Subject): Promise<CheckResult> {
  const { data, attached } = subject
  const { provider: name, providerUrl: url } = attached.values
  if (!data || url === undefined) return skip('there is no journal yet')
  const { instance } = attached
  const tunnel = instance && (await readTunnel(data.store, instance.pid))
  const addresses = [`${publicAddress(attached)}/webhook`, tunnel?.url ?? '']
  // The port is not known before relay listens.
  const here = addresses.filter((address) => parseUrl(address) !== undefined)
  const hooks = { ...subject, data, here, host: openHost({ name, url, timeLimit: LIMIT_MS }) }
  const [app, ofRepos] = await Promise.all([checkApp(hooks), checkRepos(hooks)])
  return combine([...app, ...ofRepos])
}

/** Whether the webhook of the App fits, as far as it shows that to the App's key. Nothing if the profile has no such App. */
async function checkApp(hooks: Hooks): Promise<CheckResult[]> {
  const { attached, data, host, shell } = hooks
  // Another check reports what cannot be read.
  const app = await findOwnApp(data.secrets, host, { signal: shell.signal }).catch(() => undefined)
  if (!app) return []
  try {
    return [await judgeApp(app, hooks)]
  } catch (error) {
    if (!(error instanceof RelayError)) throw error
    const { kind, message } = error
    return kind === 'gone' || kind === 'forbidden'
      ? [fail(message, commandFor(attached, 'setup --app-hook'))]
      : [skip(`that of ${app.slug} cannot be seen (${message})`)]
  }
}

async function judgeApp(app: OwnApp, { attached, here }: Hooks): Promise<CheckResult> {
  const { instance } = attached
  const { slug } = app
  const [{ installations, installUrl }, hook, { deliveries }] = await Promise.all([
    app.describe(),
    app.hook(),
    app.log.page(),
  ])
  const { url, contentType, hasSecret } = hook
  // Without an instance, the address of its tunnel is not known.
  const expected = instance ? here : [app.savedUrl]
  const isHere = expected.some((one) => sameAddress(one, url))
  const [problem] = [
    ...(isHere ? [] : [`leads to ${url}, not to ${expected.join(' or ')}`]),
    ...(hasSecret ? [] : [NO_SECRET]),
    ...(contentType === 'json' ? [] : [`sends ${contentType}, not JSON`]),
  ]
  if (problem !== undefined)
    return fail(
      `the webhook of ${slug} ${problem}`,
      `${instance ? 'restart' : 'run'} ${commandFor(attached, 'serve')}, which corrects it`,
    )
  if (installations === 0)
    return skip(`${slug} is installed on no repository yet: open ${installUrl} in a browser`)
  // A ping came before relay had agreed with the App on a secret. Whether the webhook is active, only its deliveries show.
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

const NO_SECRET = 'has no secret, so that relay refuses its deliveries'

function isAnswered(status: number): boolean {
  return status >= 200 && status < 300
}

/** Entries of the journal whose repositories are asked about. */
const RECENT = 200
/** Repositories that are asked about, those of `--hook` first. */
const MAX_REPOS = 10

/** The hooks of `--hook`, those that the profile made, and those of the repositories in the journal. Asks with the user's token. */
async function checkRepos(hooks: Hooks): Promise<CheckResult[]> {
  const { attached, data, host } = hooks
  const owner = await new Tokens(data.secrets).get(userOf(attached.values))
  if (owner?.origin !== host.origin) return [skip('asking about them needs a sign-in')]
  const planned = attached.instance?.hooks ?? []
  const saved = await new SavedHooks(data.store, host).list()
  const recent: string[] = []
  for await (const { repo } of new Journal(data.sql).select({ last: RECENT }))
    if (repo !== null) recent.push(repo)
  // Names of repositories have no capitals of their own.
  const repos = new Map<string, Known>()
  for (const name of [...planned, ...saved.map(formatRepo), ...recent]) {
    const key = name.toLowerCase()
    const hook = saved.find((each) => formatRepo(each).toLowerCase() === key)
    if (!repos.has(key))
      repos.set(key, { name, isWanted: planned.includes(name) || hook !== undefined, saved: hook })
  }
  if (repos.size === 0) return [skip('none was made, and the journal has no delivery of a repository')]
  const asked = [...repos.values()].slice(0, MAX_REPOS)
  return Promise.all(asked.map((repo) => checkRepo(hooks, owner.accessToken, repo)))
}

/** A repository, and what is known about its hook here. */
interface Known {
  /** `octo/demo` */
  readonly name: string
  /** Whether it is to have a hook. */
  readonly isWanted: boolean
  /** What the profile saved about its hook. */
  readonly saved: SavedHook | undefined
}

/** Failures that do not end by themselves. */
const LASTING: ReadonlySet<ErrorKind> = new Set(['forbidden', 'invalid_token', 'not_found', 'unprocessable'])

async function checkRepo(
  { attached, host, here, shell: { signal } }: Hooks,
  token: string,
  { name, isWanted, saved }: Known,
): Promise<CheckResult> {
  const fix = commandFor(attached, `hook add ${name}`)
  let hooks: readonly RepoHook[]
  try {
    hooks = await host.as(token, { signal }).hooks.list(parseRepo(name))
  } catch (error) {
    if (!(error instanceof RelayError)) throw error
    const text = `those of ${name} cannot be seen (${error.message})`
    return isWanted && LASTING.has(error.kind) ? fail(text, `${fix}, which says what is missing`) : skip(text)
  }
  const isHere = (url: string): boolean => here.some((address) => sameAddress(url, address))
  const own = hooks.filter(({ url }) => isHere(url) || (saved && sameAddress(url, saved.url)))
  const none = `none of ${name} sends to ${here.join(' or ')}`
  if (own.length === 0) return isWanted ? fail(none, fix) : skip(none)
  for (const hook of own) {
    // Without an instance, relay has no address of its own now.
    const isAway = attached.instance !== undefined && !isHere(hook.url) && saved?.chosen === false
    const problem = isAway
      ? `sends to ${hook.url}, which is not the address of the running relay`
      : problemOf(hook, saved)
    if (problem !== undefined) return fail(`that of ${name} ${problem}`, fix)
  }
  const failed = own.map(problemOfAnswer).find((problem) => problem !== undefined)
  // The next delivery may be long in coming.
  if (failed !== undefined)
    return fail(`that of ${name} ${failed}`, `${fix}, then ${commandFor(attached, `hook test ${name}`)}`)
  const hasAnswers = own.every(({ lastResponse }) => lastResponse !== undefined)
  return ok(`that of ${name} fits${hasAnswers ? ', and its last delivery was answered' : ''}`)
}

const CONTENT_TYPES: ReadonlySet<string> = new Set(['json', 'form'])

function problemOf(hook: RepoHook, saved: SavedHook | undefined): string | undefined {
  const { active, contentType, events } = hook
  if (!active) return 'is inactive'
  if (lacksSecret(hook, saved)) return NO_SECRET
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
