import * as fc from 'fast-check'
import { describe, expect, it, vi } from 'vitest'
import { renewToken, revokeToken } from '../../src/auth/renew.js'
import { RelayError } from '../../src/base/errors.js'
import type { TokenGrant } from '../../src/tokens/tokens.js'
import { createRig, DAY, NOW, shown, WEB } from './auth-rig.js'
import { type Answer, type Asked, failure } from './codehost-rig.js'

const OLD = { accessToken: 'gho_Old', refreshToken: 'ghr_Old' }
const SIGNED = { accessToken: 'gho_Signed', expiresAt: NOW + DAY, origin: WEB }
const isRefresh = ({ form }: Asked): boolean => form['grant_type'] === 'refresh_token'

/** GitHub's answer (docs.github.com, "Refreshing user access tokens"). */
function pair(n: number): Answer {
  const access = { access_token: `gho_New${n}`, expires_in: 28_800, scope: '', token_type: 'bearer' }
  return { body: { ...access, refresh_token: `ghr_New${n}`, refresh_token_expires_in: 15_897_600 } }
}
const refuses = (error: string, status = 200): Answer => ({
  status,
  body: { error, error_description: 'no' },
})

/** Ada is signed in with a refresh token and a token that expires in half a minute, unless `changes` say otherwise. */
async function signedIn(
  reply: Answer | ((asked: Asked) => Answer | Promise<Answer>) = pair(1),
  changes: Partial<TokenGrant> = {},
) {
  const rig = await createRig(typeof reply === 'function' ? reply : () => reply)
  await rig.tokens.save('ada', { ...OLD, expiresAt: NOW + 30_000, origin: WEB, ...changes })
  return rig
}

/** What is stored for Ada: her token and what renews it. */
async function stored({ tokens }: Awaited<ReturnType<typeof createRig>>) {
  return [(await tokens.get('ada'))?.accessToken, (await tokens.refreshable('ada'))?.refreshToken]
}

it('however renewals, a revocation and a sign-in coincide, no refresh token is sent twice, and what is stored works', async () => {
  const act = fc.constantFrom('renew', 'renew', 'renew', 'other user', 'revoke', 'sign in')
  await fc.assert(
    fc.asyncProperty(fc.scheduler(), fc.array(act, { minLength: 2, maxLength: 6 }), async (s, acts) => {
      const valid = new Set([OLD.refreshToken, 'ghr_Bob', 'ghr_Signed'])
      const sent: string[] = []
      let made = 0
      await using rig = await signedIn(async ({ form }) => {
        const { refresh_token: used = '' } = form
        sent.push(used)
        await s.schedule(Promise.resolve(), `answer for ${used}`)
        if (!valid.delete(used)) return refuses('bad_refresh_token')
        valid.add(`ghr_New${++made}`)
        return pair(made)
      })
      await rig.tokens.save('bob', { ...OLD, refreshToken: 'ghr_Bob', expiresAt: NOW, origin: WEB })
      const run = (name: string): Promise<unknown> => {
        if (name === 'revoke') return rig.tokens.revoke('ada')
        if (name === 'sign in') return rig.tokens.save('ada', { ...SIGNED, refreshToken: 'ghr_Signed' })
        return renewToken(rig.parts, name === 'renew' ? 'ada' : 'bob')
      }
      const all = Promise.allSettled(
        acts.map(async (name) => {
          await s.schedule(Promise.resolve(), name)
          return run(name)
        }),
      )
      await s.waitFor(all)
      for (const result of await all)
        if (result.status === 'rejected' && result.reason.kind !== 'unauthenticated') throw result.reason
      expect(new Set(sent).size).toBe(sent.length)
      const refreshToken = (await rig.tokens.refreshable('ada'))?.refreshToken
      expect(refreshToken === undefined || valid.has(refreshToken)).toBe(true)
      const locks = Object.keys(await rig.contents()).filter((key) => key.startsWith('refresh-lock:'))
      expect(locks).toEqual([])
    }),
    { numRuns: 20 },
  )
})

