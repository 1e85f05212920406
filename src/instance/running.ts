import { randomBytes } from 'node:crypto'
import { existsSync, readFileSync, realpathSync, rmdirSync, rmSync } from 'node:fs'
import path from 'node:path'
import { parseUrl } from '../base/address.js'
import { type Cancellable, deadline, isTimeout } from '../base/wait.js'
import { errorCode, RelayError } from '../base/errors.js'
import { ownPathExists, readOwnFile, readOwnFolder, writeOwnFile } from '../base/own-files.js'
import type { Settings } from '../base/settings.js'
import { databaseExists, databaseFiles } from '../store/open.js'
import type { ChangeStream } from './client.js'
import { LOCK_FILE, lockProfile, SAVED_FILE } from './profile.js'
import {
  type InstanceRecord,
  type InstanceStatus,
  PROTOCOL,
  prove,
  type RunningInstance,
  sameProof,
} from './protocol.js'

const RUNNING = '.running'

/**
 * Returns the folder with a file for each running instance. Its name starts with a dot, so no profile can have it.
 * @throws RelayError `settings` if another user can write to the data folder: an instance of that user would get this
 * user's secrets
 */
function folderOf(home: string): string {
  ownPathExists(home)
  return path.join(home, RUNNING)
}

/**
 * Checks before a start that an instance can be registered in the data folder. @throws RelayError `settings` as {@link
 * publishInstance}
 */
export function checkRegistry(home: string): void {
  readEntries(home)
}

/**
 * Registers a running instance in the data folder, until it is disposed of. Removes the records of processes that are
 * gone.
 * @throws RelayError `settings` if the folder cannot be used, `storage` if the file cannot be written
 */
export function publishInstance(home: string, record: InstanceRecord): Disposable {
  const file = path.join(folderOf(home), `${record.profile}-${record.pid}.json`)
  writeOwnFile(file, `${JSON.stringify(record)}\n`)
  for (const { file, record } of readEntries(home)) if (!isAlive(record)) rmSync(file, { force: true })
  return { [Symbol.dispose]: () => rmSync(file, { force: true }) }
}

/** Instances of a data folder. */
export interface Instances {
  /**
   * Instances that have proved themselves, the newest first. If several relays share one store, only the newest is
   * listed.
   */
  readonly running: readonly RunningInstance[]
  /** Instances that run and cannot be called, one for each profile that has no other. */
  readonly unreachable: readonly Unreachable[]
}

/** An instance whose process exists but cannot be called. */
export interface Unreachable {
  readonly record: InstanceRecord
  /**
   * `silent`: it does not respond, for example because it is stopped. `version`: its {@link PROTOCOL} is not this
   * program's.
   */
  readonly why: 'silent' | 'version'
}

/** Explains why such an instance cannot be called, and how to fix it. */
export function explainUnreachable({ record: { pid }, why }: Unreachable) {
  return why === 'silent'
    ? {
        text: `process ${pid} serves this profile but does not answer`,
        fix: `kill -CONT ${pid} continues it if it is stopped; otherwise end it with kill -KILL ${pid}, and start it again`,
      }
    : {
        text: `process ${pid} serves this profile with another version of relay`,
        fix: `restart it: end it with kill ${pid}, and start it again`,
      }
}

/** Error of a command that needs such an instance. */
export function unreachableError(unreachable: Unreachable): RelayError {
  const { text, fix } = explainUnreachable(unreachable)
  return new RelayError('unavailable', `${text}: ${fix}`)
}

/**
 * Finds the instances that run on this data folder, or only those of `profile`. Writes nothing. Takes {@link
 * PROOF_LIMIT_MS} if one does not respond.
 * @throws RelayError `settings` if another user could have written a record; the signal's reason
 */
export async function findInstances(
  home: string,
  { profile, signal }: Cancellable & { readonly profile?: string | undefined },
): Promise<Instances> {
  const found = await Promise.all(aliveRecords(home, profile).map((record) => lookAt(record, signal)))
  const proven = found
    .flatMap((each) => (each && 'startedAt' in each ? [each] : []))
    .toSorted((one, other) => other.startedAt.localeCompare(one.startedAt))
  const running = proven.filter(
    (each, i) =>
      each.store === 'memory' ||
      !proven.slice(0, i).some((newer) => newer.store !== 'memory' && newer.profile === each.profile),
  )
  const others = found.flatMap((each) => (each && 'why' in each ? [each] : []))
  const unreachable = others.filter(
    ({ record }, i) =>
      ![...running, ...others.slice(0, i).map((other) => other.record)].some(
        ({ profile }) => profile === record.profile,
      ),
  )
  return { running, unreachable }
}

