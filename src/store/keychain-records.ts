import type { Clock } from '../base/time.js'
import type { Expiry, Json, Operation } from './contract.js'
import type { Keychain } from './keychain.js'
import { checkKey } from './kv.js'
import type { Lock } from './lock.js'
import { shape } from './shape.js'

export interface RecordsParts {
  readonly keychain: Keychain
  readonly lock: Lock
  readonly clock: Clock
  /** How the keys of the keychain's records begin. */
  readonly prefixes: readonly string[]
}

/** The records that lie in the keychain, as all but a write sees them. */
export interface Records {
  readonly has: (key: string) => boolean
  /** The value of a keychain's entry, if it is a record that has not expired. */
  readonly live: (text: string | undefined) => Json | undefined
  get(key: string): Promise<Json | undefined>
  /** In no order. */
  list(prefix: string): Promise<string[]>
  sweep(): Promise<number>
  /** Has the sweep look when these expire. */
  expect(operations: readonly Operation[]): void
}

/** Other processes put records into the keychain too: that often, in milliseconds, a sweep looks for theirs. */
const LOOK_AGAIN = 3_600_000

export function createRecords({ keychain, lock, clock, prefixes }: RecordsParts): Records {
  let nextSweep = -Infinity
  const has = (key: string): boolean => prefixes.some((prefix) => key.startsWith(prefix))
  const live = (text: string | undefined): Json | undefined => {
    const record = decode(text)
    return record && clock() < record.expiresAt ? record.value : undefined
  }
  /** Looks again under the lock: a record may have been renewed since it was found. */
  const removeExpired = (key: string): Promise<number> =>
    lock.hold(async () => {
      const text = await keychain.get(key)
      if (!decode(text) || live(text) !== undefined) return 0
      await keychain.delete(key)
      return 1
    })

  return {
    has,
    live,
    async get(key) {
      checkKey(key)
      await lock.idle()
      return live(await keychain.get(key))
    },
    async list(prefix) {
      if (!prefixes.some((own) => own.startsWith(prefix) || prefix.startsWith(own))) return []
      await lock.idle()
      const entries = await keychain.find()
      const found = entries.filter(({ text }) => live(text) !== undefined).map(({ key }) => key)
      return found.filter((key) => has(key) && key.startsWith(prefix))
    },
    async sweep() {
      if (clock() < nextSweep) return 0
      nextSweep = clock() + LOOK_AGAIN
      let swept = 0
      for (const { key, text } of await keychain.find()) {
        const expiresAt = has(key) ? decode(text)?.expiresAt : undefined
        if (expiresAt === undefined) continue
        if (clock() < expiresAt) nextSweep = Math.min(nextSweep, expiresAt)
        else swept += await removeExpired(key)
      }
      return swept
    },
    expect(operations) {
      for (const operation of operations) {
        if (operation.type === 'put') nextSweep = Math.min(nextSweep, operation.expiresAt ?? Infinity)
      }
    },
  }
}

/** A record as a keychain keeps it, as text: the value, and when it ends. */
interface Encoded {
  readonly v: 1
  readonly value: Json
  /** Missing: it stays. JSON makes null of what is no number. */
  readonly expiresAt?: number | null | undefined
}

const encoded = shape<Required<Encoded>>({
  v: (value) => value === 1,
  value: (value) => value !== undefined,
  expiresAt: () => true,
})

/** The text that {@link decode} reads. */
export function encode(value: Json, { expiresAt = Infinity }: Expiry = {}): string {
  const record: Encoded = expiresAt === Infinity ? { v: 1, value } : { v: 1, value, expiresAt }
  return JSON.stringify(record)
}

/** Undefined for a text that is no record of relay's: anyone can put an entry into a keychain. */
function decode(text = ''): { readonly value: Json; readonly expiresAt: number } | undefined {
  const record = encoded(parse(text))
  if (!record) return undefined
  const { value, expiresAt = Infinity } = record
  return { value, expiresAt: typeof expiresAt === 'number' ? expiresAt : -Infinity }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
