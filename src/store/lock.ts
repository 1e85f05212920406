import { randomUUID } from 'node:crypto'
import { sleep } from '../base/abort.js'
import { RelayError } from '../base/errors.js'
import type { Json } from './contract.js'
import type { Engine } from './engine.js'
import { encodeKey } from './keys.js'
import { decodeRecord, encodeRecord, isLive } from './record.js'

/** A lock for all processes that have the same engine's data open. Closing it waits for those who hold it here. */
export interface Lock extends AsyncDisposable {
  /**
   * Does `work` while nobody else does any. It calls `mustHold` before each of its steps, none of which may take longer
   * than {@link STEP}: that throws once the lock may soon be another's.
   * @throws RelayError `storage` when the lock cannot be had within {@link WAIT}; else as `work` does.
   */
  hold<T>(work: (mustHold: () => void) => Promise<T>): Promise<T>
  /** Waits until nobody holds it, but no longer than {@link READ_WAIT}: for those who only read. */
  idle(): Promise<void>
}

const TABLE = 'lock'
const KEY = encodeKey('keychain')

/** All in milliseconds. The lock of a process that has crashed is free after its lease, so others wait longer than that. */
const STEP = 4000
const LEASE = 12_000
const WAIT = 15_000
const READ_WAIT = 1000

/** The lock, held: by whom, and until when by the clock on the wall, which all processes share. */
interface Held {
  readonly owner: string
  readonly end: number
}

export function createLock(engine: Engine): Lock {
  engine.open(TABLE)
  const underWay = new Set<Promise<unknown>>()
  const owner = (): Json | undefined => {
    const record = engine.get(TABLE, KEY)
    return record && isLive(record, Date.now()) ? decodeRecord(record) : undefined
  }
  const isHeld = (): boolean => {
    engine.refresh()
    return owner() !== undefined
  }
  const take = async (): Promise<Held | undefined> => {
    if (isHeld()) return undefined
    return engine.transact(() => {
      if (owner() !== undefined) return { result: undefined, writes: [] }
      const held = { owner: randomUUID(), end: Date.now() + LEASE }
      return { result: held, writes: [{ table: TABLE, key: KEY, value: encodeRecord(held.owner, held.end) }] }
    })
  }
  const release = async (held: Held): Promise<void> =>
    engine.transact(() => ({
      result: undefined,
      writes: owner() === held.owner ? [{ table: TABLE, key: KEY, value: undefined }] : [],
    }))

  async function hold<T>(work: (mustHold: () => void) => Promise<T>): Promise<T> {
    const limit = Date.now() + WAIT
    let held = await take()
    for (; !held; held = await take()) await nextLook(limit)
    const latest = held.end - STEP
    try {
      return await work(() => mustBeBefore(latest))
    } finally {
      // If that fails the lease ends by itself.
      await release(held).catch(() => {})
    }
  }

  return {
    async hold(work) {
      const holding = hold(work)
      underWay.add(holding)
      try {
        return await holding
      } finally {
        underWay.delete(holding)
      }
    },
    async idle() {
      const limit = Date.now() + READ_WAIT
      while (isHeld() && Date.now() < limit) await pause()
    },
    async [Symbol.asyncDispose]() {
      await Promise.allSettled(underWay)
    },
  }
}

async function nextLook(limit: number): Promise<void> {
  if (Date.now() > limit) {
    throw new RelayError('storage', 'Others are changing the keychain all the time: try again')
  }
  await pause()
}

/** At random, so that none of those who wait always looks at the wrong moment. */
function pause(): Promise<void> {
  return sleep(2 + Math.random() * 8)
}

function mustBeBefore(latest: number): void {
  if (Date.now() > latest) throw new RelayError('storage', 'The keychain was too slow')
}
