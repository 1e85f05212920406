import { findOwnApp, type OwnApp } from '../../auth/setup.js'
import { otherAccountText } from '../../auth/accounts.js'
import { TokenEndpoint } from '../../auth/token-endpoint.js'
import { deadline } from '../../base/wait.js'
import { type ErrorKind, RelayError } from '../../base/errors.js'
import { isLoopback, parseUrl } from '../../base/address.js'
import { PROVIDER_NAMES } from '../../base/source-names.js'
import type { OAuthClient } from '../../base/settings.js'
import { systemClock } from '../../base/time.js'
import { hookLacksSecret, sameAddress, type SavedHook, SavedHooks } from '../../codehost/hooks.js'
import type { Account, CodeHost, Probe, RepoHook } from '../../codehost/host.js'
import { hostKind } from '../../codehost/hosts.js'
import { parseResponse } from '../../codehost/rest.js'
import { Journal } from '../../journal/journal.js'
import { readResponseText, sendOnce } from '../../net/client.js'
import { describeConnectionError } from '../../net/errors.js'
import { redirectTarget } from '../../net/redirect.js'
import { findSandboxClient } from '../../sandbox/client.js'
import type { Database } from '../../store/open.js'
import { Tokens } from '../../tokens/tokens.js'
import { pausedText } from '../output/deliveries.js'
import { roughly } from '../output/time.js'
import { publicAddress, redirectUri, tunnelAddress } from '../addresses.js'
import { loginCommandLine, signInCommand, startCommand } from '../advice.js'
import { openNamedHost } from '../code-host.js'
import type { Profile } from '../profile.js'
import { clientOf, isUserNamed, userOf } from '../settings/derived.js'
import type { Values } from '../settings/parse.js'
import { sourceNames } from '../sources.js'
import { type Examined, fail, Finding, LIMIT_MS, SET_CLOCK, settle, skip } from './check.js'
import { ANY_OWNER, formatRepo, parseRepo } from '../../codehost/repo.js'

// Checks of `relay doctor` that call the code host.

/**
 * Opens the code host. Undefined if its address is not known. @throws RelayError `settings` for one that relay does not
 * use, such as http on another machine
 */
async function hostOf(profile: Profile): Promise<CodeHost | undefined> {
  return profile.values.providerUrl === undefined ? undefined : openNamedHost(profile, { codeHost: LIMIT_MS })
}

// The code host and the OAuth client

/**
 * Checks that the code host responds, is of the configured kind, agrees on the time, knows the client, and can return
 * browsers.
 */
export async function checkCodeHost(subject: Examined): Promise<string> {
  const answer = await checkAnswer(subject)
  const found = [answer, await checkClient(subject), checkAddress(subject.profile)]
  return found.filter((text) => text !== undefined).join('; ')
}

/**
 * Largest clock difference. OAuth and TLS tolerate a minute; with more, states and tokens expire too early or too late.
 * Milliseconds.
 */
const MAX_CLOCK_DIFFERENCE = 60_000

/**
 * Checks that the code host responds at its address, is of the configured kind, and agrees on the time. Sends no token.
 */
async function checkAnswer({ profile, shell }: Examined): Promise<string> {
  const host = await hostOf(profile)
  const { provider: name } = profile.values
  const { isEmulated, pathAllowed } = await hostKind(name)
  if (!host && isEmulated) {
    checkAddress(profile)
    throw skip('the sandbox is not running')
  }
  if (!host) throw fail(`the address of your ${name} is not set`, 'set RELAY_PROVIDER_URL=https://…')
  const { probe, url, refusal } = host
  if (refusal) throw skip(refusal.message)
  const signal = deadline(LIMIT_MS, shell.signal)
  const { software, status, elsewhere, ahead } = await ask(probe, signal).catch((error: unknown) => {
    if (error instanceof RelayError) throw error
    throw fail(
      `${url} cannot be reached (${describeConnectionError(error)})`,
      isEmulated ? whereSandbox(profile) : `run curl -I ${url}, and set HTTPS_PROXY if there is a proxy`,
    )
  })
  const { origin, pathname } = new URL(url)
  if (software === undefined) {
    for (const other of PROVIDER_NAMES) {
      const { probe: theirs } = await openNamedHost({
        ...profile,
        values: { ...profile.values, provider: other },
      })
      if (theirs.address === probe.address) continue
      const found = await ask(theirs, signal).catch(() => undefined)
      if (found?.software !== undefined)
        throw fail(`${url} is ${found.software}, not ${name}`, `set RELAY_PROVIDER=${other}`)
    }
    const gave = elsewhere === undefined ? String(status) : `${status}, a redirect to ${elsewhere}`
    throw fail(
      `${url} answers, but not as ${name}: ${probe.address} gave ${gave}`,
      'check RELAY_PROVIDER_URL and its path',
    )
  }
  if (!pathAllowed && pathname !== '/')
    throw fail(`${url} has a path, but ${software} has none`, `set RELAY_PROVIDER_URL=${origin}`)
  const seconds = Math.round(Math.abs(ahead) / 1000)
  if (Math.abs(ahead) > MAX_CLOCK_DIFFERENCE)
    throw fail(
      `this machine's clock is ${seconds} s ${ahead > 0 ? 'ahead of' : 'behind'} the code host's`,
      SET_CLOCK,
    )
  const clocks = Number.isNaN(ahead) ? '' : `; clocks agree within ${Math.max(1, seconds)} s`
  return `${url} is ${isEmulated ? 'the sandbox' : software}${clocks}`
}

