import { describe, expect, it } from 'vitest'
import { RelayError } from '../../src/base/errors.js'
import { renew } from '../../src/oauth/refresh.js'
import { createProvider } from '../../src/providers/open.js'
import type { Store } from '../../src/store/contract.js'
import { openDatabase } from '../../src/store/open.js'
import { createTokens } from '../../src/tokens/tokens.js'
import { answerJson, AuthorizationServer } from '../helpers/authorization-server.js'
import { emptyFolder } from '../helpers/context.js'
import { start } from '../store/programs/start.js'
import { createRenewRig, failed, github, holder, NEW, OLD, rows } from './refresh-rig.js'
import { contents, MINUTE, NOW } from './rig.js'

const LOCK = 'refresh-lock:alice'

describe('many who renew one token at once in one process', () => {
  it('ask the provider once, and all get what it gave', async () => {
    await using rig = await createRenewRig()
    const renewed = await Promise.all(Array.from({ length: 20 }, () => rig.renew()))
    expect(renewed).toEqual(Array(20).fill(holder(rig)))
    expect(rig.server.requests).toHaveLength(1)
    expect(await rig.contents()).toEqual(rows(rig.server.url, holder(rig), NEW.refreshToken))
  })

  it('do so also when the new token lives less than a minute', async () => {
    await using rig = await createRenewRig()
    rig.server.grant = { ...github(NEW), expires_in: 30 }
    const renewed = await Promise.all(Array.from({ length: 5 }, () => rig.renew()))
    expect(renewed).toEqual(Array(5).fill(holder(rig, { lives: 30_000 })))
    expect(rig.server.requests).toHaveLength(1)
  })

  it('all learn that the provider refused, which is asked once', async () => {
    await using rig = await createRenewRig()
    rig.time.now = NOW + MINUTE
    rig.server.refreshTokens.clear()
    const attempts = Array.from({ length: 5 }, () => failed(rig))
    const kinds = (await Promise.all(attempts)).map(({ kind }) => kind)
    expect(kinds).toEqual(Array(5).fill('unauthenticated'))
    expect(rig.server.requests).toHaveLength(1)
    expect(await rig.contents()).toEqual({})
  })

  it('do not wait for who renews another user’s', async () => {
    await using rig = await createRenewRig()
    await rig.parts.store.put('refresh-lock:bob', 'somebody')
    expect(await rig.renew()).toEqual(holder(rig))
  })
})

describe('the lock', () => {
  it('lies for 30 seconds while the provider is asked', async () => {
    await using rig = await createRenewRig()
    const asked = new Promise((resolve) => (rig.server.misbehave = resolve))
    const attempt = failed(rig)
    await asked
    expect((await rig.contents())[LOCK]).toEqual(expect.any(String))
    rig.time.now = NOW + 29_999
    expect(Object.keys(await rig.contents())).toContain(LOCK)
    rig.time.now = NOW + 30_000
    expect(Object.keys(await rig.contents())).not.toContain(LOCK)
    await rig.server[Symbol.asyncDispose]()
    expect(await attempt).toMatchObject({ kind: 'provider_failed' })
  })

  it('of one that died is waited for, and taken over when it ends', async () => {
    await using rig = await createRenewRig()
    const { store } = rig.parts
    await store.put(LOCK, 'somebody', { expiresAt: NOW + 30_000 })
    const tries: boolean[] = []
    const putIfAbsent: Store['putIfAbsent'] = async (...row) => {
      const mine = await store.putIfAbsent(...row)
      tries.push(mine)
      rig.time.now += 15_000
      return mine
    }
    const renewed = await renew({ ...rig.parts, store: { ...store, putIfAbsent } }, 'alice')
    expect(tries).toEqual([false, false, true])
    expect(renewed).toEqual(holder(rig, { lives: 45_000 + 28_800_000 }))
    expect(rig.server.requests).toHaveLength(1)
    expect(Object.keys(await rig.contents())).not.toContain(LOCK)
  })

  it('that was got just after another had renewed the token leaves nothing to do', async () => {
    await using rig = await createRenewRig()
    const { store } = rig.parts
    const origin = rig.server.url
    const putIfAbsent: Store['putIfAbsent'] = async (...row) => {
      await rig.tokens.renew('alice', { refreshToken: OLD.refreshToken, origin }, { ...holder(rig), ...NEW })
      return store.putIfAbsent(...row)
    }
    expect(await renew({ ...rig.parts, store: { ...store, putIfAbsent } }, 'alice')).toEqual(holder(rig))
    expect(rig.server.requests).toEqual([])
    expect(await rig.contents()).toEqual(rows(origin, holder(rig), NEW.refreshToken))
  })

  it('that was taken over is left to its new holder', async () => {
    await using rig = await createRenewRig()
    rig.server.misbehave = (response) => {
      rig.time.now = NOW + 30_000
      void rig.parts.store.putIfAbsent(LOCK, 'another').then(() => answerJson(200, github(NEW))(response))
    }
    await rig.renew()
    expect((await rig.contents())[LOCK]).toBe('another')
  })

  it('is waited for 45 seconds', async () => {
    await using rig = await createRenewRig()
    await rig.parts.store.put(LOCK, 'somebody')
    // Hurries on with every look at it.
    const clock = () => (rig.time.now += 5000)
    expect(await failed(rig, renew({ ...rig.parts, clock }, 'alice'))).toEqual({
      kind: 'timed_out',
      message: 'Others are renewing the same token and do not finish',
      told: [],
    })
    expect(rig.server.requests).toEqual([])
  })
})

