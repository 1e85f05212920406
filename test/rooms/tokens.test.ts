import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { openDatabase } from '../../src/store/open.js'
import { parseUserId } from '../../src/base/settings.js'
import { type TokenGrant, Tokens } from '../../src/tokens/tokens.js'
import { same } from './same.js'

const START = Date.UTC(2030, 0, 1)
const USERS = ['ada', 'bob:', 'bob'] as const
const ORIGIN = 'https://git.example'

const user = fc.constantFrom(...USERS)
const lives = fc.constantFrom(10, 50, 1000)
const save = fc.record({ save: user, lives, refreshLives: fc.option(lives, { nil: undefined }) })
const renew = fc.record({ renew: user, lives, isReplaced: fc.boolean(), isStale: fc.boolean() })
const command = fc.oneof(
  { weight: 3, arbitrary: save },
  { weight: 3, arbitrary: renew },
  { weight: 1, arbitrary: fc.record({ drop: user, isStale: fc.boolean() }) },
  { weight: 1, arbitrary: fc.record({ revoke: user }) },
  { weight: 2, arbitrary: fc.record({ wait: fc.nat({ max: 40 }) }) },
)

interface Known {
  readonly accessToken: string
  readonly expiresAt: number
  readonly before?: { readonly accessToken: string; readonly expiresAt: number } | undefined
}

interface Refresh {
  readonly refreshToken: string
  readonly end: number
}

describe('whatever happens to them, tokens', () => {
  it('are what the model says: one for each user, and the one before a renewal until it expires', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(command, { maxLength: 40, size: '+1' }), async (commands) => {
        let [now, made] = [START, 0]
        const clock = (): number => now
        await using database = await openDatabase({ kind: 'memory', folder: '', clock })
        const tokens = new Tokens(database.store, clock)
        const model = new Map<string, Known>()
        const refreshes = new Map<string, Refresh>()
        const bearers = new Set(['never'])
        const live = (of: string): Known | undefined => {
          const found = model.get(of)
          return found && found.expiresAt > now ? found : undefined
        }
        const refreshOf = (of: string): string | undefined => {
          const found = refreshes.get(of)
          return found && found.end > now ? found.refreshToken : undefined
        }
        for (const each of commands) {
          now++
          if ('save' in each || 'renew' in each) {
            const of = 'save' in each ? each.save : each.renew
            const accessToken = `gho_${++made}`
            const expiresAt = now + each.lives
            const isNew = 'save' in each || each.isReplaced
            const refreshToken = isNew ? `ghr_${made}` : undefined
            const end = 'save' in each ? each.refreshLives : 500
            const refreshExpiresAt = isNew && end !== undefined ? now + end : undefined
            const refresh = { refreshToken, refreshExpiresAt }
            const grant: TokenGrant = { accessToken, expiresAt, ...refresh, origin: ORIGIN }
            const current = refreshOf(of)
            if ('save' in each) await tokens.save(of, grant)
            else {
              const used = { refreshToken: each.isStale ? 'stale' : (current ?? 'none'), origin: ORIGIN }
              const isRight = current !== undefined && !each.isStale
              same(await tokens.renew(of, used, grant), isRight)
              if (!isRight) continue
            }
            const before = 'renew' in each ? live(of) : undefined
            model.set(of, { accessToken, expiresAt, before })
            bearers.add(accessToken)
            if (refreshToken !== undefined)
              refreshes.set(of, { refreshToken, end: refreshExpiresAt ?? Infinity })
            else if ('save' in each) refreshes.delete(of)
          } else if ('drop' in each) {
            const current = refreshOf(each.drop)
            const refreshToken = each.isStale ? 'stale' : (current ?? 'none')
            const isRight = current === refreshToken
            same(await tokens.dropRefresh(each.drop, { refreshToken, origin: ORIGIN }), isRight)
            if (isRight) refreshes.delete(each.drop)
          } else if ('revoke' in each) {
            const { owner, refreshable } = await tokens.revoke(each.revoke)
            const removed = [owner?.accessToken, refreshable?.refreshToken]
            same(removed, [live(each.revoke)?.accessToken, refreshOf(each.revoke)])
            model.delete(each.revoke)
            refreshes.delete(each.revoke)
          } else now += each.wait
        }
        const owner = (of: string) => {
          const found = live(of)
          if (!found) return undefined
          return { userId: of, accessToken: found.accessToken, expiresAt: found.expiresAt, origin: ORIGIN }
        }
        for (const of of USERS) {
          expect(await tokens.get(of)).toEqual(owner(of))
          const refreshToken = refreshOf(of)
          const refreshable = refreshToken === undefined ? undefined : { refreshToken, origin: ORIGIN }
          expect(await tokens.refreshable(of)).toEqual(refreshable)
        }
        for (const bearer of bearers) {
          const of = USERS.find((each) => {
            const { accessToken, before } = live(each) ?? {}
            return accessToken === bearer || (before?.accessToken === bearer && before.expiresAt > now)
          })
          expect([bearer, await tokens.findByBearer(bearer)]).toEqual([bearer, of && owner(of)])
        }
        expect((await tokens.owners()).map(({ userId }) => userId)).toEqual(
          USERS.toSorted().filter((of) => live(of) !== undefined),
        )
        // Nothing is left of a user who is gone, not even in an index.
        for (const of of USERS) await tokens.revoke(of)
        await database.store.sweep()
        expect(await database.store.list('')).toEqual([])
      }),
      { numRuns: 40 },
    )
  })

  it('never belong to an origin that another program has paired them with', async () => {
    await using database = await openDatabase({ kind: 'memory', folder: '' })
    const { store } = database
    const tokens = new Tokens(store)
    const expiresAt = Date.now() + 60_000
    await tokens.save('ada', { accessToken: 'gho_a', expiresAt, origin: ORIGIN })
    await tokens.save('eve', { accessToken: 'gho_e', expiresAt, origin: 'https://evil.example' })
    await store.put('origin:ada', (await store.get('origin:eve')) ?? null)
    expect([await tokens.get('ada'), await tokens.findByBearer('gho_a')]).toEqual([undefined, undefined])
    // As applications read it.
    expect(await store.get('token:eve')).toEqual({
      accessToken: 'gho_e',
      expiresAt: new Date(expiresAt).toISOString(),
    })
  })

  it('live no longer than a year of four digits, and end at an instant that is none', async () => {
    await using database = await openDatabase({ kind: 'memory', folder: '' })
    const tokens = new Tokens(database.store)
    await tokens.save('ada', { accessToken: 'gho_a', expiresAt: 1e300, origin: ORIGIN })
    expect((await tokens.get('ada'))?.expiresAt).toBe(Date.UTC(9999, 11, 31, 23, 59, 59, 999))
  })
})

it('a user id is a text that is safe in a key, a path and a line', () => {
  for (const id of ['ada', 'ada@example.com', 'é😀', 'a'.repeat(256)]) expect(parseUserId(id)).toBe(id)
  for (const id of ['', '.', '..', 'a b', 'a/b', 'a\n', '\u0085', '\ud800', '\u3000', 'é'.repeat(129)])
    expect(() => parseUserId(id)).toThrow('Invalid userId')
})