/** Explains how to start a sandbox again that does not respond: that of this profile, or of another relay. */
function whereSandbox(profile: Profile): string {
  if (profile.saved?.sandbox) return startCommand(profile)
  return 'start the relay that has this sandbox, or set RELAY_PROVIDER_URL to the address of another'
}

/**
 * Calls the code host. `software` is undefined if it is not of the expected kind. `ahead` is the milliseconds by which
 * our clock is ahead; NaN if it sent no time.
 */
async function ask({ address, recognise }: Probe, signal: AbortSignal) {
  const headers = { accept: 'application/json', 'user-agent': 'webhook-relay' }
  const before = systemClock()
  const response = await sendOnce(address, { method: 'GET', headers, signal })
  const ours = (before + systemClock()) / 2
  const { status, header } = response
  const json = parseResponse(await readResponseText(response))
  const theirs = Date.parse(header('date') ?? '')
  const elsewhere = redirectTarget(response, address)
  return { status, elsewhere, software: recognise({ status, header, json }), ahead: ours - theirs }
}

/**
 * Checks that users can sign in: relay, or its running instance, has an OAuth client, and the code host knows it.
 * Undefined for the sandbox of another relay, whose client is unknown here.
 */
async function checkClient(subject: Examined): Promise<string | undefined> {
  const { profile, shell } = subject
  const { instance, values, origins } = profile
  const client = wholeClient(values)
  const found = await findClient(subject)
  const setup = profile.command('setup')
  if (found === undefined) {
    if ((await hostKind(values.provider)).isEmulated && !client) return undefined
    const isHalf = (values.clientId ?? values.clientSecret) !== undefined
    if (!isHalf && (await usesSourcesAlone(subject)))
      return 'no OAuth client is set, which the sources do not need'
    if (!isHalf && (await hasToken(subject)))
      return `no OAuth client is set, which ${userOf(values)} does not need to stay signed in`
    const missing = isHalf ? 'only half of an OAuth client is set' : 'no OAuth client is set'
    if (!instance) throw fail(`${missing}: no user can sign in`, setup)
    const restart = profile.command('serve')
    throw fail(
      `process ${instance.pid} has no OAuth client: sign-in is off`,
      client ? `restart ${restart}` : `${setup}, then restart ${restart}`,
    )
  }
  const host = await hostOf(profile)
  if (!client || !host) return found
  const { url } = host
  const options = { timeLimit: LIMIT_MS, signal: shell.signal }
  const isKnown = await new TokenEndpoint(host, client, options).knowsClient()
  if (isKnown === undefined) return `${found}; ${url} did not say whether it knows it`
  if (isKnown) return `${found}; ${url} knows it`
  throw fail(
    `${url} does not know client ${client.id}, or its secret`,
    origins.clientSecret?.kind === 'setup' ? setup : 'correct RELAY_CLIENT_ID and RELAY_CLIENT_SECRET',
  )
}

/**
 * True if deliveries come from other sources than the code host, and no OAuth client indicates that users sign in
 * there.
 */
async function usesSourcesAlone(subject: Examined): Promise<boolean> {
  const { profile, data } = subject
  if ((await findClient(subject)) !== undefined) return false
  return (await sourceNames(profile, data)).length > 0
}

