import { BASE } from '../../address.js'
import { accessStore, keyStore } from './session.js'

/** A request that the instance answered with an error, or that did not reach it (`status` 0). */
export class RequestError extends Error {
  readonly status: number

  constructor(status: number, message: string) {
    super(message)
    this.status = status
  }
}

/** Reads `api/…`. @throws RequestError; the signal's reason when it aborts. */
export async function getJson<T>(path: string, signal?: AbortSignal): Promise<T> {
  const response = await send(path, { signal: signal ?? null })
  const value: T = await response.json()
  return value
}

/** Reads `api/…` as text. @throws RequestError */
export async function getText(path: string): Promise<string> {
  return (await send(path, {})).text()
}

/** Changes something. @throws RequestError, also where this tab can only read */
export async function postJson<T>(path: string, body: unknown): Promise<T> {
  const headers = { 'Content-Type': 'application/json', 'X-Relay-Key': keyStore.get() ?? '' }
  const response = await send(path, { method: 'POST', headers, body: JSON.stringify(body) })
  const value: T = await response.json()
  return value
}

async function send(path: string, init: RequestInit): Promise<Response> {
  const response = await fetch(`${BASE}/api/${path}`, init).catch((error: unknown) => {
    if (init.signal?.aborted) throw error
    throw new RequestError(0, 'relay does not answer. Is relay serve still running?')
  })
  if (response.ok) return response
  if (response.status === 401) accessStore.set('lost')
  throw new RequestError(response.status, await messageOf(response))
}

async function messageOf(response: Response): Promise<string> {
  try {
    const { error }: { error?: unknown } = await response.json()
    if (typeof error === 'string') return error
  } catch {
    // Not relay's own answer.
  }
  return `relay answered ${response.status}`
}

/** What an error says to a person. */
export function messageFrom(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
