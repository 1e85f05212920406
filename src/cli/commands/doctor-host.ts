import { TokenEndpoint } from '../../auth/token-endpoint.js'
import { deadline } from '../../base/wait.js'
import { RelayError } from '../../base/errors.js'
import { isLoopback } from '../../base/address.js'
import { Secret } from '../../base/secret.js'
import { DEFAULTS, PROVIDER_NAMES, type ProviderName } from '../../base/settings.js'
import { systemClock } from '../../base/time.js'
import type { Probe } from '../../codehost/host.js'
import { HOST_KINDS, openHost } from '../../codehost/hosts.js'
import { parseJson } from '../../codehost/rest.js'
import { readText, sendOnce } from '../../net/client.js'
import { describeConnectionError } from '../../net/errors.js'
import { findSandboxClient } from '../../sandbox/client.js'
import type { Database } from '../../store/open.js'
import { Tokens } from '../../tokens/tokens.js'
import type { Shell } from '../command.js'
import { roughly } from '../output/time.js'
import { type Attached, publicAddress, redirectUri } from '../profile.js'
import { userOf } from '../session.js'

// What the checks of `relay doctor` have in common, and those about the code host.

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

/** The time limit of a check. Milliseconds. */
export const LIMIT_MS = 5000

/** A command line of relay for the profile. */
export function commandFor({ profile }: Pick<Attached, 'profile'>, command: string): string {
  return profile === DEFAULTS.profile ? `relay ${command}` : `relay ${command} --profile ${profile}`
}

/** The command that sets this machine's clock. */
export function setClockCommand(): string {
  const commands: { readonly [name in NodeJS.Platform]?: string } = {
    linux: 'sudo timedatectl set-ntp true',
    darwin: 'sudo sntp -sS time.apple.com',
    win32: 'w32tm /resync',
  }
  return commands[process.platform] ?? "set this machine's clock"
}

/** Whether the code host answers, is of the configured kind, agrees on the time, knows the client, and can return browsers. */
export async function checkHost(subject: Subject): Promise<CheckResult> {
  const { provider, providerUrl } = subject.attached.values
  const signal = deadline(LIMIT_MS, subject.shell.signal)
  const answer = providerUrl === undefined ? undefined : askCodeHost(provider, providerUrl, signal)
  answer?.catch(() => {})
  const results = [
    await checkKind(subject, answer),
    await checkClock(answer),
    await checkClient(subject),
    checkAddresses(subject.attached),
  ]
  const failed = results.find(({ state }) => state === 'fail')
  const fine = results.filter(({ state }) => state === 'ok').map(({ text }) => text)
  return failed ?? (fine.length > 0 ? ok(fine.join('; ')) : (results[0] ?? skip('nothing to check')))
}

// What answers at its address

/** The answer of a code host about itself. */
interface Answer {
  /** The time of the answer by its clock and by ours, in milliseconds. */
  readonly theirs: number | undefined
  readonly ours: number
  /** Its software and version; undefined when it is not of the expected kind. */
  readonly software: string | undefined
  /** The requested address and the status of the answer. */
  readonly address: string
  readonly status: number
  /** The kind it is instead. */
  readonly other?: { readonly provider: ProviderName; readonly software: string } | undefined
}

/** Asks the code host's API for its software; if it is not of the expected kind, as each other kind. Sends no token. */
async function askCodeHost(provider: ProviderName, url: string, signal: AbortSignal): Promise<Answer> {
  const answer = await ask(openHost({ name: provider, url }).probe, signal)
  if (answer.software !== undefined) return answer
  const asked = new Set([answer.address])
  for (const other of PROVIDER_NAMES) {
    const { probe } = openHost({ name: other, url })
    if (asked.has(probe.address)) continue
    asked.add(probe.address)
    const { software } = await ask(probe, signal).catch(() => ({ software: undefined }))
    if (software !== undefined) return { ...answer, other: { provider: other, software } }
  }
  return answer
}

