import { beginDeviceSignIn, noDeviceFlow } from '../../auth/device.js'
import {
  accountOf,
  awaitLogin,
  LOGIN_LIMIT_MS,
  type LoginOutcome,
  type SignInFailureReason,
} from '../../auth/sign-in.js'
import { missingScopes } from '../../auth/token-endpoint.js'
import { deadline } from '../../base/wait.js'
import { type ErrorKind, RelayError } from '../../base/errors.js'
import { isSharedAddress } from '../../base/shared-store.js'
import { formatDuration, systemClock } from '../../base/time.js'
import { ownMember, parseJson } from '../../json/parse.js'
import { createLoopbackClient } from '../../net/loopback.js'
import { USER_COMMAND } from '../options.js'
import { define, type Flags, type Shell } from '../command.js'
import { type SignedIn, signedIn } from '../account.js'
import { hasDisplay, showAddress } from '../browser.js'
import { readInput, inputText } from '../input.js'
import { wakeups } from '../follow.js'
import { publicAddress, redirectUri } from '../addresses.js'
import { withStore } from '../settings/join.js'
import { findProfile, type FoundProfile, openProfile } from '../profile.js'
import { openAsUser, type UserProfile } from '../user-profile.js'
import type { Output } from '../output/output.js'
import { tilde } from '../output/text.js'

export const loginCommand = define({
  ...USER_COMMAND,
  description: `Signs a user in at the code host, in the browser, and stores the token. Uses the running relay serve of the profile.
Without one, receives the code host's callback itself, on the same port. Where there is no display, uses the device flow if
the code host has it: you enter a code in a browser on any machine.`,
  examples: `relay login
relay login --no-browser  print the address to open, also over SSH
relay login --device  enter a code in a browser on any machine
relay login --with-token < token.txt
relay login --user ada --json | jq -r .login`,
  options: [
    ['--no-browser', 'print the address instead of opening it'],
    ['--device', 'print a code to enter in a browser on any machine'],
    ['--with-token', 'read a personal access token from standard input'],
  ],
  settings: ['port', 'publicUrl', ...USER_COMMAND.settings],
  exits: [
    [0, 'signed in'],
    [4, 'sign-in denied or failed'],
    [7, 'no sign-in within 5 minutes, or the code has expired'],
    8,
    130,
  ],
  run: runLogin,
  print,
})

interface LoginFlags extends Flags {
  readonly browser?: boolean
  readonly device?: boolean
  readonly withToken?: boolean
}

async function runLogin(shell: Shell, flags: LoginFlags): Promise<SignedIn> {
  if (flags.device && flags.withToken)
    throw new RelayError('usage', '--device and --with-token are two ways to sign in. Give one of them')
  // Standard input is read first, since its errors need neither the profile nor the code host.
  const token = flags.withToken ? await readGivenToken(shell, flags) : undefined
  const found = await findProfile(shell, flags, { mustExist: token === undefined && 'without a client' })
  // A token that is not accepted makes no profile.
  const given = token === undefined ? undefined : await askWhose(shell, found, token)
  const { clientId, clientSecret } = found.own.values
  const create = token !== undefined || (clientId !== undefined && clientSecret !== undefined)
  await using profile = await openAsUser(shell, found, { data: create ? 'create' : 'open', signsIn: true })
  if (profile.values.store === 'memory')
    throw new RelayError('settings', '--store memory would lose the token as soon as this command ends')
  const before = await profile.tokens.lastLogin(profile.user)
  const account = await signIn(shell, profile, flags, given)
  profile.remember()
  if (before && (before.account !== account.login || before.origin !== profile.host.origin))
    shell.out.log.warn(
      `${account.user} was signed in as ${before.account} at ${before.origin} before, and is ${account.login} from now on`,
    )
  return account
}

function print(account: SignedIn, out: Output): void {
  out.say(`signed in as ${account.login} at ${account.providerUrl}, for user ${account.user}`)
  out.say(`the token is in ${tilde(account.store)} and expires ${account.expiresAt}`)
}

/** Failures without a device flow, after which the browser is tried unless the user asked for the device flow. */
const NO_DEVICE_FLOW: ReadonlySet<ErrorKind> = new Set(['usage', 'settings', 'not_configured'])

