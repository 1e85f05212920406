import { array, assert, asyncProperty, constantFrom, integer, oneof, tuple } from 'fast-check'
import { describe, expect, it } from 'vitest'
import { openDatabase } from '../../src/store/open.js'
import { createTokens, type Tokens } from '../../src/tokens/tokens.js'

const USERS = ['ann', 'bob', '__proto__', 'ann:bob']
const TOKENS = ['t1', 't2', 't3']
const ORIGIN = 'https://github.com'

/** Who holds what until when. */
type Held = Map<string, { accessToken: string; expiresAt: number }>
type Clock = { now: number }
type Step = (tokens: Tokens, held: Held, clock: Clock) => Promise<void>

const user = constantFrom(...USERS)
const step = oneof(
  tuple(user, constantFrom(...TOKENS), integer({ min: 0, max: 20 })).map(
    ([userId, accessToken, ttl]): Step =>
      async (tokens, held, clock) => {
        const expiresAt = clock.now + ttl
        await tokens.save(userId, { accessToken, expiresAt, origin: ORIGIN })
        held.set(userId, { accessToken, expiresAt })
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

/** Everyone who holds the token now. */
function holders(held: Held, accessToken: string, now: number): string[] {
  return [...held]
    .filter(([, of]) => of.accessToken === accessToken && now < of.expiresAt)
    .map(([userId]) => userId)
}

describe('tokens', () => {
  it('are found by bearer exactly as long as somebody holds them, whatever was done', async () => {
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
        const live = TOKENS.flatMap((accessToken) => holders(held, accessToken, clock.now))
        expect(await database.store.list('bearer:')).toHaveLength(live.length)
      }),
    )
  })
})
