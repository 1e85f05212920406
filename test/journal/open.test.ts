import { describe, expect, it } from 'vitest'
import { RelayError } from '../../src/base/errors.js'
import { openJournal } from '../../src/journal/open.js'
import { openDatabase } from '../../src/store/open.js'
import { breakable } from '../helpers/breakable.js'
import { emptyFolder } from '../helpers/context.js'
import { delivery } from './rig.js'

const memory = () => openDatabase({ kind: 'memory', folder: '' })

describe.each(['memory', 'file'] as const)('a journal in a %s database', (kind) => {
  const open = () => openDatabase({ kind, folder: emptyFolder() })

  it('numbers deliveries 1, 2, 3 and gives back what it was given', async () => {
    await using database = await open()
    const journal = openJournal(database)
    const deliveries = [
      delivery('a'),
      delivery('b', { number: null }),
      delivery('c', { verifiedBy: 'previous' }),
    ]
    for (const [i, one] of deliveries.entries()) {
      expect(await journal.append(one)).toEqual({ n: i + 1, duplicate: false, targets: [] })
    }
    const entries = deliveries.map((one, i) => ({ n: i + 1, ...one, duplicates: 0 }))
    expect([...journal.entries()]).toEqual(entries)
    expect([...journal.entries({ reverse: true, limit: 2 })]).toEqual([entries[2], entries[1]])
    expect([...journal.entries({ from: 2, to: 2 })]).toEqual([entries[1]])
    expect(journal.read(3)).toEqual(entries[2])
    expect(journal.read(4)).toBeUndefined()
    expect(journal.count()).toBe(3)
  })

  it('keeps empty and large bodies byte for byte', async () => {
    await using database = await open()
    const journal = openJournal(database)
    const large = Uint8Array.from({ length: 1_048_576 }, (_, i) => (i * 31) % 256)
    await journal.append(delivery('empty', { body: new Uint8Array() }))
    await journal.append(delivery('large', { body: large }))
    expect(journal.read(1)?.body).toEqual(new Uint8Array())
    expect(Buffer.compare(journal.read(2)?.body ?? new Uint8Array(), large)).toBe(0)
  })

  it('counts a delivery that comes again on its entry', async () => {
    await using database = await open()
    const journal = openJournal(database)
    const first = delivery('a')
    await journal.append(first)
    const again = { ...first, event: 'other', body: Buffer.from('other') }
    expect(await journal.append(again)).toEqual({ n: 1, duplicate: true, targets: [] })
    expect(await Promise.all([journal.append(again), journal.append(again)])).toEqual([
      { n: 1, duplicate: true, targets: [] },
      { n: 1, duplicate: true, targets: [] },
    ])
    expect([...journal.entries()]).toEqual([{ n: 1, ...first, duplicates: 3 }])
  })

  it('takes the same delivery id of another hook for another delivery', async () => {
    await using database = await open()
    const journal = openJournal(database)
    expect(await journal.append(delivery('a', { hookId: '1' }))).toEqual({
      n: 1,
      duplicate: false,
      targets: [],
    })
    expect(await journal.append(delivery('a', { hookId: '2' }))).toEqual({
      n: 2,
      duplicate: false,
      targets: [],
    })
    expect(await journal.append(delivery('a', { hookId: '' }))).toEqual({
      n: 3,
      duplicate: false,
      targets: [],
    })
  })

  it('stores one of many that come at once', async () => {
    await using database = await open()
    const journal = openJournal(database)
    const receipts = await Promise.all(Array.from({ length: 50 }, () => journal.append(delivery('a'))))
    expect(receipts.filter(({ duplicate }) => !duplicate)).toEqual([{ n: 1, duplicate: false, targets: [] }])
    expect(receipts.every(({ n }) => n === 1)).toBe(true)
    expect([...journal.entries()]).toEqual([{ n: 1, ...delivery('a'), duplicates: 49 }])
  })

  it('knows a delivery as soon as it is stored', async () => {
    await using database = await open()
    const journal = openJournal(database)
    for (let i = 0; i < 100; i++) {
      // A read opens a snapshot that must not outlive the write.
      journal.read(1)
      const [, again] = [await journal.append(delivery(`${i}`)), await journal.append(delivery(`${i}`))]
      expect(again).toEqual({ n: i + 1, duplicate: true, targets: [] })
    }
    expect(journal.count()).toBe(100)
  })
})

