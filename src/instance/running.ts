import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import { readdirSync, readFileSync, rmSync } from 'node:fs'
import path from 'node:path'
import { deadline, type Cancellable } from '../base/wait.js'
import { errorCode } from '../base/errors.js'
import type { Secret } from '../base/secret.js'
import { isStoreText, type StoreText } from '../base/settings.js'
import type { SendRequest } from '../net/loopback.js'
import { isInstant, isPositive, isText, shape } from '../json/shape.js'
import { writeWhole } from './profile.js'

/** The running `serve` of a profile. `key` lets it prove at `url` that it wrote this record. */
export interface InstanceRecord {
  readonly v: 1
  readonly pid: number
  readonly url: string
  readonly provider: string
  readonly providerUrl: string
  /** Address for browsers, often the same as `url`. */
  readonly publicUrl: string
  /** Its OAuth client, also used to renew tokens. Null: none. */
  readonly clientId?: string | null | undefined
  /** Largest webhook body that it accepts, in bytes. */
  readonly maxBody?: number | null | undefined
  /** 32 random bytes, base64url. Never sent anywhere. */
  readonly key: string
  /** ISO 8601 in UTC. */
  readonly startedAt: string
}

/** What each field must be. */
const INSTANCE_FIELDS = {
  v: (value: unknown) => value === 1,
  pid: isPositive,
  url: isText,
  provider: isText,
  providerUrl: isText,
  publicUrl: isText,
  clientId: (value: unknown) => value === undefined || value === null || isText(value),
  maxBody: (value: unknown) => value === undefined || value === null || isPositive(value),
  key: isText,
  startedAt: isInstant,
}

export type OwnFields = Omit<InstanceRecord, 'v' | 'key' | 'startedAt'>

/** The record of an instance that starts now, with a key of its own. */
export function createInstanceRecord(own: OwnFields, now: number): InstanceRecord {
  const { clientId = null, maxBody = null, ...others } = own
  const key = randomBytes(32).toString('base64url')
  return { v: 1, ...others, clientId, maxBody, key, startedAt: new Date(now).toISOString() }
}

/** HMAC-SHA256 of a text under the record's key, in hex: the answer to a challenge, or the proof of a request. */
export function prove(record: InstanceRecord, text: string): string {
  return createHmac('sha256', Buffer.from(record.key, 'base64url')).update(text).digest('hex')
}

/**
 * Header with which another command proves that it reads the profile's data: {@link prove} of its request's body. A body is no
 * valid challenge for GET /health, so no answer to a challenge is such a proof.
 */
export const PROOF_HEADER = 'X-Relay-Proof'

/** Whether a proof is the one expected; undefined: none is. */
export function sameProof(expected: string | undefined, given = ''): boolean {
  if (expected === undefined) return false
  const [own, other] = [Buffer.from(expected), Buffer.from(given)]
  return own.length === other.length && timingSafeEqual(own, other)
}

/** Time limit for a proof. The instance is on this machine. */
const PROBE_TIMEOUT_MS = 2000

export interface ProbeOptions extends Cancellable {
  /** Sends the challenge, so that the proof comes on the connection that later requests use. Default: a new one. */
  readonly send?: SendRequest | undefined
}

/** Whether a process with this id runs. It may not be the one that wrote the record. */
export function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch (error) {
    // Any error but "no such process" means that it exists and belongs to another user.
    return errorCode(error) !== 'ESRCH'
  }
}

/**
 * Whether the record's address is served by the instance that wrote the record. The request carries a random challenge
 * and nothing else, so another program at this address learns nothing.
 * @throws the signal's reason when the caller aborts.
 */
export async function isProven(record: InstanceRecord, { signal, send }: ProbeOptions): Promise<boolean> {
  const challenge = randomBytes(32).toString('base64url')
  // Loaded late: HTTP takes longer to load than all else that a command does while no relay runs.
  const { createLoopbackClient } = await import('../net/loopback.js')
  using client = createLoopbackClient()
  try {
    const request = { method: 'GET', headers: { 'X-Relay-Challenge': challenge } } as const
    const limited = { signal: deadline(PROBE_TIMEOUT_MS, signal) }
    const response = await (send ?? client.send)(new URL('/health', record.url), request, limited)
    return sameProof(prove(record, challenge), response.header('X-Relay-Instance'))
  } catch {
    signal?.throwIfAborted()
    return false
  }
}

