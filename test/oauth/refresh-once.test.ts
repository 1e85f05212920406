import { describe, expect, it } from 'vitest'
import { RelayError } from '../../src/base/errors.js'
import { renew } from '../../src/oauth/refresh.js'
import { createProvider } from '../../src/providers/open.js'
import type { Store } from '../../src/store/kv.js'
import { openDatabase } from '../../src/store/open.js'
import { Tokens } from '../../src/tokens/tokens.js'
import { answerJson, AuthorizationServer } from '../helpers/authorization-server.js'
import { emptyFolder } from '../helpers/context.js'
import { start } from '../store/programs/start.js'
import { BEFORE, createRenewRig, failed, github, owner, NEW, OLD, records } from './refresh-rig.js'
import { contents, MINUTE, NOW } from './rig.js'

const LOCK = 'refresh-lock:alice'

describe('concurrent renewals of one token in one process', () => {
  it('send one request, and all return its token', async () => {
    await using rig = await createRenewRig()
    const renewed = await Promise.all(Array.from({ length: 20 }, () => rig.renew()))
    expect(renewed).toEqual(Array(20).fill(owner(rig)))
    expect(rig.server.requests).toHaveLength(1)
    expect(await rig.contents()).toEqual(records(rig.server.url, owner(rig), NEW.refreshToken, BEFORE))
  })

  it('send one request even if the new token lives less than a minute', async () => {
    await using rig = await createRenewRig()
    rig.server.grant = { ...github(NEW), expires_in: 30 }
    const renewed = await Promise.all(Array.from({ length: 5 }, () => rig.renew()))
    expect(renewed).toEqual(Array(5).fill(owner(rig, { lives: 30_000 })))
    expect(rig.server.requests).toHaveLength(1)
  })

  it('send one request, and all fail when the provider refuses', async () => {
    await using rig = await createRenewRig()
    rig.time.now = NOW + MINUTE
    rig.server.refreshTokens.clear()
    const attempts = Array.from({ length: 5 }, () => failed(rig))
    const kinds = (await Promise.all(attempts)).map(({ kind }) => kind)
    expect(kinds).toEqual(Array(5).fill('unauthenticated'))
    expect(rig.server.requests).toHaveLength(1)
    expect(await rig.contents()).toEqual({})
  })

  it('do not wait for the renewal of another user’s token', async () => {
    await using rig = await createRenewRig()
    await rig.parts.store.put('refresh-lock:bob', 'another process')
    expect(await rig.renew()).toEqual(owner(rig))
  })
})