async function ask({ address, recognise }: Probe, signal: AbortSignal): Promise<Answer> {
  const headers = { accept: 'application/json', 'user-agent': 'webhook-relay' }
  const before = systemClock()
  const response = await sendOnce(address, { method: 'GET', headers, signal })
  const ours = (before + systemClock()) / 2
  const json = parseJson(await readText(response))
  const { status, header } = response
  const date = Date.parse(header('date') ?? '')
  const theirs = Number.isNaN(date) ? undefined : date
  return { theirs, ours, software: recognise({ status, header, json }), address, status }
}

/** Whether the code host answers at its address and is of the configured kind. */
async function checkKind({ attached }: Subject, answer: Promise<Answer> | undefined): Promise<CheckResult> {
  const { provider, providerUrl = '' } = attached.values
  if (!answer)
    return HOST_KINDS[provider].isEmulated
      ? skip('the sandbox is not running')
      : fail(`the address of your ${provider} is not set`, 'set RELAY_PROVIDER_URL=https://…')
  try {
    return judge(await answer, provider, new URL(providerUrl))
  } catch (error) {
    if (error instanceof RelayError) throw error
    return fail(
      `${providerUrl} cannot be reached (${describeConnectionError(error)})`,
      `run curl -I ${providerUrl}, and set HTTPS_PROXY if there is a proxy`,
    )
  }
}

function judge(answer: Answer, provider: ProviderName, { href, origin, pathname }: URL): CheckResult {
  const { software, other, address, status } = answer
  const { isEmulated, pathAllowed } = HOST_KINDS[provider]
  const url = href.replace(/\/+$/, '')
  if (other)
    return fail(`${url} is ${other.software}, not ${provider}`, `set RELAY_PROVIDER=${other.provider}`)
  if (software === undefined)
    return fail(
      `${url} answers, but not as ${provider}: ${address} gave ${status}`,
      'check RELAY_PROVIDER_URL and its path',
    )
  if (!pathAllowed && pathname !== '/')
    return fail(`${url} has a path, but ${software} has none`, `set RELAY_PROVIDER_URL=${origin}`)
  return ok(`${url} is ${isEmulated ? 'the sandbox' : software}`)
}

/** OAuth and TLS tolerate a minute; with more, states and tokens expire too early or too late. Milliseconds. */
const MAX_CLOCK_DIFFERENCE = 60_000

/** Whether this machine's clock agrees with that of the code host. */
async function checkClock(answer: Promise<Answer> | undefined): Promise<CheckResult> {
  const { theirs, ours } = (await answer?.catch(() => undefined)) ?? {}
  if (theirs === undefined || ours === undefined) return skip('the code host did not send its time')
  const seconds = Math.round((ours - theirs) / 1000)
  const size = Math.abs(seconds)
  if (Math.abs(ours - theirs) <= MAX_CLOCK_DIFFERENCE)
    return ok(`within ${Math.max(1, size)} s of the code host's`)
  return fail(`${size} s ${seconds > 0 ? 'ahead of' : 'behind'} the code host's`, setClockCommand())
}

// The OAuth client and the addresses of a sign-in

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
  const isStored = origins.clientSecret?.kind === 'setup'
  return fail(
    `${url} does not know client ${id}, or its secret`,
    isStored ? commandFor(attached, 'setup') : 'correct RELAY_CLIENT_ID and RELAY_CLIENT_SECRET',
  )
}