async function signIn(
  shell: Shell,
  profile: UserProfile,
  { browser = true, device }: LoginFlags,
  given: Given | undefined,
): Promise<SignedIn> {
  if (given) return storeToken(shell, profile, given)
  if (!device && (!browser || hasDisplay(shell.env))) return signInWithBrowser(shell, profile, browser)
  const begun = await beginWithDevice(shell, profile).catch((error: unknown) => {
    if (device || !(error instanceof RelayError) || !NO_DEVICE_FLOW.has(error.kind)) throw error
    shell.out.log.debug(error.message)
  })
  return begun ? signInWithDevice(shell, profile, begun) : signInWithBrowser(shell, profile, browser)
}

// --with-token

/** Limit of standard input: 8,192 bytes are the longest token that relay stores, and two are for a line end. */
const INPUT = { tooLarge: 'longer than any token (8 KiB)', limit: 8_194 }
/** Visible ASCII, as an Authorization header requires. */
const TOKEN = /^[\x21-\x7e]+$/

/** Reads an access token from standard input, without one newline at its end. Invalid text is not quoted. */
async function readGivenToken(shell: Shell, flags: LoginFlags): Promise<string> {
  if (shell.stdin.isTTY === true) {
    await using profile = await openProfile(shell, flags, { mustExist: false, instance: 'ignore' })
    throw new RelayError(
      'usage',
      `A terminal would show the token. Pipe it in, for example ${profile.command('login --with-token')} < token.txt`,
    )
  }
  const bytes = await readInput(shell, '-', INPUT)
  const token = inputText(bytes, 'Standard input').replace(/(?:\r\n|\n|\r)$/, '')
  if (TOKEN.test(token)) return token
  throw new RelayError(
    'usage',
    token === ''
      ? 'Standard input has no token'
      : 'Standard input is not one token: it has white space, or characters that no token has',
  )
}

type Given = Awaited<ReturnType<typeof askWhose>>

async function askWhose(shell: Shell, found: FoundProfile, accessToken: string) {
  const data = isSharedAddress(withStore(found.parts).values.store) ? 'create' : 'open'
  await using profile = await openAsUser(shell, found, { data, signsIn: true })
  const { host } = profile
  const facts = await host
    .as(accessToken, { signal: shell.signal })
    .facts()
    .catch((error: unknown) => {
      if (!(error instanceof RelayError) || error.kind !== 'invalid_token') throw error
      throw new RelayError('invalid_token', `${host.url} does not accept this token. Nothing is stored`)
    })
  return { accessToken, facts }
}

/** Stores a token that the user made at the code host. It has no refresh token. */
async function storeToken(
  { out }: Shell,
  profile: UserProfile,
  { accessToken, facts }: Given,
): Promise<SignedIn> {
  const { host, tokens, user, values } = profile
  const expiresAt = facts.expiresAt ?? systemClock() + values.tokenTtl
  const { origin, url } = host
  await tokens.save(user, { accessToken, expiresAt, origin, url, account: facts.login })
  await tokens.rememberLogin(user, { origin: host.origin, account: facts.login })
  const missing = missingScopes(host.oauth, facts.scopes)
  if (missing.length > 0)
    out.log.warn(`The token lacks the scope ${missing.join(', ')}: some actions may be refused`)
  return signedIn(profile, { expiresAt }, facts.login)
}

// --device

type DeviceSignIn = Awaited<ReturnType<typeof beginDeviceSignIn>>

/** Begins a device flow. It needs the OAuth client's id, that of a running instance first, and at most code hosts no secret. */
async function beginWithDevice({ signal }: Shell, profile: UserProfile): Promise<DeviceSignIn> {
  const { host, client: own, command, values } = profile
  const id = profile.instance?.clientId ?? own?.id
  if (host.oauth.deviceEndpoint === undefined) throw noDeviceFlow({ host, command })
  if (id === undefined) throw notSetUp(profile)
  const client = own?.id === id ? own : { id }
  return beginDeviceSignIn({ host, client, command, tokenTtl: values.tokenTtl, signal })
}

/** Signs the user in with a code to enter in any browser. */
async function signInWithDevice(
  { out, signal }: Shell,
  profile: UserProfile,
  begun: DeviceSignIn,
): Promise<SignedIn> {
  const { host, tokens, user } = profile
  const { userCode, address, lifetime } = begun
  const lines = [
    'Open this address in a browser on any machine, and enter the code:',
    '',
    `  ${address}`,
    `  ${userCode}`,
    '',
    `Waiting up to ${formatDuration(lifetime)} for you to do so. Ctrl-C cancels.`,
  ]
  for (const line of lines) out.say(line)
  const issued = await begun.awaitToken()
  // Requested before the token is stored, since a failed command must not sign the user in.
  const { login } = await accountOf(host, issued.accessToken, { signal })
  await tokens.save(user, { ...issued, url: host.url, account: login })
  await tokens.rememberLogin(user, { origin: issued.origin, account: login })
  const missing = missingScopes(host.oauth, issued.scopes)
  if (missing.length > 0)
    out.log.warn(`${host.url} did not grant ${missing.join(', ')}: some actions may be refused`)
  return signedIn(profile, issued, login)
}