describe('a token that is about to expire', () => {
  it('waits for another process, for 45 s, unless its signal ends that', async () => {
    await using rig = await signedIn()
    await rig.store.put('refresh-lock:ada', { id: 'another', pid: 1 })
    const clock = (): number => (rig.time.now += 5000)
    expect(await failure(renewToken({ ...rig.parts, clock }, 'ada'))).toMatchObject({
      kind: 'timed_out',
      message: 'Another process is renewing a token and did not finish in 45 s',
    })
    const reason = new RelayError('cancelled', 'Interrupted')
    const waiting = renewToken(rig.parts, 'ada', { signal: AbortSignal.abort(reason) })
    await expect(waiting).rejects.toMatchObject({ name: 'AbortError', cause: reason })
    expect(rig.asked).toEqual([])
  })

  it('is not lost when the signal aborts while the code host answers', async () => {
    const stop = new AbortController()
    await using rig = await signedIn(() => {
      stop.abort()
      return pair(1)
    })
    expect((await renewToken(rig.parts, 'ada', { signal: stop.signal })).accessToken).toBe('gho_New1')
    expect(await stored(rig)).toEqual(['gho_New1', 'ghr_New1'])
  })
})

describe('a renewal that fails', () => {
  const AGAIN = ')'
  const CHECK = '); check RELAY_CLIENT_ID and RELAY_CLIENT_SECRET'
  const sent: readonly [string, Answer, string, string, boolean][] = [
    ['an invalid grant', refuses('invalid_grant', 400), 'unauthenticated', AGAIN, false],
    ["GitHub's", refuses('bad_refresh_token'), 'unauthenticated', AGAIN, false],
    ["Gitea's, for one that was used", refuses('unauthorized_client', 400), 'unauthenticated', AGAIN, false],
    ['an unknown client', refuses('invalid_client', 400), 'not_configured', CHECK, true],
    ["GitHub's wrong secret", refuses('incorrect_client_credentials'), 'not_configured', CHECK, true],
    ["GitHub's unknown id", refuses('Not Found', 404), 'provider_failed', 'an unknown error)', true],
    ['502', { status: 502 }, 'provider_failed', 'the token endpoint answered 502)', true],
    ['a reset', 'reset', 'provider_failed', '(connection closed before an answer))', true],
  ]
  it.each(sent)(
    'by %s drops the refresh token only if that is invalid',
    async (_, reply, kind, why, stays) => {
      await using rig = await signedIn(reply)
      const renewal = renewToken(rig.parts, 'ada')
      expect(await failure(renewal)).toMatchObject({ kind, message: expect.stringContaining(why) })
      expect(await stored(rig)).toEqual([OLD.accessToken, stays ? OLD.refreshToken : undefined])
      expect((await shown(renewal)) + rig.log.text()).not.toMatch(/gho_|ghr_|the-client-secret/)
    },
  )

  it.each<[string, Answer]>([
    ['renewed', pair(1)],
    ['refused', refuses('bad_refresh_token')],
  ])('because of a new sign-in, whose token stays: the %s result is dropped', async (_, reply) => {
    await using rig = await signedIn(async () => {
      await rig.tokens.save('ada', SIGNED)
      return reply
    })
    expect((await renewToken(rig.parts, 'ada')).accessToken).toBe('gho_Signed')
    expect(await stored(rig)).toEqual(['gho_Signed', undefined])
  })

  const dropped = 'warn A renewed token of ada was dropped, and may still be valid at https://git.example'
  const warning = `${dropped}: GitHub failed (502); the request may have been carried out all the same`
  const isNew = ({ form }: Asked): boolean => JSON.stringify(form).includes('gho_New1')
  const dropping: readonly [string, Answer, readonly string[]][] = [
    ['revokes it', { status: 204 }, []],
    ['says that it may be valid', { status: 502 }, [warning]],
  ]

  it.each(dropping)(
    'because of a revocation meanwhile brings no token back, and %s',
    async (_, reply, lines) => {
      await using rig = await signedIn(async (asked) => {
        if (!isRefresh(asked)) return reply
        await rig.tokens.revoke('ada')
        return pair(1)
      })
      expect(await failure(renewToken(rig.parts, 'ada'))).toMatchObject({
        kind: 'unauthenticated',
        message: 'The token of ada was revoked meanwhile',
      })
      expect(await stored(rig)).toEqual([undefined, undefined])
      expect(rig.asked.map((asked) => [asked.method, isNew(asked)])).toEqual([
        ['POST', false],
        ['DELETE', true],
      ])
      expect(rig.log.lines).toEqual(lines)
    },
  )

  it.each(dropping)('because the new token cannot be stored, %s', async (_, reply, lines) => {
    await using rig = await signedIn((asked) => {
      if (!isRefresh(asked)) return reply
      rig.broken.add('update')
      return pair(1)
    })
    expect(await failure(renewToken(rig.parts, 'ada'))).toMatchObject({ kind: 'storage' })
    expect(rig.asked.map(isNew)).toEqual([false, true])
    expect(rig.log.lines).toEqual(lines)
  })
})