/** Whether relay, or its instance if one runs, has an OAuth client. Asks nothing. */
async function findClient({ attached, data }: Subject): Promise<CheckResult> {
  const { instance, values, origins } = attached
  const { clientId, clientSecret, provider } = values
  const { isEmulated } = HOST_KINDS[provider]
  if (instance && data && (await findSandboxClient(data.secrets, instance.providerUrl)))
    return ok("the sandbox's own")
  if (instance?.clientId) return ok(`process ${instance.pid} has client id ${instance.clientId}`)
  const isHere = clientId !== undefined && clientSecret !== undefined
  if (instance?.clientId === null && (!isEmulated || isHere))
    return fail(
      `process ${instance.pid} has no OAuth client: sign-in is off`,
      isHere
        ? `restart ${commandFor(attached, 'serve')}`
        : `${commandFor(attached, 'setup')}, then restart relay serve`,
    )
  if (isHere) return ok(`client id ${clientId} (${origins.clientSecret?.text ?? origins.clientId?.text})`)
  if (isEmulated) return skip('the sandbox has its own')
  const missing = [
    ...(clientId === undefined ? ['RELAY_CLIENT_ID'] : []),
    ...(clientSecret === undefined ? ['RELAY_CLIENT_SECRET'] : []),
  ].join(' and ')
  return fail(`${missing} not set: no user can sign in`, commandFor(attached, 'setup'))
}

/** Whether a browser can pass from relay to the code host and back when it signs in. */
function checkAddresses(attached: Attached): CheckResult {
  const { instance, values } = attached
  const publicUrl = publicAddress(attached)
  const { baseUrl = publicUrl, port, provider } = values
  const [reached, back] = [new URL(publicUrl), new URL(baseUrl)]
  const isLocal = isLoopback(reached.hostname)
  if (reached.protocol === 'http:' && !isLocal)
    return fail(
      `${publicUrl} is not encrypted: others on the network can read codes and tokens`,
      `set RELAY_PUBLIC_URL=https://${reached.host}`,
    )
  if (isLocal && isLoopback(back.hostname) && reached.hostname !== back.hostname)
    return fail(
      `relay is at ${reached.hostname} and the application at ${back.hostname}: a sign-in that starts at one cannot end at the other`,
      `set RELAY_PUBLIC_URL=${publicUrl.replace(reached.hostname, back.hostname)}`,
    )
  if (reached.port === '0') return skip('known when relay serve has chosen a port')
  const listening = instance ? new URL(instance.url).port : String(port)
  if (isLocal && listening !== '0' && portOf(reached) !== listening)
    return fail(
      `the public address has port ${portOf(reached)}, but relay listens on ${listening}`,
      `set RELAY_PUBLIC_URL=${reached.protocol}//${reached.hostname}:${listening}`,
    )
  return ok(`sign-in returns to ${redirectUri(publicUrl, provider)}, then to ${baseUrl}`)
}

function portOf({ port, protocol }: URL): string {
  return port || (protocol === 'https:' ? '443' : '80')
}

// The user

/** Whether the user has an unexpired token of this code host that works. The token is sent only to the host it came from. */
export async function checkSignIn(subject: Subject): Promise<CheckResult> {
  const { shell, attached, data, problem } = subject
  if (problem !== undefined) return skip('the database cannot be opened')
  const { provider: name, providerUrl: url, store } = attached.values
  const user = userOf(attached.values)
  const login = commandFor(attached, attached.values.user === undefined ? 'login' : `login --user ${user}`)
  if (store === 'memory') return skip('only the instance has the tokens, in memory')
  const tokens = data && new Tokens(data.secrets)
  const owner = await tokens?.get(user)
  if (!owner)
    return (await tokens?.refreshable(user))
      ? checkRenewal(subject, user)
      : fail(`${user} is not signed in`, login)
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

/** Whether an expired token can be renewed, which needs the OAuth client, here or in the instance. */
async function checkRenewal(subject: Subject, user: string): Promise<CheckResult> {
  const { state } = await findClient(subject)
  if (state === 'ok') return ok(`the token of ${user} has expired; its next use renews it`)
  return fail(
    `the token of ${user} has expired, and renewing it needs the OAuth client`,
    `${commandFor(subject.attached, 'setup')}, or start the relay that has it`,
  )
}
