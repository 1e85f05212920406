import { array, assert, asyncProperty, constantFrom, integer, oneof, tuple } from 'fast-check'
import { describe, expect, it } from 'vitest'
import { openDatabase } from '../../src/store/open.js'
import { createTokens, type Tokens } from '../../src/tokens/tokens.js'

const USERS = ['ann', 'bob', '__proto__', 'ann:bob']
const TOKENS = ['t1', 't2', 't3']
const ORIGIN = 'https://github.com'
const REFRESH = { refreshToken: 'r', origin: ORIGIN }

interface Lives {
  readonly accessToken: string
  readonly expiresAt: number
}
/** Who holds what until when; `before` is the token that was renewed. */
type Held = Map<string, Lives & { readonly before?: Lives | undefined }>
type Clock = { now: number }
type Step = (tokens: Tokens, held: Held, clock: Clock) => Promise<void>

const user = constantFrom(...USERS)
const step = oneof(
  tuple(user, constantFrom(...TOKENS), integer({ min: 0, max: 20 })).map(
    ([userId, accessToken, ttl]): Step =>
      async (tokens, held, clock) => {
        const expiresAt = clock.now + ttl
        await tokens.save(userId, { accessToken, expiresAt, ...REFRESH })
        held.set(userId, { accessToken, expiresAt })
      },
  ),
  tuple(user, constantFrom(...TOKENS), integer({ min: 1, max: 20 })).map(
    ([userId, accessToken, ttl]): Step =>
      async (tokens, held, clock) => {
        const expiresAt = clock.now + ttl
        if (!(await tokens.renew(userId, REFRESH, { accessToken, expiresAt, ...REFRESH }))) return
        const old = held.get(userId)
        const lives = old && clock.now < old.expiresAt && old.accessToken !== accessToken
        held.set(userId, { accessToken, expiresAt, before: lives ? old : undefined })
      },
  ),
  user.map((userId): Step => async (tokens, held) => {
    await tokens.revoke(userId)
    held.delete(userId)
  }),
  integer({ min: 1, max: 10 }).map((ms): Step => async (_tokens, _held, clock) => {
    clock.now += ms
  }),
)

/** Everyone who holds the token now, or held it before a renewal that left it its time. */
function holders(held: Held, accessToken: string, now: number): string[] {
  const lives = (token: Lives | undefined): boolean =>
    token !== undefined && token.accessToken === accessToken && now < token.expiresAt
  return [...held]
    .filter(([, token]) => lives(token) || (lives(token.before) && now < token.expiresAt))
    .map(([userId]) => userId)
}

/** How many index entries there must be: one for each live token, and one for its predecessor while both are live. */
function entries(held: Held, now: number): number {
  const ends = [...held.values()].flatMap(({ expiresAt, before }) => [
    expiresAt,
    ...(before ? [Math.min(before.expiresAt, expiresAt)] : []),
  ])
  return ends.filter((end) => now < end).length
}

describe('tokens', () => {
  it('are found by bearer exactly as long as a user has them, after any steps', async () => {
    await assert(
      asyncProperty(array(step, { maxLength: 30 }), async (steps) => {
        const clock = { now: 1_000_000 }
        const held: Held = new Map()
        await using database = await openDatabase({ kind: 'memory', folder: '', clock: () => clock.now })
        const tokens = createTokens(database.store, () => clock.now)
        for (const step of steps) {
          await step(tokens, held, clock)
          for (const accessToken of TOKENS) {
            const [expected] = holders(held, accessToken, clock.now).toSorted()
            expect((await tokens.findByBearer(accessToken))?.userId).toBe(expected)
          }
        }
        expect(await database.store.list('bearer:')).toHaveLength(entries(held, clock.now))
      }),
    )
  })
})
