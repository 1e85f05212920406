import { platform } from 'node:process'
import type { Clock } from '../../base/time.js'
import type { Facts } from './facts.js'
import { none, ok, wrong, type Verdict } from './finding.js'

/** What a code host said of itself: when it answered, by its clock and by ours, in milliseconds. */
export interface Answer {
  readonly theirs: number | undefined
  readonly ours: number
}

/** OAuth and TLS bear a minute; more makes states and tokens end too early or too late. In milliseconds. */
const MOST_APART = 60_000

/** Asks the code host for its front page's headers. Nothing is sent along. */
export async function askCodeHost(
  url: string,
  { fetch, clock, signal }: { fetch: typeof globalThis.fetch; clock: Clock; signal: AbortSignal },
): Promise<Answer> {
  const before = clock()
  const response = await fetch(url, { method: 'HEAD', redirect: 'manual', signal })
  const after = clock()
  await response.body?.cancel()
  const date = Date.parse(response.headers.get('date') ?? '')
  return { theirs: Number.isNaN(date) ? undefined : date, ours: (before + after) / 2 }
}

/** Whether the code host is reached. */
export async function checkCodeHost(
  { providerUrl, provider }: Facts,
  answer: Promise<Answer> | undefined,
): Promise<Verdict> {
  if (!answer) {
    return provider === 'sandbox'
      ? none('the sandbox does not run')
      : wrong(`the address of your ${provider} is not set`, 'set RELAY_PROVIDER_URL=https://…')
  }
  try {
    await answer
    return ok(`${providerUrl} answers`)
  } catch (error) {
    return wrong(
      `${providerUrl} does not answer (${reason(error)})`,
      `curl -I ${providerUrl}, and HTTPS_PROXY if there is a proxy`,
    )
  }
}

/** Whether this machine's clock agrees with the code host's. */
export async function checkClock(answer: Promise<Answer> | undefined): Promise<Verdict> {
  const { theirs, ours } = (await answer?.catch(() => undefined)) ?? {}
  if (theirs === undefined || ours === undefined) return none('the code host did not say the time')
  const apart = Math.round((ours - theirs) / 1000)
  if (Math.abs(ours - theirs) <= MOST_APART)
    return ok(`within ${Math.max(1, Math.abs(apart))} s of the code host's`)
  const text = `${Math.abs(apart)} s ${apart > 0 ? 'ahead of' : 'behind'} the code host's`
  return wrong(text, SET_CLOCK[platform] ?? "set this machine's clock")
}

const SET_CLOCK: { readonly [name in NodeJS.Platform]?: string } = {
  linux: 'sudo timedatectl set-ntp true',
  darwin: 'sudo sntp -sS time.apple.com',
  win32: 'w32tm /resync',
}

function reason(error: unknown): string {
  const { name = '', cause } = error instanceof Error ? error : {}
  if (name === 'TimeoutError') return 'too slow'
  return cause instanceof Error && 'code' in cause ? String(cause.code) : 'no connection'
}
