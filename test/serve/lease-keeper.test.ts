import { once } from 'node:events'
import { expect, it } from 'vitest'
import { aborted } from '../../src/base/abort.js'
import { RelayError } from '../../src/base/errors.js'
import { silentLog } from '../../src/base/log.js'
import type { Owner } from '../../src/dispatch/owner.js'
import { LeaseKeeper } from '../../src/serve/lease-keeper.js'
import type { Leases } from '../../src/store/leases.js'
import { emptyFolder } from '../helpers/context.js'
import { describeWith } from '../kit/needs.js'
import { openKind } from '../store/kinds.js'

/** What is between a relay and the database. */
interface Link {
  isCut: boolean
  /** What claims wait for on their way to the database, and the answers of claims and of beats on their way back. */
  claims: Promise<unknown> | undefined
  claimed: Promise<unknown> | undefined
  answers: Promise<unknown> | undefined
}

/** A relay on the profile of this folder that can be cut off from the database. */
async function join(folder: string) {
  const database = await openKind('postgres', folder)
  const { leases } = database.sql
  if (!leases) throw new Error('the database has no leases')
  const link: Link = { isCut: false, claims: undefined, claimed: undefined, answers: undefined }
  let beats = 0
  const cuttable: Leases = {
    ...leases,
    async beat() {
      if (link.isCut) throw new RelayError('storage', 'The database is away')
      const rows = await leases.beat()
      beats++
      await link.answers
      return rows
    },
    async claim(names) {
      await link.claims
      const epochs = await leases.claim(names)
      await link.claimed
      return epochs
    },
  }
  await leases.claim([`instance:${leases.holder}`])
  const said: string[] = []
  const keeper = new LeaseKeeper({
    leases: cuttable,
    ownName: `instance:${leases.holder}`,
    log: { ...silentLog, warn: (text) => void said.push(text), info: (text) => void said.push(text) },
    onBeat: () => Promise.resolve(),
    onSilent: () => Promise.resolve(),
  })
  keeper.start()
  const owners = new Map<string, Owner>()
  const elsewhere: string[] = []
  return {
    keeper,
    link,
    said,
    leases,
    database,
    /** The duties that another relay had, as this one got to know. */
    elsewhere,
    /** The beats that the database did. */
    beats: () => beats,
    /** The duties that it does now. */
    doing: () => [...owners.keys()].toSorted((one, other) => one.localeCompare(other)),
    owner: (name: string) => owners.get(name),
    run: (name: string, isIdle = false) =>
      keeper.run({
        name,
        what: name,
        onElsewhere: () => void elsewhere.push(name),
        start: async (owner) => {
          owners.set(name, owner)
          return {
            isIdle: () => isIdle,
            async [Symbol.asyncDispose]() {
              owners.delete(name)
            },
          }
        },
      }),
    async [Symbol.asyncDispose]() {
      link.isCut = false
      await keeper[Symbol.asyncDispose]()
      await leases.forget([`instance:${leases.holder}`])
      await database[Symbol.asyncDispose]()
    },
  }
}

const PATIENCE = { timeout: 15_000 }