// In the browser

/**
 * Signs the user in with a browser. The running instance receives the code host's response or, if none runs, this
 * process.
 */
async function signInWithBrowser(shell: Shell, profile: UserProfile, opens: boolean): Promise<SignedIn> {
  const { signal } = shell
  const { database, tokens, user, host, instance, values } = profile
  const login = Buffer.from(crypto.getRandomValues(new Uint8Array(24))).toString('base64url')
  await using receiver = instance ? undefined : await openReceiver(shell, profile, login)
  const own = instance?.url ?? receiver?.url ?? ''
  const path = `/auth/${host.name}?userId=${encodeURIComponent(user)}`
  await checkStart(new URL(own + path), profile.limits.tokenEndpoint, signal)
  const address = `${instance?.publicUrl ?? values.publicUrl ?? own}${path}&login=${login}`
  const waiting = 'Waiting up to 5 minutes for you to sign in there. Ctrl-C cancels.'
  await showAddress(shell, address, { opens, waiting })
  // Behind a public address, another relay of a shared profile may receive the callback.
  const isReceiver = receiver !== undefined && values.publicUrl === undefined
  const outcomes = isReceiver
    ? receiver.outcomes.within(LOGIN_LIMIT_MS, signal)
    : wakeups(shell, profile, { limit: LOGIN_LIMIT_MS })
  const outcome = await awaitLogin(database.store, login, outcomes)
  await receiver?.lastPage()
  if (outcome.auth === 'error') throw failed(outcome, profile)
  await tokens.rememberLogin(user, { origin: host.origin, account: outcome.account })
  return signedIn(profile, await profile.owner(), outcome.account)
}

async function openReceiver(shell: Shell, profile: UserProfile, login: string) {
  const { client } = profile
  if (!client) throw notSetUp(profile)
  // Loaded late, with the HTTP server that it needs.
  const { receiveCallback } = await import('../callback.js')
  return receiveCallback(shell, profile, { client, login })
}

/**
 * Requests the start address first, so that an error appears in the terminal and not in the browser. `limit` is in
 * milliseconds.
 */
async function checkStart(address: URL, limit: number, signal: AbortSignal): Promise<void> {
  using client = createLoopbackClient()
  const limited = { signal: deadline(limit, signal) }
  const answer = client.send(address, { method: 'GET', headers: {} }, limited)
  const { status, text } = await answer.catch((cause: unknown) => {
    signal.throwIfAborted()
    throw new RelayError('unavailable', `relay at ${address.origin} does not answer`, { cause })
  })
  if (status === 302) return
  throw new RelayError('not_configured', errorOf(text) ?? `relay at ${address.origin} answered ${status}`)
}

/** Returns the `error` of a JSON response. Undefined if there is none. */
function errorOf(text: string): string | undefined {
  try {
    const error = ownMember(parseJson(text), 'error')
    return typeof error === 'string' ? error : undefined
  } catch {
    return undefined
  }
}

function notSetUp(profile: UserProfile): RelayError {
  const { host } = profile
  const callback = redirectUri(publicAddress(profile), host.name)
  return new RelayError(
    'settings',
    `Sign-in at ${host.url} is not set up. Run ${profile.command('setup')}, or set RELAY_CLIENT_ID and RELAY_CLIENT_SECRET of an OAuth app with the callback ${callback}`,
  )
}

const REASONS: Readonly<Record<SignInFailureReason, string>> = {
  access_denied: 'access was denied at the code host',
  invalid_state:
    'the browser returned with an unknown state. Start and finish in one browser, within 10 minutes',
  provider_unavailable: 'the code host was unreachable or failed',
  exchange_failed: 'the code host issued no token. Check client id, client secret and callback address',
  storage_failed: 'the token could not be stored',
}

function failed(
  { reason, why }: Extract<LoginOutcome, { auth: 'error' }>,
  { user, host }: UserProfile,
): RelayError {
  // The message names the failing address.
  const detail = reason === 'provider_unavailable' ? `: ${why}` : ''
  return new RelayError(
    'unauthenticated',
    `${user} is not signed in at ${host.url}: ${REASONS[reason]} (${reason})${detail}`,
  )
}