describe('a journal in a file', () => {
  it('goes on with numbers and duplicates after a restart', async () => {
    const folder = emptyFolder()
    {
      await using database = await openDatabase({ kind: 'file', folder })
      const journal = openJournal(database)
      await journal.append(delivery('a'))
      await journal.append(delivery('b'))
      await journal.append(delivery('a'))
    }
    await using database = await openDatabase({ kind: 'file', folder })
    const journal = openJournal(database)
    expect(await journal.append(delivery('a'))).toEqual({ n: 1, duplicate: true, targets: [] })
    expect(await journal.append(delivery('c'))).toEqual({ n: 3, duplicate: false, targets: [] })
    expect([...journal.entries()].map(({ n, duplicates }) => [n, duplicates])).toEqual([
      [1, 2],
      [2, 0],
      [3, 0],
    ])
  })

  it('gives no number twice when two append at once', async () => {
    const folder = emptyFolder()
    await using one = await openDatabase({ kind: 'file', folder })
    await using other = await openDatabase({ kind: 'file', folder })
    const [even, odd] = [openJournal(one), openJournal(other)]
    const receipts = await Promise.all(
      Array.from({ length: 200 }, (_, i) => (i % 2 ? odd : even).append(delivery(`${i >> 2}`))),
    )
    expect(receipts.filter(({ duplicate }) => !duplicate)).toHaveLength(50)
    const entries = [...openJournal(one).entries()]
    expect(entries.map(({ n }) => n)).toEqual(Array.from({ length: 50 }, (_, i) => i + 1))
    expect(new Set(entries.map(({ deliveryId }) => deliveryId)).size).toBe(50)
    expect(entries.map(({ duplicates }) => duplicates)).toEqual(entries.map(() => 3))
  })
})

describe('a journal whose database fails', () => {
  it('says so, and stores the delivery when it comes again', async () => {
    const broken = breakable(await memory())
    const journal = openJournal(broken)
    broken.now('fails')
    await expect(journal.append(delivery('a'))).rejects.toEqual(new RelayError('storage', 'no room'))
    expect([...journal.entries()]).toEqual([])
    broken.now('works')
    expect(await journal.append(delivery('a'))).toEqual({ n: 1, duplicate: false, targets: [] })
    expect([...journal.entries()]).toEqual([{ n: 1, ...delivery('a'), duplicates: 0 }])
  })

  it('lets all that wait for the same write share its failure', async () => {
    const broken = breakable(await memory())
    const journal = openJournal(broken)
    broken.now('fails')
    const outcomes = await Promise.allSettled(Array.from({ length: 3 }, () => journal.append(delivery('a'))))
    expect(outcomes.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected'])
    broken.now('works')
    expect(await journal.append(delivery('a'))).toEqual({ n: 1, duplicate: false, targets: [] })
  })

  it('knows a delivery again whose write landed after its time', async () => {
    const late = breakable(await memory())
    const journal = openJournal(late)
    late.now('is late')
    await expect(journal.append(delivery('a'))).rejects.toThrow('no room')
    late.now('works')
    expect(await journal.append(delivery('b'))).toEqual({ n: 2, duplicate: false, targets: [] })
    expect(await journal.append(delivery('a'))).toEqual({ n: 1, duplicate: true, targets: [] })
    expect([...journal.entries()].map(({ n, deliveryId }) => [n, deliveryId])).toEqual([
      [1, 'a'],
      [2, 'b'],
    ])
  })

  it('does not count a repeat it could not record, and goes on', async () => {
    const broken = breakable(await memory())
    const journal = openJournal(broken)
    await journal.append(delivery('a'))
    broken.now('fails')
    await expect(journal.append(delivery('a'))).rejects.toThrow('no room')
    broken.now('works')
    expect(await journal.append(delivery('a'))).toEqual({ n: 1, duplicate: true, targets: [] })
    expect(journal.read(1)?.duplicates).toBe(1)
  })
})

describe('an entry of a later format', () => {
  it('is refused by name', async () => {
    await using database = await memory()
    const metas = database.table<number, { v: number }>('journal', { keys: 'number', values: 'json' })
    const bodies = database.table<number, Uint8Array>('journal-body', { keys: 'number', values: 'bytes' })
    await database.commit([metas.put(1, { v: 2 }), bodies.put(1, new Uint8Array())])
    expect(() => openJournal(database).read(1)).toThrow(
      new RelayError('storage', 'Journal entry 1 was written by a newer version of relay'),
    )
  })
})
