import { expect, vi } from 'vitest'
import type { TestSandbox } from 'webhook-relay/testing'
import { CLIENT, REPO } from './place.js'
import { BUILT } from './run.js'
import { LIMIT_MS } from './limit.js'

/** Settings of a webhook, as a person enters them. */
export interface HookSettings {
  readonly url: string
  readonly secret: string
  /** Default: every event. */
  readonly events?: readonly string[]
}

export type Repository = Awaited<ReturnType<typeof repository>>

/** A repository of the sandbox, as its owner uses it without relay. */
export async function repository(sandbox: TestSandbox, name = REPO) {
  const authorization = `Bearer ${await sandbox.token('repo')}`
  const call = async (method: string, path: string, body?: object): Promise<string> => {
    const init = { method, headers: { authorization }, ...(body && { body: JSON.stringify(body) }) }
    const answer = await fetch(`${sandbox.url}/api/v3/repos/${name}${path}`, init)
    const text = await answer.text()
    if (!answer.ok) throw new Error(`${method} ${path} was answered ${answer.status}: ${text}`)
    return text
  }
  /** Its webhooks, oldest first. */
  const hooks = async () => {
    const all: { id: number; config: { url: string }; active: boolean; events: readonly string[] }[] =
      JSON.parse(await call('GET', '/hooks?per_page=100'))
    return all.map(({ id, config: { url }, active, events }) => ({ id, url, active, events }))
  }
  return {
    hooks,
    async addHook(settings: HookSettings): Promise<void> {
      await call('POST', '/hooks', { name: 'web', ...hookOf(settings) })
    },
    async changeHook(id: number, settings: HookSettings): Promise<void> {
      await call('PATCH', `/hooks/${id}`, hookOf(settings))
    },
    async removeHook(id: number): Promise<void> {
      await call('DELETE', `/hooks/${id}`)
    },
    /** How many entries of a webhook's log are of deliveries that were sent again. */
    async redelivered(id: number): Promise<number> {
      const log: { redelivery: boolean }[] = JSON.parse(
        await call('GET', `/hooks/${id}/deliveries?per_page=100`),
      )
      return log.filter(({ redelivery }) => redelivery).length
    },
    /** Has its first webhook send so many pings, and waits until all have been answered. */
    async ping(count: number): Promise<void> {
      const [hook] = await hooks()
      await Promise.all(Array.from({ length: count }, () => call('POST', `/hooks/${hook?.id}/pings`)))
      await sandbox.idle()
    },
    /** Writes comments on issue #1, each after the delivery of the one before has been answered. */
    async comment(...texts: readonly string[]): Promise<void> {
      for (const body of texts) {
        await call('POST', '/issues/1/comments', { body })
        await sandbox.idle()
      }
    },
  }
}

function hookOf({ url, secret, events = ['*'] }: HookSettings): object {
  return { active: true, events, config: { url, secret, content_type: 'json' } }
}

/** A fault of the sandbox: the request is answered as usual. */
export const NOW = { kind: 'slow', ms: 0 } as const
/** The request has no effect during the test. */
export const SLOW = { kind: 'slow', ms: 60_000 } as const
/** The request has its effect, and its answer comes when nothing waits for it any more. What it makes the sandbox send comes after. */
export const LATE = { kind: 'late', ms: BUILT ? 2000 : 1000 } as const
/** The request has its effect, and no answer during the test. */
export const NEVER_ANSWERED = { kind: 'late', ms: 60_000 } as const

/** The request is refused by GitHub's limit for what is asked too fast; it may be made again after so many seconds. */
export function limited(seconds: number) {
  const body = JSON.stringify({ message: 'You have exceeded a secondary rate limit.' })
  return { kind: 'answer', status: 403, headers: { 'Retry-After': String(seconds) }, body } as const
}

/** Waits until the sandbox has had such a request, `GET /api/v3/user`, after the first `since`. */
export async function asked(
  sandbox: Pick<TestSandbox, 'requests'>,
  wanted: RegExp,
  since = 0,
): Promise<void> {
  await vi.waitFor(
    () => {
      const requests = sandbox.requests.slice(since).map(({ method, path }) => `${method} ${path}`)
      expect(requests).toContainEqual(expect.stringMatching(wanted))
    },
    { timeout: LIMIT_MS, interval: 10 },
  )
}

/** Has the sandbox of a place ask the next sign-in by device to look each second. By itself it asks for 5 s, as GitHub. */
export async function hurryDevice({ url, faults }: TestSandbox): Promise<void> {
  const answer = await fetch(`${url}/login/device/code`, {
    method: 'POST',
    headers: { accept: 'application/json' },
    body: new URLSearchParams({ client_id: CLIENT.id, scope: 'repo' }),
  })
  const body = JSON.stringify({ ...Object(await answer.json()), interval: 1 })
  const headers = { 'Content-Type': 'application/json' }
  faults.next('device', { kind: 'answer', status: 200, headers, body })
}
