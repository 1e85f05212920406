import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import { existsSync, rmdirSync, rmSync } from 'node:fs'
import path from 'node:path'
import { deadline, type Cancellable } from '../base/wait.js'
import { errorCode, RelayError } from '../base/errors.js'
import { isOwn, readOwnFolder } from '../base/own-files.js'
import type { Secret } from '../base/secret.js'
import type { Settings, SourceSettings, StoreText } from '../base/settings.js'
import { databaseExists, databaseFiles } from '../store/open.js'
import { LOCK_FILE, lockProfile, readRecord, SAVED_FILE, writeRecord } from './profile.js'

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
  readonly clientId: string | null
  /** Largest webhook body that it accepts, in bytes. */
  readonly maxBody: number
  /** 32 random bytes, base64url. Never sent anywhere. */
  readonly key: string
  /** ISO 8601 in UTC. */
  readonly startedAt: string
}

type OwnFields = Omit<InstanceRecord, 'v' | 'clientId' | 'key' | 'startedAt'> & {
  readonly clientId?: string | undefined
}

/** The record of an instance that starts now, with a key of its own. */
export function createInstanceRecord(own: OwnFields, now: number): InstanceRecord {
  const key = randomBytes(32).toString('base64url')
  return { v: 1, ...own, clientId: own.clientId ?? null, key, startedAt: new Date(now).toISOString() }
}

