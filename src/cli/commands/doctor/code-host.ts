import { platform } from 'node:process'
import { RelayError } from '../../../base/errors.js'
import { PROVIDER_NAMES, type ProviderName } from '../../../base/settings.js'
import type { Clock } from '../../../base/time.js'
import { describeConnectionError } from '../../../net/errors.js'
import { readText, type SendOnce } from '../../../net/client.js'
import { parseJson } from '../../../codehost/rest.js'
import { HOST_KINDS, openHost } from '../../../codehost/hosts.js'
import type { Probe } from '../../../codehost/host.js'
import type { CheckContext } from './context.js'
import { type CheckResult, fail, ok, skip } from './result.js'

/** The answer of a code host about itself. */
export interface Answer {
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

interface AskOptions {
  readonly sendOnce: SendOnce
  readonly clock: Clock
  readonly signal: AbortSignal
}

/** OAuth and TLS tolerate a minute; with more, states and tokens expire too early or too late. */
const MAX_CLOCK_DIFFERENCE_MS = 60_000

/** Asks the code host's API for its software; if it is not of the expected kind, as each other kind. Sends no token. */
export async function askCodeHost(provider: ProviderName, url: string, options: AskOptions): Promise<Answer> {
  const answer = await ask(openHost({ name: provider, url }).probe, options)
  if (answer.software !== undefined) return answer
  const asked = new Set([answer.address])
  for (const other of PROVIDER_NAMES) {
    const { probe } = openHost({ name: other, url })
    if (asked.has(probe.address)) continue
    asked.add(probe.address)
    const { software } = await ask(probe, options).catch(() => ({ software: undefined }))
    if (software !== undefined) return { ...answer, other: { provider: other, software } }
  }
  return answer
}

async function ask({ address, recognise }: Probe, { sendOnce, clock, signal }: AskOptions): Promise<Answer> {
  const headers = { accept: 'application/json', 'user-agent': 'webhook-relay' }
  const before = clock()
  const response = await sendOnce(address, { method: 'GET', headers, signal })
  const after = clock()
  const json = parseJson(await readText(response))
  const { status, header } = response
  const date = Date.parse(header('date') ?? '')
  return {
    theirs: Number.isNaN(date) ? undefined : date,
    ours: (before + after) / 2,
    software: recognise({ status, header, json }),
    address,
    status,
  }
}

/** Whether the code host answers at its address and is of the configured kind. */
export async function checkCodeHost(
  { options: { providerUrl, provider } }: CheckContext,
  answer: Promise<Answer> | undefined,
): Promise<CheckResult> {
  if (!answer) {
    return provider === 'sandbox'
      ? skip('the sandbox is not running')
      : fail(`the address of your ${provider} is not set`, 'set RELAY_PROVIDER_URL=https://…')
  }
  try {
    return judge(await answer, provider, new URL(String(providerUrl)))
  } catch (error) {
    if (error instanceof RelayError) throw error
    return fail(
      `${providerUrl} cannot be reached (${describeConnectionError(error)})`,
      `run curl -I ${providerUrl}, and set HTTPS_PROXY if there is a proxy`,
    )
  }
}

function judge(answer: Answer, provider: ProviderName, { href, pathname }: URL): CheckResult {
  const { software, other, address, status } = answer
  const url = href.replace(/\/+$/, '')
  if (other)
    return fail(`${url} is ${other.software}, not ${provider}`, `set RELAY_PROVIDER=${other.provider}`)
  if (software === undefined)
    return fail(
      `${url} answers, but not as ${provider}: ${address} gave ${status}`,
      'check RELAY_PROVIDER_URL and its path',
    )
  if (!HOST_KINDS[provider].pathAllowed && pathname !== '/')
    return fail(
      `${url} has a path, but ${software} has none`,
      `set RELAY_PROVIDER_URL=${new URL(href).origin}`,
    )
  return ok(`${url} is ${provider === 'sandbox' ? 'the sandbox' : software}`)
}

/** Whether this machine's clock agrees with that of the code host. */
export async function checkClock(answer: Promise<Answer> | undefined): Promise<CheckResult> {
  const { theirs, ours } = (await answer?.catch(() => undefined)) ?? {}
  if (theirs === undefined || ours === undefined) return skip('the code host did not send its time')
  const seconds = Math.round((ours - theirs) / 1000)
  if (Math.abs(ours - theirs) <= MAX_CLOCK_DIFFERENCE_MS)
    return ok(`within ${Math.max(1, Math.abs(seconds))} s of the code host's`)
  const text = `${Math.abs(seconds)} s ${seconds > 0 ? 'ahead of' : 'behind'} the code host's`
  return fail(text, setClock())
}

/** The command that sets this machine's clock. */
export function setClock(): string {
  return SET_CLOCK[platform] ?? "set this machine's clock"
}

const SET_CLOCK: { readonly [name in NodeJS.Platform]?: string } = {
  linux: 'sudo timedatectl set-ntp true',
  darwin: 'sudo sntp -sS time.apple.com',
  win32: 'w32tm /resync',
}
