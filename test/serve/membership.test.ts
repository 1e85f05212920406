import { once } from 'node:events'
import { hostname } from 'node:os'
import { expect, it } from 'vitest'
import { aborted } from '../../src/base/abort.js'
import { RelayError } from '../../src/base/errors.js'
import { silentLog } from '../../src/base/log.js'
import { joinService } from '../../src/serve/membership.js'
import type { Database } from '../../src/store/database.js'
import type { Leases } from '../../src/store/leases.js'
import { emptyFolder } from '../helpers/context.js'
import { describeWith } from '../kit/needs.js'
import { openKind } from '../store/kinds.js'

function leasesOf({ sql }: Database): Leases {
  if (!sql.leases) throw new Error('the database has no leases')
  return sql.leases
}

const OWN = {
  pid: process.pid,
  url: 'http://127.0.0.1:1',
  publicUrl: 'http://127.0.0.1:1',
  provider: 'github',
  providerUrl: 'https://github.com',
}

const join = (database: Database, ...routes: string[]) => joinBy(leasesOf(database), database, ...routes)

const joinBy = (leases: Leases, { store }: Database, ...routes: string[]) =>
  joinService({
    store,
    leases,
    own: OWN,
    routes,
    labelOf: (route) => route.replace('secret', '***'),
    log: silentLog,
  })

const WHO = `Process ${process.pid} on ${hostname()}, at http://127.0.0.1:1, serves this profile with other routes: `
const FIX = '. All relays of a profile need the same routes'

describeWith('postgres', 'the relays that serve a profile together', () => {
  it('need the same routes, in any order: the later one is refused and leaves nothing', async () => {
    const folder = emptyFolder()
    await using one = await openKind('postgres', folder)
    await using other = await openKind('postgres', folder)
    await using first = await join(one, 'a', 'b secret')
    await expect(join(other, 'a', 'c secret')).rejects.toMatchObject({
      kind: 'settings',
      message: `${WHO}only there: b ***; only here: c ***${FIX}`,
    })
    expect(await other.store.list('instance:')).toHaveLength(1)
    expect(await first.hasOthers()).toBe(false)
    await using second = await join(other, 'b secret', 'a')
    expect(await first.hasOthers()).toBe(true)
    expect([first.record.key === second.record.key, first.lost.aborted]).toEqual([false, false])
  })

  it('change their routes only while they are alone', async () => {
    const folder = emptyFolder()
    await using one = await openKind('postgres', folder)
    await using other = await openKind('postgres', folder)
    await using first = await join(one, 'a')
    {
      await using _second = await join(other, 'a')
      await expect(first.changeRoutes(['a', 'b'])).rejects.toThrow(`${WHO}only here: b${FIX}`)
    }
    await first.changeRoutes(['a', 'b'])
    await expect(join(other, 'a')).rejects.toThrow(`${WHO}only there: b${FIX}`)
    await using _third = await join(other, 'b', 'a')
  })

  it('keep their routes when another joins with these while they change', async () => {
    const folder = emptyFolder()
    await using one = await openKind('postgres', folder)
    await using other = await openKind('postgres', folder)
    const leases = leasesOf(one)
    const [asked, answer] = [new AbortController(), new AbortController()]
    let isHeld = false
    const beat = async () => {
      const rows = await leases.beat()
      if (!isHeld) return rows
      asked.abort()
      await aborted(answer.signal)
      return rows
    }
    await using first = await joinBy({ ...leases, beat }, one, 'a')
    isHeld = true
    const changed = first.changeRoutes(['a', 'b']).catch((error: unknown) => error)
    await aborted(asked.signal)
    await using _second = await join(other, 'a')
    answer.abort()
    expect(await changed).toMatchObject({ kind: 'settings', message: `${WHO}only here: b${FIX}` })
    // As before: one more with these can join.
    await using another = await openKind('postgres', folder)
    await using _third = await join(another, 'a')
  })

  it('change their routes one time after the other, also when the first one fails', async () => {
    const folder = emptyFolder()
    await using one = await openKind('postgres', folder)
    await using other = await openKind('postgres', folder)
    const failed = new AbortController()
    let puts = 0
    const put: typeof one.store.put = async (...record) => {
      if (++puts === 2) {
        await aborted(failed.signal)
        throw new RelayError('storage', 'away')
      }
      await one.store.put(...record)
    }
    await using first = await join({ ...one, store: { ...one.store, put } }, 'a')
    const changes = [first.changeRoutes(['a', 'b']), first.changeRoutes(['a', 'c'])]
    await expect.poll(() => puts).toBeGreaterThan(1)
    failed.abort()
    expect((await Promise.allSettled(changes)).map(({ status }) => status)).toEqual(['rejected', 'fulfilled'])
    // It stores its routes again when it joins again.
    const { holder } = leasesOf(one)
    const before = puts
    await leasesOf(one).forget([`instance:${holder}`])
    await expect.poll(() => puts, { timeout: 15_000 }).toBeGreaterThan(before)
    await using _second = await join(other, 'a', 'c')
  })

  it('stay known when they come back while another removes them as silent', async () => {
    const folder = emptyFolder()
    await using one = await openKind('postgres', folder)
    await using other = await openKind('postgres', folder)
    await using _first = await join(one, 'a')
    const name = `instance:${leasesOf(one).holder}`
    const leases = leasesOf(other)
    const removed = new AbortController()
    const forgotten: string[] = []
    let isOld = false
    await using _second = await joinBy(
      {
        ...leases,
        /** As it was before the first one came back. */
        async beat() {
          const rows = await leases.beat()
          return rows.map((row) => (isOld && row.name === name ? { ...row, silent: 3001 } : row))
        },
        disconnect: () => Promise.resolve(),
        async forget(names) {
          await leases.forget(names)
          forgotten.push(...names)
          isOld = false
        },
        /** What follows the removal. */
        claim(names) {
          if (forgotten.includes(name)) removed.abort()
          return leases.claim(names)
        },
      },
      other,
      'a',
    )
    isOld = true
    await aborted(removed.signal)
    expect(await other.store.get(name)).toMatchObject({ routes: ['a'] })
    await using another = await openKind('postgres', folder)
    await expect(join(another, 'b')).rejects.toMatchObject({ kind: 'settings' })
  })

  it('join again after they were taken for dead, unless others have other routes by now', async () => {
    const folder = emptyFolder()
    await using one = await openKind('postgres', folder)
    await using other = await openKind('postgres', folder)
    const link = { isCut: false }
    const leases = leasesOf(one)
    const beat = () => (link.isCut ? Promise.reject(new Error('cut off')) : leases.beat())
    await using first = await joinBy({ ...leases, beat }, one, 'a')
    const { holder } = leases
    const names = async () => (await leasesOf(other).beat()).map(({ name }) => name)
    const remove = () =>
      other.sql.transaction([{ sql: 'DELETE FROM lease WHERE name = ?', values: [`instance:${holder}`] }])
    await remove()
    await expect.poll(names, { timeout: 15_000 }).toContain(`instance:${holder}`)
    expect(first.lost.aborted).toBe(false)
    // As if the other had started while the first one stood still.
    link.isCut = true
    await remove()
    await using _second = await join(other, 'b')
    link.isCut = false
    if (!first.lost.aborted) await once(first.lost, 'abort')
    expect(first.lost.reason).toMatchObject({
      kind: 'settings',
      message: `${WHO}only there: b; only here: a${FIX}`,
    })
  })
})
