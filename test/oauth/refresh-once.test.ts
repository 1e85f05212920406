import { describe, expect, it } from 'vitest'
import { RelayError } from '../../src/base/errors.js'
import { renew } from '../../src/oauth/refresh.js'
import type { Store } from '../../src/store/kv.js'
import { answerJson } from '../helpers/authorization-server.js'
import { BEFORE, createRenewRig, failed, github, owner, NEW, OLD, records } from './refresh-rig.js'
import { MINUTE, NOW } from './rig.js'

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
  it('is held for 15 seconds during the request to the provider', async () => {
    await using rig = await createRenewRig()
    const asked = new Promise((resolve) => (rig.server.misbehave = resolve))
    const attempt = failed(rig)
    await asked
    expect((await rig.contents())[LOCK]).toEqual({ id: expect.any(String), pid: process.pid })
    rig.time.now = NOW + 14_999
    expect(Object.keys(await rig.contents())).toContain(LOCK)
    rig.time.now = NOW + 15_000
    expect(Object.keys(await rig.contents())).not.toContain(LOCK)
    await rig.server[Symbol.asyncDispose]()
    expect(await attempt).toMatchObject({ kind: 'provider_failed' })
  })

  it('of a dead process is awaited, and taken over when it expires', async () => {
    await using rig = await createRenewRig()
    const { store } = rig.parts
    await store.put(LOCK, 'another process', NOW + 15_000)
    const tries: unknown[] = []
    const update: Store['update'] = async (work) => {
      const result = await store.update(work)
      tries.push(result)
      if (result === false) rig.time.now += 7500
      return result
    }
    const renewed = await renew({ ...rig.parts, store: { ...store, update } }, 'alice')
    expect(tries.slice(0, 3)).toEqual([false, false, true])
    expect(renewed).toEqual(owner(rig, { lives: 15_000 + 28_800_000 }))
    expect(rig.server.requests).toHaveLength(1)
    expect(Object.keys(await rig.contents())).not.toContain(LOCK)
  })

  it('that is acquired just after another renewal does nothing', async () => {
    await using rig = await createRenewRig()
    const { store } = rig.parts
    const origin = rig.server.url
    const update: Store['update'] = async (work) => {
      await rig.tokens.renew('alice', { refreshToken: OLD.refreshToken, origin }, { ...owner(rig), ...NEW })
      return store.update(work)
    }
    expect(await renew({ ...rig.parts, store: { ...store, update } }, 'alice')).toEqual(owner(rig))
    expect(rig.server.requests).toEqual([])
    expect(await rig.contents()).toEqual(records(origin, owner(rig), NEW.refreshToken, BEFORE))
  })

  it('that was taken over stays with its new owner', async () => {
    await using rig = await createRenewRig()
    rig.server.misbehave = (response) => {
      rig.time.now = NOW + 15_000
      void rig.parts.store.put(LOCK, 'another').then(() => answerJson(200, github(NEW))(response))
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