/** A running instance as the commands of other terminals see it. */
export interface RunningInstance extends InstanceRecord {
  readonly profile: string
  readonly store: StoreText
  /** Whether it started its code host, the sandbox, itself. */
  readonly sandbox: boolean
  /** {@link secretPrint} of its webhook secret. */
  readonly secretPrint: string
  /** The webhook secret, where the instance made one that no file holds: with a memory store. Null otherwise. */
  readonly madeSecret: string | null
  /** The repositories of `--hook`, as `owner/name`. */
  readonly hooks?: readonly string[] | undefined
  /** Its targets without their secrets, with the names that its routes give: they may come from its flags alone. */
  readonly targets?: readonly { readonly id: string; readonly name?: string }[] | undefined
}

const isTarget = (value: unknown): boolean => {
  const { id, name }: { id?: unknown; name?: unknown } = Object(value)
  return isText(id) && (name === undefined || isText(name))
}

const parseRunning = shape<RunningInstance>({
  ...INSTANCE_FIELDS,
  profile: isText,
  store: isStoreText,
  sandbox: (value) => typeof value === 'boolean',
  secretPrint: isText,
  madeSecret: (value) => value === null || isText(value),
  hooks: (value) => value === undefined || (Array.isArray(value) && value.every(isText)),
  targets: (value) => value === undefined || (Array.isArray(value) && value.every(isTarget)),
})

/** Folder with a file for each running instance. No profile can have its name, which starts with a dot. */
const FOLDER = '.running'

/** Hex digits of a fingerprint: enough to distinguish two secrets. */
const PRINT_DIGITS = 16

/**
 * A fingerprint of the webhook secret, to compare it with that of another terminal. Only who has the record's key can
 * compute it. Its text contains a space, so it is no answer to a challenge.
 */
export function secretPrint(record: InstanceRecord, secret: Secret): string {
  return prove(record, `webhook secret ${secret.reveal()}`).slice(0, PRINT_DIGITS)
}

/**
 * Registers a running instance in the data folder, until it is disposed of. Removes the entries of processes that are gone.
 * @throws RelayError as {@link writeWhole}.
 */
export function publishInstance(home: string, running: RunningInstance): Disposable {
  const folder = path.join(home, FOLDER)
  const file = path.join(folder, `${running.profile}-${running.pid}.json`)
  for (const { name, entry } of readEntries(folder))
    if (!entry || !isAlive(entry.pid)) rmSync(path.join(folder, name), { force: true })
  writeWhole(file, `${JSON.stringify(running)}\n`)
  return { [Symbol.dispose]: () => rmSync(file, { force: true }) }
}

/**
 * The instances that run on this data folder and have proved it, the newest first; with `profile`, only those of that profile.
 * Of several relays of one shared store, the newest. Writes nothing.
 */
export async function findRunning(
  home: string,
  { profile, ...options }: ProbeOptions & { readonly profile?: string | undefined },
): Promise<readonly RunningInstance[]> {
  const alive = readEntries(path.join(home, FOLDER))
    .flatMap(({ entry }) => (entry && isAlive(entry.pid) ? [entry] : []))
    .filter((entry) => profile === undefined || entry.profile === profile)
    .toSorted((one, other) => other.startedAt.localeCompare(one.startedAt))
  const proven = await Promise.all(alive.map((entry) => isProven(entry, options)))
  const shared = new Set<string>()
  return alive.filter((entry, i) => {
    if (!proven[i]) return false
    if (entry.store === 'memory') return true
    const isNewest = !shared.has(entry.profile)
    shared.add(entry.profile)
    return isNewest
  })
}

/** The process that holds a profile, as far as the data folder says: it need not answer. */
export function registered(home: string, profile: string): RunningInstance | undefined {
  return readEntries(path.join(home, FOLDER))
    .flatMap(({ entry }) => (entry?.profile === profile && isAlive(entry.pid) ? [entry] : []))
    .toSorted((one, other) => other.startedAt.localeCompare(one.startedAt))[0]
}

interface Entry {
  readonly name: string
  /** Undefined for a file that is not an entry. */
  readonly entry: RunningInstance | undefined
}

function readEntries(folder: string): readonly Entry[] {
  let names: string[]
  try {
    names = readdirSync(folder)
  } catch {
    return []
  }
  return names
    .filter((name) => name.endsWith('.json'))
    .map((name) => ({ name, entry: readEntry(path.join(folder, name)) }))
}

function readEntry(file: string): RunningInstance | undefined {
  try {
    return parseRunning(JSON.parse(readFileSync(file, 'utf8')))
  } catch {
    return undefined
  }
}