/**
 * Opens the stream of changes of the instance that runs for a profile. Undefined if none runs; an {@link Unreachable}
 * if it cannot be called.
 * @throws RelayError as {@link findInstances}; the signal's reason
 */
export async function followInstance(
  home: string,
  { profile, signal }: Cancellable & { readonly profile: string },
): Promise<(ChangeStream & { readonly record: InstanceRecord }) | Unreachable | undefined> {
  let silent: Unreachable | undefined
  for (const record of aliveRecords(home, profile)) {
    if (record.v !== PROTOCOL) continue
    const { openChanges } = await import('./client.js')
    try {
      return Object.assign(await openChanges(record, { limit: proofLimit(record.pid), signal }), { record })
    } catch (error) {
      signal?.throwIfAborted()
      if (isTimeout(error)) silent ??= { record, why: 'silent' }
    }
  }
  return silent
}

/**
 * Makes this process the owner of a profile's data for as long as it lives. Undefined for a store without an owner: in
 * memory, or shared. `what` is as in {@link lockProfile}.
 * @throws RelayError as {@link lockProfile}
 */
export async function acquireProfile(
  { store, folder }: Pick<Settings, 'store' | 'folder'>,
  what: 'profile' | 'folder' = 'profile',
): Promise<AcquiredProfile | undefined> {
  if (store !== 'file' && store !== 'keychain') return undefined
  const discard = remover(folder)
  const [home, profile] = [path.dirname(folder), path.basename(folder)]
  try {
    const lock = await lockProfile(
      folder,
      () => {
        const [owner] = aliveRecords(home, profile)
        if (owner) return `process ${owner.pid} at ${owner.url}`
        if (acquired.has(realpathSync(folder))) return 'another relay of this program'
        // A program that embeds a relay leaves no record.
        return what === 'folder' ? 'another process' : 'a process that is starting or ending'
      },
      what,
    )
    const place = realpathSync(folder)
    acquired.add(place)
    const release = (): void => {
      acquired.delete(place)
      lock[Symbol.dispose]()
    }
    return { discard, [Symbol.dispose]: release }
  } catch (error) {
    if (!(error instanceof RelayError) || error.kind !== 'unavailable') {
      // With any other error, this process may have made the files itself.
      await discard()
      throw error
    }
    const [unreachable] = (await findInstances(home, { profile })).unreachable
    if (!unreachable) throw error
    const text = `${error.message}: ${unreachableError(unreachable).message}`
    throw new RelayError('unavailable', text, { cause: error })
  }
}

/** Folders that this process owns, without links. Other processes cannot see this if the relay is embedded. */
const acquired = new Set<string>()

/** A profile that this process owns. */
export interface AcquiredProfile extends Disposable {
  /** Removes the files and folders that were not there before, after a failed start whose data is closed. */
  discard(): Promise<void>
}

/** Runs a removal and ignores its failure: a folder may hold files of another program. */
function attempt(remove: () => void): void {
  try {
    remove()
  } catch {
    // The failed start itself reports what is wrong.
  }
}

/** Notes the missing files of a profile, and returns a function that removes just those. */
function remover(folder: string): () => Promise<void> {
  const names = [LOCK_FILE, SAVED_FILE].map((name) => path.join(folder, name))
  const newFiles = names.filter((file) => !existsSync(file))
  const hadData = databaseExists(folder)
  const newFolders = [path.join(path.dirname(folder), RUNNING), folder].filter((each) => !existsSync(each))
  for (let above = path.dirname(folder); !existsSync(above); above = path.dirname(above))
    newFolders.push(above)
  return async () => {
    const [file = '', ...others] = databaseFiles(folder)
    // The last process that closes the data removes these files. If they exist, another process has the data open, or
    // this one could not open it.
    if (!hadData && others.some((each) => existsSync(each))) {
      const { isLocked } = await import('../store/sqlite-error.js')
      if (isLocked(file)) return
    }
    for (const each of hadData ? newFiles : [...newFiles, file, ...others])
      attempt(() => rmSync(each, { force: true }))
    for (const each of newFolders) attempt(() => rmdirSync(each))
  }
}