/** True if the user has a token of this code host that needs no renewal, as `relay login --with-token` stores it. */
async function hasToken({ profile, data, problem }: Examined): Promise<boolean> {
  if (!data || problem !== undefined || profile.values.store === 'memory') return false
  const tokens = new Tokens(data.secrets)
  const [owner, host] = [await tokens.get(userOf(profile.values)), await hostOf(profile)]
  return owner !== undefined && owner.origin === host?.origin
}

/** Returns the OAuth client if both of its parts are set. */
function wholeClient(values: Values): OAuthClient | undefined {
  return values.clientId && values.clientSecret ? clientOf(values) : undefined
}

/** Describes the OAuth client of relay or of its running instance, without calling the code host. */
async function findClient({ profile, data }: Examined): Promise<string | undefined> {
  const { instance, values, origins } = profile
  if (instance && data && (await findSandboxClient(data.secrets, instance.providerUrl)))
    return "the OAuth client is the sandbox's own"
  if (instance)
    return instance.clientId ? `process ${instance.pid} has client id ${instance.clientId}` : undefined
  const client = wholeClient(values)
  return client && `client id ${client.id} (${origins.clientSecret?.text ?? origins.clientId?.text})`
}

/** Checks that a browser can return from the code host when it signs in. Undefined while the port is not known. */
function checkAddress({ instance, values }: Profile): string | undefined {
  const address = publicAddress({ instance, values })
  const { protocol, hostname, host, port } = new URL(address)
  const isLocal = isLoopback(hostname)
  if (protocol === 'http:' && !isLocal)
    throw fail(
      `${address} is not encrypted: others on the network can read codes and tokens`,
      `set RELAY_PUBLIC_URL=https://${host}`,
    )
  if (port === '0') return undefined
  const listening = instance ? new URL(instance.url).port : String(values.port)
  const known = port || (protocol === 'https:' ? '443' : '80')
  if (isLocal && listening !== '0' && known !== listening)
    throw fail(
      `the public address has port ${known}, but relay listens on ${listening}`,
      `set RELAY_PUBLIC_URL=${protocol}//${hostname}:${listening}`,
    )
  const { baseUrl = address, provider } = values
  return `sign-in returns to ${redirectUri(address, provider)}, then to ${baseUrl}`
}

// The user

/**
 * Checks that the user has an unexpired token of this code host that works. The token is sent only to the host that
 * issued it.
 */
export async function checkSignIn(subject: Examined): Promise<string> {
  const { shell, profile, data, problem } = subject
  if (problem !== undefined) throw skip('the database cannot be opened')
  const { store } = profile.values
  if (store === 'memory') throw skip('only the instance has the tokens, in memory')
  const user = userOf(profile.values)
  const isNamed = profile.origins.user?.kind === 'flag'
  const login = loginCommandLine(profile)
  const tokens = data && new Tokens(data.secrets)
  const owner = await tokens?.get(user)
  if (!owner) {
    const isKnown = await tokens?.refreshable(user)
    if (!isKnown && !isNamed && (await usesSourcesAlone(subject)))
      throw skip(`${user} is not signed in, which the sources do not need`)
    const hasClient = (await findClient(subject)) !== undefined
    if (!isKnown) throw fail(`${user} is not signed in`, signInCommand(profile, hasClient))
    if (hasClient) return `the token of ${user} has expired; its next use renews it`
    throw fail(
      `the token of ${user} has expired, and renewing it needs the OAuth client`,
      `${profile.command('setup')}, or start the relay that has it`,
    )
  }
  const host = await hostOf(profile)
  if (!host) throw skip('the code host is not known')
  if (owner.origin !== host.origin)
    throw fail(`the token of ${user} is from ${owner.origin}, not ${host.origin}`, login)
  const other = await tokens?.otherAccount(owner, { isNamed: isUserNamed(profile) })
  if (other) throw fail(otherAccountText(owner, other), login)
  const expiry = `expires in ${roughly(owner.expiresAt - systemClock())}`
  const account = host.as(owner.accessToken, { signal: shell.signal })
  const facts = await account.facts().catch((error: unknown) => {
    if (!(error instanceof RelayError)) throw error
    if (error.kind === 'invalid_token') throw fail(`the code host rejects the token of ${user}`, login)
    throw skip(`the token of ${user} ${expiry}; relay could not check that it works (${error.message})`)
  })
  return `${user} is signed in as ${facts.login}; the token ${expiry}`
}

