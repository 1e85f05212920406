import { computed, signal } from '@preact/signals'
import { useLayoutEffect, useState } from 'preact/hooks'
import type { DeliveryPage, LiveEvent, Opened } from '../api.js'
import { BASE } from './address.js'
import { messageFrom } from './model.js'

// The instance: requests, the key for changes, the stream of events.

/** `away`: relay does not answer. `closed`: it does not know this browser, which needs a code. */
export const connection = signal<'connecting' | 'live' | 'away' | 'closed'>('connecting')

const KEY_ITEM = 'relay-inspect-key'

/** The key that every change needs; null while this tab can only read. */
const key = signal<string | null>(sessionStorage.getItem(KEY_ITEM))

/** Whether the instance cannot be asked for anything. */
export const isAway = computed(() => connection.value === 'away' || connection.value === 'closed')

/** Why nothing can be read, in words for a control that would need it. */
export const whyNotRead = computed(() => (isAway.value ? 'relay is stopped' : null))

/** Why nothing can be changed, in words for a control that would change something; null while it can. */
export const whyNot = computed(
  () =>
    whyNotRead.value ??
    (key.value === null
      ? 'Without a key for changes. Run relay inspect in a terminal to open a tab that has one.'
      : null),
)

export const canOnlyRead = computed(() => key.value === null)

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
  const value: T = await (await send(path, { signal: signal ?? null })).json()
  return value
}

export async function getText(path: string): Promise<string> {
  return (await send(path, {})).text()
}

export async function getBytes(path: string): Promise<ArrayBuffer> {
  return (await send(path, {})).arrayBuffer()
}

/** Changes something. The key goes with changes only: another program may listen at this address once relay has ended. */
export async function postJson<T>(path: string, body: unknown): Promise<T> {
  const headers = { 'Content-Type': 'application/json', 'X-Relay-Key': key.value ?? '' }
  const value: T = await (await send(path, { method: 'POST', headers, body: JSON.stringify(body) })).json()
  return value
}

async function send(path: string, init: RequestInit): Promise<Response> {
  const response = await fetch(`${BASE}/api/${path}`, init).catch((error: unknown) => {
    if (init.signal?.aborted) throw error
    throw new RequestError(0, 'relay does not answer. Is relay serve still running?')
  })
  if (response.ok) return response
  const answer: unknown = await response.json().catch(() => null)
  const isOurs = typeof answer === 'object' && answer !== null && 'error' in answer
  const text = isOurs ? String(answer.error) : `relay answered ${response.status}`
  if (response.status === 401 && path !== 'open') disconnect('closed')
  throw new RequestError(response.status, text)
}

/** Exchanges a one-time code for a session. @throws RequestError, with status 401 for a wrong code. */
export async function open(code: string): Promise<void> {
  setKey((await postJson<Opened>('open', { code })).key)
}

function setKey(value: string): void {
  sessionStorage.setItem(KEY_ITEM, value)
  key.value = value
}

/** Asks the other tabs of this address for the key, and answers those that ask: a new tab has none. */
export function shareKey(): void {
  const channel = new BroadcastChannel('relay-inspect')
  // A channel reaches this origin only.
  // oxlint-disable-next-line unicorn/require-post-message-target-origin
  const post = (text: string): void => channel.postMessage(text)
  channel.addEventListener('message', ({ data }: MessageEvent<unknown>) => {
    if (typeof data !== 'string') return
    if (data === '?' && key.value !== null) post(key.value)
    else if (data !== '?' && key.value === null) setKey(data)
  })
  if (key.value === null) post('?')
}

type Listener = (event: LiveEvent) => void

const listeners = new Set<Listener>()

/** Calls `listener` with each event, and with `stale` whenever the stream begins, until the function that it returns is called. */
export function onLive(listener: Listener): () => void {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

function emit(event: LiveEvent): void {
  for (const listener of listeners) listener(event)
}

/** Between two tries to reach an instance that has ended: soon enough for a restart, and hardly any work. */
const RETRY_MS = 1000

let source: EventSource | undefined
let retry: ReturnType<typeof setTimeout> | undefined

/**
 * Follows the instance while the page can be seen. Browsers open six connections to a host at most, so that hidden tabs with a
 * stream each would keep another tab from loading.
 */
export function followLive(): void {
  document.addEventListener('visibilitychange', () => {
    if (document.hidden && connection.value !== 'closed') disconnect('connecting')
    else connect()
  })
  connect()
}

function connect(): void {
  if (source || document.hidden || connection.value === 'closed') return
  const opened = new EventSource(`${BASE}/api/live`)
  source = opened
  opened.addEventListener('open', () => {
    connection.value = 'live'
    emit({ type: 'stale' })
  })
  opened.addEventListener('message', ({ data }: MessageEvent<string>) => {
    const event: LiveEvent = JSON.parse(data)
    emit(event)
  })
  // EventSource gives up for good on an error status, and never says which one: a request finds out.
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

/** Something that is read from the instance. */
export interface Loaded<T> {
  readonly value: T | null
  /** Why it could not be read; `value` is then what was read before, if anything. */
  readonly problem: { readonly isMissing: boolean; readonly message: string } | null
}

/** What is shown may change several times a second; it is read again at most this often. */
const REFRESH_MS = 400

/**
 * Reads `api/{path}`, and again when an event says that it has changed, or the stream begins. The value of another path is never
 * returned.
 */
export function useApi<T>(path: string, isStale: (event: LiveEvent) => boolean): Loaded<T> {
  const [loaded, setLoaded] = useState<Loaded<T> & { readonly path: string }>({
    path,
    value: null,
    problem: null,
  })
  // Not after the next frame, as an effect would be.
  useLayoutEffect(() => {
    const ended = new AbortController()
    let timer: ReturnType<typeof setTimeout> | undefined
    const read = async (): Promise<void> => {
      timer = undefined
      try {
        const value = await getJson<T>(path, ended.signal)
        if (!ended.signal.aborted) setLoaded({ path, value, problem: null })
      } catch (error) {
        if (ended.signal.aborted) return
        const isMissing = error instanceof RequestError && error.status === 404
        const problem = { isMissing, message: messageFrom(error) }
        setLoaded((before) => ({ path, value: before.path === path ? before.value : null, problem }))
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
  return loaded.path === path ? loaded : { value: null, problem: null }
}

/** Bodies read last, so that comparing and editing do not read them again. */
const bodies = new Map<number, Promise<ArrayBuffer>>()
const MAX_BODIES = 2

/** The exact bytes of a delivery, which never change. @throws RequestError */
export function bodyOf(n: number): Promise<ArrayBuffer> {
  const known = bodies.get(n)
  if (known) return known
  const body = getBytes(`deliveries/${n}/body`)
  bodies.set(n, body)
  body.catch(() => bodies.delete(n))
  for (const oldest of bodies.keys()) if (bodies.size > MAX_BODIES) bodies.delete(oldest)
  return body
}