describe('a signal', () => {
  it('ends the waiting for others', async () => {
    await using rig = await createRenewRig()
    await rig.parts.store.put(LOCK, 'somebody')
    const controller = new AbortController()
    const attempt = rig.renew('alice', { signal: controller.signal })
    const reason = new RelayError('cancelled', 'Interrupted')
    controller.abort(reason)
    await expect(attempt).rejects.toMatchObject({ name: 'AbortError', cause: reason })
  })

  it('that has come already leaves the provider alone', async () => {
    await using rig = await createRenewRig()
    const before = await rig.contents()
    const reason = new RelayError('cancelled', 'Interrupted')
    await expect(rig.renew('alice', { signal: AbortSignal.abort(reason) })).rejects.toBe(reason)
    expect([rig.server.requests, await rig.contents()]).toEqual([[], before])
  })

  it('that comes while the provider is asked loses nothing', async () => {
    await using rig = await createRenewRig()
    const controller = new AbortController()
    rig.server.misbehave = (response) => {
      controller.abort()
      answerJson(200, github(NEW))(response)
    }
    expect(await rig.renew('alice', { signal: controller.signal })).toEqual(holder(rig))
    expect(await rig.contents()).toEqual(rows(rig.server.url, holder(rig), NEW.refreshToken))
  })
})

describe('processes that renew one token of a shared store', () => {
  const PROGRAM = 'oauth/programs/renew'

  /** A token that is to be renewed, as it lives less than a minute; and lives on by a clock that is half a minute ahead. */
  async function shared() {
    const server = await AuthorizationServer.start()
    const folder = emptyFolder()
    const { origin } = createProvider({ name: 'github', url: server.url })
    await using database = await openDatabase({ kind: 'file', folder })
    await createTokens(database.store).save('alice', { ...OLD, expiresAt: Date.now() + 50_000, origin })
    server.refreshTokens.add(OLD.refreshToken)
    server.grant = github(NEW)
    return { server, folder, args: [folder, server.url] }
  }

  async function stored(folder: string) {
    await using database = await openDatabase({ kind: 'file', folder })
    return await contents(database.store)
  }

  it('ask the provider once, and all get what it gave', async () => {
    const { server, folder, args } = await shared()
    await using _ = server
    await using one = start(PROGRAM, args)
    await using two = start(PROGRAM, args)
    await using three = start(PROGRAM, args)
    const all = [one, two, three]
    for (const process of all) expect(await process.line()).toBe('"ready"')
    for (const process of all) process.tell('go')
    const [first, ...others] = (await Promise.all(all.map((process) => process.line()))).map((line) =>
      JSON.parse(line),
    )
    expect(first).toEqual({
      userId: 'alice',
      accessToken: NEW.accessToken,
      expiresAt: first.expiresAt,
      origin: server.url,
    })
    expect(others).toEqual([first, first])
    expect(server.requests).toHaveLength(1)
    expect(await stored(folder)).toEqual(rows(server.url, first, NEW.refreshToken))
  })

  it('take over from one that was killed while the provider had not answered', async () => {
    const { server, folder, args } = await shared()
    await using _ = server
    const asked = new Promise((resolve) => (server.misbehave = resolve))
    await using killed = start(PROGRAM, args)
    await killed.line()
    killed.tell('go')
    await asked
    await killed.kill()
    expect(Object.keys(await stored(folder))).toContain(LOCK)

    server.misbehave = undefined
    await using next = start(PROGRAM, [...args, '30000'])
    await next.line()
    next.tell('go')
    const renewed = JSON.parse(await next.line())
    expect(renewed.accessToken).toBe(NEW.accessToken)
    expect(await stored(folder)).toEqual(rows(server.url, renewed, NEW.refreshToken))
  })

  it('ask for a new sign-in when one was killed after the provider had spent the refresh token', async () => {
    const { server, folder, args } = await shared()
    await using _ = server
    const asked = new Promise((resolve) => (server.misbehave = resolve))
    await using killed = start(PROGRAM, args)
    await killed.line()
    killed.tell('go')
    await asked
    await killed.kill()

    server.misbehave = undefined
    server.refreshTokens.clear()
    await using next = start(PROGRAM, [...args, '30000'])
    await next.line()
    next.tell('go')
    expect(JSON.parse(await next.line())).toEqual({
      kind: 'unauthenticated',
      message:
        'The token of alice could not be renewed (the provider said bad_refresh_token); sign in again: relay login',
    })
    expect(Object.keys(await stored(folder)).filter((key) => key.startsWith('refresh'))).toEqual([])
  })
})