// The hooks

/** Parts of the checks of hooks. */
interface Hooks extends Examined {
  readonly data: Database
  readonly host: CodeHost
  /** Addresses at which deliveries reach this relay. */
  readonly here: readonly string[]
}

/**
 * Checks the settings of the hooks that send here, and of the App's webhook. Settings that the code host does not show
 * are not checked.
 */
export async function checkHook(subject: Examined): Promise<string> {
  const { profile, data, shell, problem } = subject
  if (problem !== undefined) throw skip('the database cannot be opened')
  const host = data && (await hostOf(profile))
  if (!host) throw skip('there is no journal yet')
  const addresses = [`${publicAddress(profile)}/webhook`, tunnelAddress(profile) ?? '']
  // The port is not known before relay listens.
  const here = addresses.filter((address) => parseUrl(address) !== undefined)
  const hooks = { ...subject, data, here, host }
  // Another check reports unreadable data.
  const app = await findOwnApp(data.secrets, host, {
    signal: shell.signal,
    command: profile.command,
  }).catch(() => undefined)
  const ofApp = app ? [() => checkApp(app, hooks)] : []
  const owner = await new Tokens(data.secrets).get(userOf(profile.values))
  const isSignedIn = owner?.origin === host.origin
  const ofRepos = isSignedIn
    ? await checksOfRepos(hooks, host.as(owner.accessToken, { signal: shell.signal }))
    : []
  const results = await Promise.all([...ofApp, ...ofRepos].map(settle))
  const fine = results.filter(({ state }) => state === 'ok').map(({ text }) => text)
  const failed = results.find(({ state }) => state === 'fail')
  if (failed) throw new Finding(failed)
  if (fine.length > 0) return fine.join('; ')
  const none = 'none was made, and the journal has no delivery of a repository'
  throw skip(results[0]?.text ?? (isSignedIn ? none : 'asking about them needs a sign-in'))
}

/** Checks the webhook of the App, as far as it is visible with the App's key. */
async function checkApp(app: OwnApp, { profile, here }: Hooks): Promise<string> {
  const { instance } = profile
  const { slug } = app
  const [{ installations, installUrl }, hook, { deliveries }] = await Promise.all([
    app.describe(),
    app.hook(),
    app.log.page(),
  ]).catch((error: unknown) => {
    if (!(error instanceof RelayError)) throw error
    const { kind, message } = error
    if (kind === 'gone' || kind === 'forbidden') throw fail(message, profile.command('setup --app-hook'))
    throw skip(`that of ${slug} cannot be seen (${message})`)
  })
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
    throw fail(
      `the webhook of ${slug} ${problem}`,
      `${instance ? 'restart' : 'run'} ${profile.command('serve')}, which corrects it`,
    )
  if (installations === 0)
    throw skip(`${slug} is installed on no repository yet: open ${installUrl} in a browser`)
  // A ping was sent before relay had agreed with the App on a secret. Only deliveries show if the webhook is active.
  const last = deliveries.find(({ event }) => event !== 'ping')
  if (!last) return `the webhook of ${slug} fits`
  const { statusCode, status } = last
  if (isAnswered(statusCode)) return `the webhook of ${slug} fits, and its last delivery was answered`
  if (statusCode !== 401)
    throw fail(
      `the last delivery of ${slug} failed: ${statusCode} ${status}`,
      `start ${profile.command('serve --catch-up')}, which gets what was missed`,
    )
  throw fail(
    `the webhook of ${slug} signed its last delivery with another secret: it was answered 401`,
    `restart ${profile.command('serve')}, which gives it the secret of this profile`,
  )
}

const NO_SECRET = 'has no secret, so that relay refuses its deliveries'

function isAnswered(status: number): boolean {
  return status >= 200 && status < 300
}

/** Number of entries of the journal whose repositories are checked. */
const RECENT = 200
/** Maximum of repositories that are checked, those of `--hook` first. */
const MAX_REPOS = 10