describe('the lock', () => {
  it('is held for 30 seconds during the request to the provider', async () => {
    await using rig = await createRenewRig()
    const asked = new Promise((resolve) => (rig.server.misbehave = resolve))
    const attempt = failed(rig)
    await asked
    expect((await rig.contents())[LOCK]).toEqual({ id: expect.any(String), pid: process.pid })
    rig.time.now = NOW + 29_999
    expect(Object.keys(await rig.contents())).toContain(LOCK)
    rig.time.now = NOW + 30_000
    expect(Object.keys(await rig.contents())).not.toContain(LOCK)
    await rig.server[Symbol.asyncDispose]()
    expect(await attempt).toMatchObject({ kind: 'provider_failed' })
  })

  it('of a dead process is awaited, and taken over when it expires', async () => {
    await using rig = await createRenewRig()
    const { store } = rig.parts
    await store.put(LOCK, 'another process', { expiresAt: NOW + 30_000 })
    const tries: boolean[] = []
    const putIfAbsent: Store['putIfAbsent'] = async (...row) => {
      const mine = await store.putIfAbsent(...row)
      tries.push(mine)
      rig.time.now += 15_000
      return mine
    }
    const renewed = await renew({ ...rig.parts, store: { ...store, putIfAbsent } }, 'alice')
    expect(tries).toEqual([false, false, true])
    expect(renewed).toEqual(owner(rig, { lives: 45_000 + 28_800_000 }))
    expect(rig.server.requests).toHaveLength(1)
    expect(Object.keys(await rig.contents())).not.toContain(LOCK)
  })

  it('that is acquired just after another renewal does nothing', async () => {
    await using rig = await createRenewRig()
    const { store } = rig.parts
    const origin = rig.server.url
    const putIfAbsent: Store['putIfAbsent'] = async (...row) => {
      await rig.tokens.renew('alice', { refreshToken: OLD.refreshToken, origin }, { ...owner(rig), ...NEW })
      return store.putIfAbsent(...row)
    }
    expect(await renew({ ...rig.parts, store: { ...store, putIfAbsent } }, 'alice')).toEqual(owner(rig))
    expect(rig.server.requests).toEqual([])
    expect(await rig.contents()).toEqual(records(origin, owner(rig), NEW.refreshToken, BEFORE))
  })

  it('that was taken over stays with its new owner', async () => {
    await using rig = await createRenewRig()
    rig.server.misbehave = (response) => {
      rig.time.now = NOW + 30_000
      void rig.parts.store.putIfAbsent(LOCK, 'another').then(() => answerJson(200, github(NEW))(response))
    }
    await rig.renew()
    expect((await rig.contents())[LOCK]).toBe('another')
  })

  it('is awaited for 45 seconds', async () => {
    await using rig = await createRenewRig()
    await rig.parts.store.put(LOCK, 'another process')
    // Hurries on with every look at it.
    const clock = () => (rig.time.now += 5000)
    expect(await failed(rig, renew({ ...rig.parts, clock }, 'alice'))).toEqual({
      kind: 'timed_out',
      message: 'Another process is renewing a token and did not finish in 45 s',
      leaked: [],
    })
    expect(rig.server.requests).toEqual([])
  })
})

describe('a signal', () => {
  it('stops waiting for other processes', async () => {
    await using rig = await createRenewRig()
    await rig.parts.store.put(LOCK, 'another process')
    const controller = new AbortController()
    const attempt = rig.renew('alice', { signal: controller.signal })
    const reason = new RelayError('cancelled', 'Interrupted')
    controller.abort(reason)
    await expect(attempt).rejects.toMatchObject({ name: 'AbortError', cause: reason })
  })

  it('that is already aborted prevents the request', async () => {
    await using rig = await createRenewRig()
    const before = await rig.contents()
    const reason = new RelayError('cancelled', 'Interrupted')
    await expect(rig.renew('alice', { signal: AbortSignal.abort(reason) })).rejects.toBe(reason)
    expect([rig.server.requests, await rig.contents()]).toEqual([[], before])
  })

  it('that aborts during the request loses nothing', async () => {
    await using rig = await createRenewRig()
    const controller = new AbortController()
    rig.server.misbehave = (response) => {
      controller.abort()
      answerJson(200, github(NEW))(response)
    }
    expect(await rig.renew('alice', { signal: controller.signal })).toEqual(owner(rig))
    expect(await rig.contents()).toEqual(records(rig.server.url, owner(rig), NEW.refreshToken, BEFORE))
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
    const before = { accessToken: OLD.accessToken, expiresAt: Date.now() + 50_000 }
    await new Tokens(database.store).save('alice', { ...OLD, ...before, origin })
    server.refreshTokens.add(OLD.refreshToken)
    server.grant = github(NEW)
    return { server, folder, before, args: [folder, server.url] }
  }

  async function stored(folder: string) {
    await using database = await openDatabase({ kind: 'file', folder })
    return await contents(database.store)
  }

  it('send one request, and all return its token', async () => {
    const { server, folder, before, args } = await shared()
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
    expect(await stored(folder)).toEqual(records(server.url, first, NEW.refreshToken, before))
  })

  it('take over from a process killed before the response', async () => {
    const { server, folder, before, args } = await shared()
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
    expect(await stored(folder)).toEqual(records(server.url, renewed, NEW.refreshToken, before))
  })

  it('require a new sign-in after a process was killed with the only copy of the new token', async () => {
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
        'The token of alice could not be renewed (the provider answered bad_refresh_token); sign in again: relay login',
    })
    expect(Object.keys(await stored(folder)).filter((key) => key.startsWith('refresh'))).toEqual([])
  })
})