describeWith('postgres', 'the duties of relays on one database', () => {
  it('are done by one relay at a time, and pass to the other at once when it ends', async () => {
    const folder = emptyFolder()
    await using one = await join(folder)
    await using other = await join(folder)
    await one.run('sweep')
    await expect.poll(one.doing, PATIENCE).toEqual(['sweep'])
    await other.run('sweep')
    // As long as the first one beats, which it does once a second, nothing passes.
    one.keeper.wake()
    await other.leases.beat()
    await expect.poll(() => other.elsewhere, PATIENCE).toEqual(['sweep'])
    expect([one.doing(), other.doing()]).toEqual([['sweep'], []])
    await one.keeper[Symbol.asyncDispose]()
    expect(one.doing()).toEqual([])
    await expect.poll(other.doing, PATIENCE).toEqual(['sweep'])
    // Once, however often it was looked at.
    expect([one.elsewhere, other.elsewhere]).toEqual([[], ['sweep']])
    expect([one.said, other.said]).toEqual([[], []])
  })

  it('wait while the database does not answer, and continue if no other relay has taken them', async () => {
    await using one = await join(emptyFolder())
    await one.run('queue:a')
    await expect.poll(one.doing, PATIENCE).toEqual(['queue:a'])
    const owner = one.owner('queue:a')
    await owner?.assert()
    expect(owner?.isCurrent()).toBe(true)
    one.link.isCut = true
    await expect.poll(() => owner?.isCurrent(), PATIENCE).toBe(false)
    let isAsserted = false
    const asserted = owner?.assert().then(() => (isAsserted = true))
    await expect.poll(() => one.said, PATIENCE).toEqual(['Forwarding pauses: The database is away'])
    expect(isAsserted).toBe(false)
    one.link.isCut = false
    await asserted
    expect(owner?.isCurrent()).toBe(true)
    expect(owner?.lost.aborted).toBe(false)
    expect(one.said.at(-1)).toBe('Forwarding continues: the database answers again')
    expect(one.doing()).toEqual(['queue:a'])
  })

  it('are taken over from a relay that is silent, which stops them, says so once, and cannot record any more', async () => {
    const folder = emptyFolder()
    await using one = await join(folder)
    await one.run('queue:a')
    await expect.poll(one.doing, PATIENCE).toEqual(['queue:a'])
    await using other = await join(folder)
    await other.run('queue:a')
    const before = one.owner('queue:a')
    one.link.isCut = true
    await expect.poll(other.doing, PATIENCE).toEqual(['queue:a'])
    const after = other.owner('queue:a')
    const check = async (database: typeof one.database, owner: Owner | undefined) => {
      const step = owner?.fence?.statement()
      return step && (await database.sql.transaction([step]))
    }
    expect(await check(one.database, before)).toBeUndefined()
    expect(await check(other.database, after)).toHaveLength(1)
    // It did not know of it until now.
    expect(before?.lost.aborted).toBe(false)
    expect(before?.isCurrent()).toBe(false)
    const waits = before?.assert().catch((error: unknown) => error)
    one.link.isCut = false
    if (before && !before.lost.aborted) await once(before.lost, 'abort')
    const lost = 'Another relay has taken over, since this one was silent: queue:a'
    expect(await waits).toMatchObject({ kind: 'unavailable', message: lost })
    await expect.poll(one.doing, PATIENCE).toEqual([])
    await one.leases.beat()
    expect(one.said.filter((text) => text === lost)).toHaveLength(1)
    expect(other.doing()).toEqual(['queue:a'])
  })

  it('go on when one was taken while a beat was under way, whose answer does not have it yet', async () => {
    await using one = await join(emptyFolder())
    const [claim, answer] = [new AbortController(), new AbortController()]
    one.link.claims = once(claim.signal, 'abort')
    await one.run('queue:a')
    const before = one.beats()
    await expect.poll(one.beats, PATIENCE).toBeGreaterThan(before)
    one.link.answers = once(answer.signal, 'abort')
    const last = one.beats()
    one.keeper.wake()
    await expect.poll(one.beats, PATIENCE).toBeGreaterThan(last)
    claim.abort()
    await expect.poll(one.doing, PATIENCE).toEqual(['queue:a'])
    const owner = one.owner('queue:a')
    one.link.answers = undefined
    answer.abort()
    const next = one.beats()
    await expect.poll(one.beats, PATIENCE).toBeGreaterThan(next)
    expect({ lost: owner?.lost.aborted, said: one.said, doing: one.doing() }).toEqual({
      lost: false,
      said: [],
      doing: ['queue:a'],
    })
  })

  it('are not begun again when one was lost while a beat was under way, whose answer still has it', async () => {
    await using one = await join(emptyFolder())
    await one.run('queue:a')
    await expect.poll(one.doing, PATIENCE).toEqual(['queue:a'])
    const answer = new AbortController()
    one.link.answers = once(answer.signal, 'abort')
    const last = one.beats()
    one.keeper.wake()
    await expect.poll(one.beats, PATIENCE).toBeGreaterThan(last)
    await expect(one.owner('queue:a')?.fence?.refuse()).rejects.toMatchObject({ kind: 'unavailable' })
    await one.leases.release(['queue:a'])
    one.link.answers = undefined
    answer.abort()
    const next = one.beats()
    await expect.poll(one.beats, PATIENCE).toBeGreaterThan(next + 1)
    // Once: not also for what would have been begun with the old answer.
    expect(one.said).toEqual(['Another relay has taken over, since this one was silent: queue:a'])
  })

  it('send nothing for a claim whose answer comes when another relay has taken over', async () => {
    const folder = emptyFolder()
    await using one = await join(folder)
    const [claimed, answer] = [new AbortController(), new AbortController()]
    one.link.claimed = once(claimed.signal, 'abort')
    await one.run('queue:a')
    const rows = async () => (await one.database.sql.query('SELECT * FROM lease')).length
    await expect.poll(rows, PATIENCE).toBe(2)
    one.link.isCut = true
    await using other = await join(folder)
    await other.run('queue:a')
    await expect.poll(other.doing, PATIENCE).toEqual(['queue:a'])
    one.link.answers = once(answer.signal, 'abort')
    one.link.isCut = false
    const last = one.beats()
    await expect.poll(one.beats, PATIENCE).toBeGreaterThan(last)
    claimed.abort()
    await expect.poll(one.doing, PATIENCE).toEqual(['queue:a'])
    const asserted = one.owner('queue:a')?.assert()
    one.link.answers = undefined
    answer.abort()
    await expect(asserted).rejects.toMatchObject({ kind: 'unavailable' })
  })

  it('are also taken that became free while others were taken, without another beat', async () => {
    const folder = emptyFolder()
    const duties = ['sources', 'sweep']
    await using one = await join(folder)
    for (const name of duties) await one.run(name)
    await expect.poll(one.doing, PATIENCE).toEqual(duties)
    await using other = await join(folder)
    const [claim, answer] = [new AbortController(), new AbortController()]
    other.link.claims = once(claim.signal, 'abort')
    for (const name of duties) await other.run(name)
    const first = other.beats()
    await expect.poll(other.beats, PATIENCE).toBeGreaterThan(first + 1)
    await one.keeper[Symbol.asyncDispose]()
    other.link.answers = once(answer.signal, 'abort')
    const last = other.beats()
    other.keeper.wake()
    await expect.poll(other.beats, PATIENCE).toBeGreaterThan(last)
    other.link.isCut = true
    answer.abort()
    claim.abort()
    await expect.poll(other.doing, { timeout: 3000 }).toEqual(duties)
  })

  it('are not given to another relay before they have ended', async () => {
    const folder = emptyFolder()
    await using one = await join(folder)
    const ended = new AbortController()
    let isDoing = false
    const duty = await one.keeper.run({
      name: 'queue:a',
      what: 'queue:a',
      async start() {
        isDoing = true
        return { [Symbol.asyncDispose]: () => aborted(ended.signal) }
      },
    })
    await expect.poll(() => isDoing, PATIENCE).toBe(true)
    await using other = await join(folder)
    await other.run('queue:a')
    const ending = duty[Symbol.asyncDispose]()
    for (const relay of [one, other, one, other]) {
      const before = relay.beats()
      await expect.poll(relay.beats, PATIENCE).toBeGreaterThan(before)
    }
    const during = other.doing()
    ended.abort()
    await ending
    await expect.poll(other.doing, PATIENCE).toEqual(['queue:a'])
    expect(during).toEqual([])
  })

  it('are stopped by a refused record, before the next beat', async () => {
    await using one = await join(emptyFolder())
    await one.run('queue:a')
    await expect.poll(one.doing, PATIENCE).toEqual(['queue:a'])
    const owner = one.owner('queue:a')
    await expect(owner?.fence?.refuse()).rejects.toMatchObject({ kind: 'unavailable' })
    expect(owner?.lost.aborted).toBe(true)
  })

  it('are spread over the relays, where a queue is idle', async () => {
    const folder = emptyFolder()
    const names = ['queue:a', 'queue:b', 'queue:c', 'queue:d']
    await using one = await join(folder)
    for (const name of names) await one.run(name, true)
    await expect.poll(one.doing, PATIENCE).toEqual(names)
    await using other = await join(folder)
    for (const name of names) await other.run(name, true)
    await expect.poll(() => [one.doing().length, other.doing().length], PATIENCE).toEqual([2, 2])
    expect([...one.doing(), ...other.doing()].toSorted((a, b) => a.localeCompare(b))).toEqual(names)
  })

  it('are started again when they could not start', async () => {
    await using one = await join(emptyFolder())
    let starts = 0
    await one.keeper.run({
      name: 'sweep',
      what: 'removing',
      start: async () => {
        if (++starts === 1) throw new RelayError('storage', 'not yet')
        return { async [Symbol.asyncDispose]() {} }
      },
    })
    await expect.poll(() => starts, PATIENCE).toBe(2)
  })
})
