import { readdirSync, readFileSync, rmSync } from 'node:fs'
import path from 'node:path'
import type { Secret } from '../base/secret.js'
import { isStoreText, type StoreText } from '../base/settings.js'
import { isText, shape } from '../store/shape.js'
import { isAlive, isProven, type ProbeOptions } from './probe.js'
import { INSTANCE_FIELDS, prove, type InstanceRecord } from './record.js'
import { writeWhole } from './write-file.js'

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
  /** The repositories of `--hook`, as `owner/name`. Undefined: written by an older relay. */
  readonly hooks?: readonly string[] | undefined
}

const parseRunning = shape<RunningInstance>({
  ...INSTANCE_FIELDS,
  profile: isText,
  store: isStoreText,
  sandbox: (value) => typeof value === 'boolean',
  secretPrint: isText,
  madeSecret: (value) => value === null || isText(value),
  hooks: (value) => value === undefined || (Array.isArray(value) && value.every(isText)),
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
 * One that another has replaced on a stored profile is left out. Writes nothing.
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
  const stored = new Set<string>()
  return alive.filter((entry, i) => {
    if (!proven[i]) return false
    if (entry.store === 'memory') return true
    const isNewest = !stored.has(entry.profile)
    stored.add(entry.profile)
    return isNewest
  })
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