/** A running instance as the commands of other terminals see it. */
export interface RunningInstance extends InstanceRecord {
  readonly profile: string
  readonly store: StoreText
  /** Whether it started its code host, the sandbox, itself. */
  readonly sandbox: boolean
  /** What alone names its code host, where that is a file of the folder that it was started in: no secret goes there. */
  readonly folderHost?: string | undefined
  /** {@link secretPrint} of its webhook secret. */
  readonly secretPrint: string
  /** The webhook secret, where the instance made one that no file holds: with a memory store. Null otherwise. */
  readonly madeSecret: string | null
  /** The repositories of `--hook`, as `owner/name`. */
  readonly hooks: readonly string[]
  /** Its sources besides the code host, without their secrets. */
  readonly sources?: readonly Pick<SourceSettings, 'name' | 'scheme' | 'ofFolder'>[]
  /** Its targets without their secrets, with the names that its routes give: they may come from its flags alone. */
  readonly targets: readonly { readonly id: string; readonly name?: string }[]
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

/** Hex digits of a fingerprint: enough to distinguish two secrets. */
const PRINT_DIGITS = 16

/**
 * A fingerprint of the webhook secret, to compare it with that of another terminal. Only who has the record's key can
 * compute it. Its text contains a space, so it is no answer to a challenge.
 */
export function secretPrint(record: InstanceRecord, secret: Secret): string {
  return prove(record, `webhook secret ${secret.reveal()}`).slice(0, PRINT_DIGITS)
}

const RUNNING = '.running'

/**
 * A folder of the data folder, with a file for each running instance. No profile can have its name, which starts with a dot.
 * @throws RelayError `settings` where another user can write to the data folder: an instance of that user would get this user's secrets
 */
function folderOf(home: string): string {
  isOwn(home)
  return path.join(home, RUNNING)
}

/** Makes sure, before anything is done, that an instance can be registered in the data folder. @throws RelayError `settings` as {@link publishInstance} */
export function checkRegistry(home: string): void {
  readEntries(home)
}

/**
 * Registers a running instance in the data folder, until it is disposed of. Removes the entries of processes that are gone.
 * @throws RelayError as {@link writeRecord}.
 */
export function publishInstance(home: string, running: RunningInstance): Disposable {
  const file = path.join(folderOf(home), `${running.profile}-${running.pid}.json`)
  writeRecord(file, running)
  for (const { file, entry } of readEntries(home)) if (!isAlive(entry)) rmSync(file, { force: true })
  return { [Symbol.dispose]: () => rmSync(file, { force: true }) }
}

/**
 * The instances that run on this data folder and have proved it, the newest first; with `profile`, only those of that profile.
 * Of several relays of one shared store, the newest. Writes nothing.
 * @throws RelayError `settings` where another user could have written what says so; the signal's reason
 */
export async function findRunning(
  home: string,
  { profile, signal }: Cancellable & { readonly profile?: string | undefined },
): Promise<readonly RunningInstance[]> {
  const alive = aliveEntries(home).filter((entry) => profile === undefined || entry.profile === profile)
  const proofs = await Promise.all(alive.map((entry) => isProven(entry, signal)))
  const proven = alive.filter((_, i) => proofs[i])
  return proven.filter(
    (entry, i) =>
      entry.store === 'memory' ||
      !proven.slice(0, i).some((newer) => newer.store !== 'memory' && newer.profile === entry.profile),
  )
}

/**
 * Makes this process the one that has a profile's data, for as long as it lives. Undefined for a store that has no such process: in memory,
 * or shared.
 * @throws RelayError as {@link lockProfile}
 */
export async function takeProfile({
  store,
  folder,
}: Pick<Settings, 'store' | 'folder'>): Promise<TakenProfile | undefined> {
  if (store !== 'file' && store !== 'keychain') return undefined
  const discard = remover(folder)
  try {
    const lock = await lockProfile(folder, () => {
      const owner = registered(path.dirname(folder), path.basename(folder))
      return owner ? `process ${owner.pid} at ${owner.url}` : 'a process that is starting or ending'
    })
    return { discard, [Symbol.dispose]: () => lock[Symbol.dispose]() }
  } catch (error) {
    // Else the other process has made it.
    if (!(error instanceof RelayError) || error.kind !== 'unavailable') await discard()
    throw error
  }
}

/** A profile that is this process's. */
export interface TakenProfile extends Disposable {
  /** For a start that failed, once its data is closed: removes the files and folders that were not there before. */
  discard(): Promise<void>
}

/** What another program has put there stays. */
function attempt(remove: () => void): void {
  try {
    remove()
  } catch {
    // The start itself says what is wrong.
  }
}

/** What is missing of a profile now, and what removes just that. */
function remover(folder: string): () => Promise<void> {
  const names = [LOCK_FILE, SAVED_FILE].map((name) => path.join(folder, name))
  const newFiles = names.filter((file) => !existsSync(file))
  const hadData = databaseExists(folder)
  const newFolders = [path.join(path.dirname(folder), RUNNING), folder].filter((each) => !existsSync(each))
  for (let above = path.dirname(folder); !existsSync(above); above = path.dirname(above))
    newFolders.push(above)
  return async () => {
    const [file = '', ...others] = databaseFiles(folder)
    // The last process that closes the data removes those: another one has it open, or this one could not open it.
    if (!hadData && others.some((each) => existsSync(each))) {
      const { isLocked } = await import('../store/sqlite-error.js')
      if (isLocked(file)) return
    }
    for (const each of hadData ? newFiles : [...newFiles, file, ...others])
      attempt(() => rmSync(each, { force: true }))
    for (const each of newFolders) attempt(() => rmdirSync(each))
  }
}

/** The process that holds a profile, as far as the data folder says: it need not answer. */
export function registered(home: string, profile: string): RunningInstance | undefined {
  return aliveEntries(home).find((entry) => entry.profile === profile)
}

/** The ports that relays of other profiles have, with their sandboxes, as far as the data folder says. */
export function portsOfOthers(home: string, profile: string): ReadonlySet<number> {
  const others = aliveEntries(home).filter((entry) => entry.profile !== profile)
  const urls = others.flatMap(({ url, sandbox, providerUrl }) => (sandbox ? [url, providerUrl] : [url]))
  return new Set(urls.map((url) => Number(new URL(url).port)))
}

/** The newest first. */
function aliveEntries(home: string): readonly RunningInstance[] {
  return readEntries(home)
    .flatMap(({ entry }) => (entry && isAlive(entry) ? [entry] : []))
    .toSorted((one, other) => other.startedAt.localeCompare(one.startedAt))
}

interface Entry {
  readonly file: string
  /** Undefined for a file that is not an entry. */
  readonly entry: RunningInstance | undefined
}

function readEntries(home: string): readonly Entry[] {
  const folder = folderOf(home)
  const names = readOwnFolder(folder).filter((name) => name.endsWith('.json'))
  const files = names.map((name) => path.join(folder, name))
  return files.map((file) => ({ file, entry: readRecord<RunningInstance>(file) }))
}

/** Whether a process with the id runs. It may not be the one that wrote the entry. */
function isAlive(entry: RunningInstance | undefined): boolean {
  try {
    return entry !== undefined && process.kill(entry.pid, 0)
  } catch (error) {
    // Any error but "no such process" means that it exists and belongs to another user.
    return errorCode(error) !== 'ESRCH'
  }
}

/** Time limit for a proof. The instance is on this machine. */
const PROOF_LIMIT_MS = 2000

/**
 * Whether the record's address is served by the instance that wrote the record. The request carries a random challenge
 * and nothing else, so another program at this address learns nothing.
 * @throws the signal's reason when the caller aborts.
 */
async function isProven(record: InstanceRecord, signal: AbortSignal | undefined): Promise<boolean> {
  const challenge = randomBytes(32).toString('base64url')
  // Loaded late: HTTP takes longer to load than all else that a command does while no relay runs.
  const { createLoopbackClient } = await import('../net/loopback.js')
  using client = createLoopbackClient()
  try {
    const request = { method: 'GET', headers: { 'X-Relay-Challenge': challenge } } as const
    const limited = { signal: deadline(PROOF_LIMIT_MS, signal) }
    const response = await client.send(new URL('/health', record.url), request, limited)
    return sameProof(prove(record, challenge), response.header('X-Relay-Instance'))
  } catch {
    signal?.throwIfAborted()
    return false
  }
}