/** Returns the ports at which relays of other profiles listen, according to the data folder. */
export function portsOfOthers(home: string, profile: string): ReadonlySet<number> {
  const others = aliveRecords(home, undefined).filter((record) => record.profile !== profile)
  return new Set(others.map(({ url }) => Number(new URL(url).port)))
}

/** Returns the records of processes that exist, including those that do not respond. */
function aliveRecords(home: string, profile: string | undefined): readonly InstanceRecord[] {
  return readEntries(home).flatMap(({ record }) =>
    record && isAlive(record) && (profile === undefined || record.profile === profile) ? [record] : [],
  )
}

interface Entry {
  readonly file: string
  /** Undefined for a file that is no record of any version. */
  readonly record: InstanceRecord | undefined
}

function readEntries(home: string): readonly Entry[] {
  const folder = folderOf(home)
  const names = readOwnFolder(folder).filter((name) => name.endsWith('.json'))
  const files = names.map((name) => path.join(folder, name))
  return files.map((file) => ({ file, record: readRecord(file) }))
}

/** @throws RelayError `settings` if another user could have written the file */
function readRecord(file: string): InstanceRecord | undefined {
  const text = readOwnFile(file)
  try {
    const record: InstanceRecord = JSON.parse(text ?? '')
    const { v, pid, url, profile, key } = record
    const isRecord = [url, profile, key].every((each) => typeof each === 'string') && Number.isInteger(v)
    // Signal 0 to a number that is not positive asks about a group of processes.
    return isRecord && Number.isInteger(pid) && pid > 0 && parseUrl(url) ? record : undefined
  } catch {
    return undefined
  }
}

/** True if a process with the id exists. It may not be the one that wrote the record. */
function isAlive(record: InstanceRecord | undefined): boolean {
  try {
    return record !== undefined && process.kill(record.pid, 0)
  } catch (error) {
    // Any error but "no such process" means that it exists and belongs to another user.
    return errorCode(error) !== 'ESRCH'
  }
}

/**
 * Time limit for a proof, in milliseconds. An instance of this machine answers in a few, but not while another program has
 * all processors, and the error about one that does not answer says how to end it.
 */
const PROOF_LIMIT_MS = 5000
/** The same for a process that a signal has stopped: time to find that nothing listens at its address. */
const STOPPED_LIMIT_MS = 250

/** Time limit for a proof by this process, in milliseconds. */
function proofLimit(pid: number): number {
  return isStopped(pid) ? STOPPED_LIMIT_MS : PROOF_LIMIT_MS
}

/** True if a signal has stopped a process (`man 5 proc_pid_stat`: T, or t by a debugger). False where that is unknown. */
function isStopped(pid: number): boolean {
  try {
    // Its name, in brackets, may contain any character.
    return /\) [Tt] [^)]*$/.test(readFileSync(`/proc/${pid}/stat`, 'latin1'))
  } catch {
    return false
  }
}

/**
 * Asks the instance of a record for its status. Undefined if it is gone: nothing listens at its address, or another
 * program without its key.
 * @throws the signal's reason when the caller aborts
 */
async function lookAt(
  record: InstanceRecord,
  signal: AbortSignal | undefined,
): Promise<RunningInstance | Unreachable | undefined> {
  const limited = { limit: proofLimit(record.pid), signal }
  try {
    if (record.v !== PROTOCOL)
      return (await isProven(record, limited)) ? { record, why: 'version' } : undefined
    const { askInstance } = await import('./client.js')
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the instance has proved this response, and uses the same protocol
    const status = (await askInstance(record, 'status', {}, limited)) as InstanceStatus
    return { ...status, ...record }
  } catch (error) {
    signal?.throwIfAborted()
    return isTimeout(error) ? { record, why: 'silent' } : undefined
  }
}

/**
 * True if the instance that wrote the record serves its address, whatever its version. The request carries only a
 * random challenge, so another program at this address learns nothing.
 */
async function isProven(
  record: InstanceRecord,
  { limit, signal }: Cancellable & { readonly limit: number },
): Promise<boolean> {
  const challenge = randomBytes(32).toString('base64url')
  const { createLoopbackClient } = await import('../net/loopback.js')
  using client = createLoopbackClient()
  const request = { method: 'GET', headers: { 'X-Relay-Challenge': challenge } } as const
  const limited = deadline(limit, signal)
  const { header } = await client
    .open(new URL('/health', record.url), request, { signal: limited })
    .catch((error: unknown) => {
      throw limited.aborted ? limited.reason : error
    })
  return sameProof(prove(record, challenge), header('X-Relay-Instance'))
}