it.each([true, false])(
  'stores the pair when the first write fails; made all the same: %s',
  async (isMade) => {
    await using rig = await signedIn()
    const write = rig.tokens.renew.bind(rig.tokens)
    vi.spyOn(rig.tokens, 'renew').mockImplementationOnce(async (...args) => {
      if (isMade) await write(...args)
      throw new RelayError('storage', 'the connection was lost')
    })
    expect(await renewToken(rig.parts, 'ada')).toMatchObject({ accessToken: 'gho_New1' })
    expect(await stored(rig)).toEqual(['gho_New1', 'ghr_New1'])
    expect(rig.asked.map(isRefresh)).toEqual([true])
  },
)

describe('revoking', () => {
  it.each([204, 404, 422])('is done here first, and there when it answers %i', async (status) => {
    await using rig = await signedIn(async () => {
      expect(await stored(rig)).toEqual([undefined, undefined])
      return { status }
    })
    expect(await revokeToken(rig.parts, 'ada')).toEqual({ removed: true, upstream: 'revoked' })
    expect(rig.asked).toHaveLength(1)
  })

  it.each<[string, Partial<TokenGrant>, string]>([
    ['of another code host', { origin: 'https://elsewhere.example' }, 'elsewhere'],
    ['made by the user', { accessToken: 'ghp_x' }, 'unsupported'],
  ])('a token %s sends nothing', async (_, grant, upstream) => {
    await using rig = await signedIn(pair(1), grant)
    expect(await revokeToken(rig.parts, 'ada')).toEqual({ removed: true, upstream })
    expect([rig.asked, await rig.contents()]).toEqual([[], {}])
  })

  it.each<[string, Answer, string, readonly boolean[]]>([
    ['ends its refresh token, too', pair(1), 'revoked', [true, false]],
    ['leaves nothing that may live if it is refused', refuses('bad_refresh_token'), 'skipped', [true]],
    ['says that its refresh token may live if that fails', { status: 502 }, 'expired', [true]],
  ])('an expired one %s', async (_, renewal, upstream, refreshes) => {
    await using rig = await signedIn((asked) => (isRefresh(asked) ? renewal : { status: 204 }))
    rig.time.now += 60_000
    expect(await revokeToken(rig.parts, 'ada')).toEqual({ removed: true, upstream })
    expect([rig.asked.map(isRefresh), await rig.contents()]).toEqual([refreshes, {}])
  })

  it.each<[number, string, string, string]>([
    [401, 'Bad credentials', 'forbidden', 'it does not know this client id and secret'],
    [403, 'no the-client-secret, no gho_Old', 'forbidden', 'no [secret], no [secret]'],
  ])('is done here also when the code host answers %i %s', async (status, text, kind, message) => {
    await using rig = await signedIn({ status, body: { message: text } })
    const { removed, upstream } = await revokeToken(rig.parts, 'ada')
    expect({ removed, upstream }).toMatchObject({ removed: true, upstream: { failed: { kind } } })
    expect(String(Object(upstream).failed)).toContain(message)
    expect(await rig.contents()).toEqual({})
  })
})