/** Makes a check for each repository with a hook of `--hook`, with a hook that the profile made, or in the journal. */
async function checksOfRepos(hooks: Hooks, account: Account): Promise<(() => Promise<string>)[]> {
  const { profile, data, host } = hooks
  const planned = profile.instance?.hooks ?? []
  const saved = await new SavedHooks(data.store, host).list()
  const recent: string[] = []
  for await (const { repo } of new Journal(data.sql).select({ last: RECENT }))
    if (repo !== null) recent.push(repo)
  // Repository names ignore case.
  const names = new Map<string, string>()
  for (const name of [...planned, ...saved.map(formatRepo), ...recent])
    if (!names.has(name.toLowerCase())) names.set(name.toLowerCase(), name)
  return [...names].slice(0, MAX_REPOS).map(([key, name]) => {
    const hook = saved.find((each) => formatRepo(each).toLowerCase() === key)
    const isWanted = planned.includes(name) || hook !== undefined
    return () => checkRepo(hooks, account, { name, isWanted, saved: hook })
  })
}

/** Failures that do not end by themselves. */
const LASTING: ReadonlySet<ErrorKind> = new Set(['forbidden', 'invalid_token', 'not_found', 'unprocessable'])

/** Checks the hooks of a repository. `isWanted`: it should have one. `saved`: the record of the profile's own hook. */
async function checkRepo(
  { profile, here }: Hooks,
  { hooks }: Account,
  { name, isWanted, saved }: { name: string; isWanted: boolean; saved: SavedHook | undefined },
): Promise<string> {
  const fix = profile.command(`hook add ${name}`)
  const all = await hooks.list(parseRepo(name, ANY_OWNER)).catch((error: unknown) => {
    if (!(error instanceof RelayError)) throw error
    const text = `those of ${name} cannot be seen (${error.message})`
    throw isWanted && LASTING.has(error.kind) ? fail(text, `${fix}, which says what is missing`) : skip(text)
  })
  const isHere = (url: string): boolean => here.some((address) => sameAddress(url, address))
  const own = all.filter(({ url }) => isHere(url) || (saved && sameAddress(url, saved.url)))
  const none = `none of ${name} sends to ${here.join(' or ')}`
  if (own.length === 0) throw isWanted ? fail(none, fix) : skip(none)
  for (const hook of own) {
    // Without an instance, relay has no address of its own now.
    const isAway = profile.instance !== undefined && !isHere(hook.url) && saved?.chosen === false
    const problem = isAway
      ? `sends to ${hook.url}, which is not the address of the running relay`
      : problemOf(hook, saved)
    if (problem !== undefined) throw fail(`that of ${name} ${problem}`, fix)
    if (hook.paused) {
      const test = profile.command(`hook test ${name}`)
      throw fail(
        `that of ${name} ${pausedText(hook.paused)}`,
        profile.instance ? test : `${startCommand(profile)}, then ${test}`,
      )
    }
  }
  const failed = own.map(problemOfAnswer).find((problem) => problem !== undefined)
  // Reported now, since the next delivery may take long.
  if (failed !== undefined)
    throw fail(
      `that of ${name} ${failed}`,
      `${profile.instance ? fix : startCommand(profile)}, then ${profile.command(`hook test ${name}`)}`,
    )
  const hasAnswers = own.every(({ lastResponse }) => lastResponse !== undefined)
  return `that of ${name} fits${hasAnswers ? ', and its last delivery was answered' : ''}`
}

function problemOf(hook: RepoHook, saved: SavedHook | undefined): string | undefined {
  const { active, paused, contentType, events } = hook
  if (!active && !paused) return 'is inactive'
  if (hookLacksSecret(hook, saved)) return NO_SECRET
  if (!['json', 'form'].includes(contentType)) return `sends ${contentType}, not JSON`
  if (events.length === 0) return 'sends no event'
  // Compared as the code host showed them after relay set them, since Gitea shows several events for one.
  const given = saved?.shown?.events ?? []
  const lacking = given.filter((event) => !events.includes(event) && !events.includes('*'))
  if (lacking.length === 0) return undefined
  return `sends ${events.join(', ')} alone, and not ${lacking.includes('*') ? 'every event' : lacking.join(', ')}`
}

function problemOfAnswer({ lastResponse, hasSecret }: RepoHook): string | undefined {
  if (!lastResponse || isAnswered(lastResponse.code)) return undefined
  const { code, message } = lastResponse
  if (code !== 401) return `failed last: ${code} ${message}`.trimEnd()
  // If the code host does not show that it has a secret, it may have none.
  const what = hasSecret ? 'signs with another secret than' : 'does not sign with the secret of'
  return `${what} this profile: its last delivery was answered 401`
}
