import { computed, signal } from '@preact/signals'
import { useLayoutEffect, useState } from 'preact/hooks'
import type { DeliveryPage, LiveEvent, Opened } from '../api.js'
import { BASE } from './address.js'
import { command } from './command.js'
import { messageFrom } from './model.js'

// Connection to the instance: requests, the key for changes, and the stream of events.

/**
 * State of the connection. `away`: relay does not respond. `closed`: it does not know this browser, which needs a code.
 */
export const connection = signal<'connecting' | 'live' | 'away' | 'closed'>('connecting')

const KEY_ITEM = 'relay-inspect-key'

/** Key for changes. Null while this tab can only read. */
const key = signal<string | null>(sessionStorage.getItem(KEY_ITEM))

export const canOnlyRead = computed(() => key.value === null)

/** Reason why nothing can be read, for the title of a disabled control. Null while reading works. */
export const whyNotRead = computed(() =>
  connection.value === 'away' || connection.value === 'closed' ? 'relay is stopped' : null,
)

/** Reason why nothing can be changed, for the title of a disabled control. Null while changes work. */
export const whyNot = computed(() => {
  const only = `Without a key for changes. Run ${command('inspect')} in a terminal to open a tab that has one.`
  return whyNotRead.value ?? (canOnlyRead.value ? only : null)
})

/** Error of a request that the instance refused, or that did not reach it (`status` 0). */
export class RequestError extends Error {
  readonly status: number

  constructor(status: number, message: string) {
    super(message)
    this.status = status
  }
}

/** Returns the address of `api/{path}`. */
export function apiAddress(path: string): string {
  return `${BASE}/api/${path}`
}

/** Requests `api/{path}`. @throws RequestError; the signal's reason when it aborts */
export async function request(path: string, init: RequestInit = {}): Promise<Response> {
  const response = await fetch(apiAddress(path), init).catch((error: unknown) => {
    if (init.signal?.aborted) throw error
    throw new RequestError(0, `relay does not answer. If it is stopped, start it with ${command('serve')}`)
  })
  if (response.ok) return response
  const answer: unknown = await response.json().catch(() => null)
  const isOurs = typeof answer === 'object' && answer !== null && 'error' in answer
  if (response.status === 401 && path !== 'open') disconnect('closed')
  throw new RequestError(response.status, isOurs ? String(answer.error) : `relay answered ${response.status}`)
}

/** Reads JSON from `api/{path}`. @throws as {@link request} */
export async function getJson<T>(path: string, signal?: AbortSignal): Promise<T> {
  const value: T = await (await request(path, { signal: signal ?? null })).json()
  return value
}

/** Posts a change. Only changes carry the key: another program may listen at this address once relay has stopped. */
export async function postJson<T>(path: string, body: unknown): Promise<T> {
  const headers = { 'Content-Type': 'application/json', 'X-Relay-Key': key.value ?? '' }
  const response = await request(path, { method: 'POST', headers, body: JSON.stringify(body) })
  const value: T = await response.json()
  return value
}

/** Exchanges a one-time code for a session. @throws RequestError, with status 401 for a wrong code */
export async function open(code: string): Promise<void> {
  setKey((await postJson<Opened>('open', { code })).key)
}

function setKey(value: string): void {
  sessionStorage.setItem(KEY_ITEM, value)
  key.value = value
}

/** Requests the key from other tabs of this address, since a new tab has none, and answers their requests. */
export function shareKey(): void {
  const channel = new BroadcastChannel('relay-inspect')
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a channel reaches this origin only
  const post = (text: string): void => channel.postMessage(text)
  channel.addEventListener('message', ({ data }: MessageEvent<unknown>) => {
    if (typeof data !== 'string') return
    if (data === '?' && key.value !== null) post(key.value)
    else if (data !== '?' && key.value === null) setKey(data)
  })
  if (key.value === null) post('?')
}

/**
 * Event of the instance. `stale` is also emitted whenever the stream begins, and `minute` every half minute, for values
 * that change with time.
 */
export type PageEvent = LiveEvent | { readonly type: 'minute' }

const listeners = new Set<(event: PageEvent) => void>()

/** Calls `listener` with each event until the returned function is called. */
export function onLive(listener: (event: PageEvent) => void): () => void {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

function emit(event: PageEvent): void {
  for (const listener of listeners) listener(event)
}

/**
 * Time between two attempts to reach a stopped instance: soon enough after a restart, and hardly any work.
 * Milliseconds.
 */
const RETRY_MS = 1000

let source: EventSource | undefined
let retry: ReturnType<typeof setTimeout> | undefined

/**
 * Follows the instance while the page is visible. Browsers open at most six connections to a host, so hidden tabs with
 * a stream each would keep another tab from loading.
 */
export function followLive(): void {
  document.addEventListener('visibilitychange', () => {
    if (document.hidden && connection.value !== 'closed') disconnect('connecting')
    else connect()
  })
  setInterval(() => emit({ type: 'minute' }), 30_000)
  connect()
}

function connect(): void {
  if (source || document.hidden || connection.value === 'closed') return
  const opened = new EventSource(apiAddress('live'))
  source = opened
  opened.addEventListener('open', () => {
    connection.value = 'live'
    emit({ type: 'stale' })
  })
  opened.addEventListener('message', ({ data }: MessageEvent<string>) => {
    const event: LiveEvent = JSON.parse(data)
    emit(event)
  })
  // EventSource stops for good on an error status and does not report it, so a request finds it out.
  opened.addEventListener('error', () => {
    if (source === opened) disconnect('connecting')
    void reconnect()
  })
}

function disconnect(state: 'connecting' | 'closed'): void {
  source?.close()
  source = undefined
  clearTimeout(retry)
  connection.value = state
}

async function reconnect(): Promise<void> {
  if (document.hidden) return
  try {
    await getJson<DeliveryPage>('deliveries?limit=1')
    connect()
  } catch {
    if (connection.value === 'closed') return
    connection.value = 'away'
    retry = setTimeout(() => void reconnect(), RETRY_MS)
  }
}

/** A value read from the instance. */
export interface ApiState<T> {
  readonly value: T | null
  /** Reason why it could not be read. `value` is then the last value, if any. */
  readonly problem: { readonly isMissing: boolean; readonly message: string } | null
}

/** Minimum time between two reads of a value that may change several times a second. Milliseconds. */
const REFRESH_MS = 400

/** Last JSON by path, to be shown again while relay is stopped. */
const known = new Map<string, string>()
const MAX_KNOWN = 20

/**
 * Reads `api/{path}`, and reads it again after a stale event or when the stream begins. Never returns the value of
 * another path.
 */
export function useApi<T>(path: string, isStale: (event: PageEvent) => boolean): ApiState<T> {
  const [loaded, setLoaded] = useState<ApiState<T> & { readonly path?: string }>(NOT_LOADED)
  // A layout effect, since an effect would run only after the next frame.
  useLayoutEffect(() => {
    const ended = new AbortController()
    let timer: ReturnType<typeof setTimeout> | undefined
    const read = async (): Promise<void> => {
      timer = undefined
      try {
        const value = await getJson<T>(path, ended.signal)
        known.delete(path)
        known.set(path, JSON.stringify(value))
        for (const oldest of known.keys()) if (known.size > MAX_KNOWN) known.delete(oldest)
        setLoaded({ path, value, problem: null })
      } catch (error) {
        if (ended.signal.aborted) return
        const isMissing = error instanceof RequestError && error.status === 404
        const problem = { isMissing, message: messageFrom(error) }
        if (isMissing) known.delete(path)
        const last: T | null = JSON.parse(known.get(path) ?? 'null')
        setLoaded((before) => ({ path, value: before.path === path ? before.value : last, problem }))
      }
    }
    const stop = onLive((event) => {
      if (event.type === 'stale' || isStale(event)) timer ??= setTimeout(() => void read(), REFRESH_MS)
    })
    void read()
    return () => {
      stop()
      clearTimeout(timer)
      ended.abort()
    }
  }, [path])
  return loaded.path === path ? loaded : NOT_LOADED
}

const NOT_LOADED = { value: null, problem: null }

/** Last bodies, so that comparing and editing do not read them again. */
const bodies = new Map<number, Promise<ArrayBuffer>>()
const MAX_BODIES = 2

/** Returns the exact bytes of a delivery, which never change. @throws RequestError */
export function bodyOf(n: number): Promise<ArrayBuffer> {
  const known = bodies.get(n)
  if (known) return known
  const body = request(`deliveries/${n}/body`).then((response) => response.arrayBuffer())
  bodies.set(n, body)
  const dropOldest = (): void => {
    for (const oldest of bodies.keys()) if (bodies.size > MAX_BODIES) bodies.delete(oldest)
  }
  body.then(dropOldest, () => bodies.delete(n))
  return body
}
