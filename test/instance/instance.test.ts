import { createHmac } from 'node:crypto'
import type { RequestListener } from 'node:http'
import { describe, expect, it } from 'vitest'
import type { Json } from '../../src/store/contract.js'
import { ask, type Ask } from '../../src/base/ask.js'
import { findInstance, type Instance, takeInstance } from '../../src/instance/instance.js'
import { answer, deadPid, profile, serve } from './rig.js'

const NOW = Date.UTC(2026, 0, 1)
const KEY = Buffer.alloc(32, 7).toString('base64url')
const own = {
  pid: process.pid,
  url: 'http://127.0.0.1:1',
  publicUrl: 'http://127.0.0.1:1',
  provider: 'github',
  providerUrl: 'https://github.com',
}

/** A row that another process left long ago. That process, our parent, lives. */
const left = (over: { [name: string]: Json } = {}) => ({
  v: 1,
  pid: process.ppid,
  url: 'http://127.0.0.1:1',
  publicUrl: 'http://127.0.0.1:1',
  provider: 'gitea',
  providerUrl: 'https://codeberg.org',
  key: KEY,
  startedAt: '2025-01-01T00:00:00.000Z',
  ...over,
})

const hmac = (key: string, challenge: string): string =>
  createHmac('sha256', Buffer.from(key, 'base64url')).update(challenge).digest('hex')

describe('taking a profile', () => {
  it('writes the row, with a key of its own', async () => {
    await using one = await profile()
    await using two = await profile()
    const instance = await takeInstance(one.store, own, { clock: () => NOW })
    const other = await takeInstance(two.store, own, { clock: () => NOW })
    expect(instance.row).toEqual({
      v: 1,
      ...own,
      key: expect.any(String),
      startedAt: '2026-01-01T00:00:00.000Z',
    })
    expect(await one.store.get('instance')).toEqual(instance.row)
    expect(Buffer.from(instance.row.key, 'base64url')).toHaveLength(32)
    expect(instance.row.key).not.toBe(other.row.key)
    expect(instance.prove('a challenge')).toBe(hmac(instance.row.key, 'a challenge'))
  })

  it('is refused, naming process and address, while an instance proves that it serves the profile', async () => {
    await using server = await serve(answer((challenge) => hmac(KEY, challenge)))
    const row = left({ url: server.url })
    await using taken = await profile(row)
    await expect(takeInstance(taken.store, own)).rejects.toMatchObject({
      kind: 'unavailable',
      message: `This profile is already served by process ${process.ppid} at ${server.url}: stop that one, or name another with --profile`,
    })
    expect(await taken.store.get('instance')).toEqual(row)
  })

  it('needs no question when the process in the row is gone', async () => {
    await using server = await serve(answer((challenge) => hmac(KEY, challenge)))
    await using taken = await profile(left({ pid: deadPid(), url: server.url }))
    const instance = await takeInstance(taken.store, own)
    expect(await taken.store.get('instance')).toEqual(instance.row)
    expect(server.requests).toEqual([])
  })

  it.each<[string, RequestListener]>([
    ['proves nothing', (_, response) => response.end('{"status":"ok"}')],
    [
      'proves with another key',
      answer((challenge) => hmac(Buffer.alloc(32, 8).toString('base64url'), challenge)),
    ],
    ['proves another challenge', answer(() => hmac(KEY, 'another'))],
    ['echoes the challenge', answer((challenge) => challenge)],
    ['answers with nothing', answer(() => '')],
    ['fails', (_, response) => response.writeHead(500).end()],
    ['hangs up', (request) => request.destroy()],
    ['never answers', () => {}],
    ['never ends its headers', (_, response) => response.socket?.write('HTTP/1.1 200 OK\r\nX: y')],
  ])('succeeds where the address belongs to a program that %s', async (_, listener) => {
    await using squatter = await serve(listener)
    await using taken = await profile(left({ url: squatter.url }))
    const began = Date.now()
    const instance = await takeInstance(taken.store, own)
    expect(Date.now() - began).toBeLessThan(4000)
    expect(await taken.store.get('instance')).toEqual(instance.row)
    expect(squatter.requests.length).toBeGreaterThan(0)
  })

  it('succeeds where the address only points to a proof elsewhere', async () => {
    await using real = await serve(answer((challenge) => hmac(KEY, challenge)))
    await using squatter = await serve((_, response) =>
      response.writeHead(307, { location: `${real.url}/health` }).end(),
    )
    await using taken = await profile(left({ url: squatter.url }))
    await takeInstance(taken.store, own)
    expect(real.requests).toEqual([])
  })

  it.each<[string, Json]>([
    ['no row at all', 'mine'],
    ['of a version to come', left({ v: 2 })],
    ['without a process', left({ pid: 0 })],
    ['with no address', left({ url: 'nowhere' })],
  ])('succeeds where the row is %s', async (_, row) => {
    await using taken = await profile(row)
    const instance = await takeInstance(taken.store, own)
    expect(await taken.store.get('instance')).toEqual(instance.row)
  })

  it('tells whoever listens at the address nothing but a fresh challenge', async () => {
    await using squatter = await serve((_, response) => response.end())
    await using taken = await profile(left({ url: squatter.url }))
    await findInstance(taken.store)
    await takeInstance(taken.store, own)
    expect(squatter.requests.map(({ line }) => line)).toEqual(['GET /health', 'GET /health'])
    const challenges = squatter.requests.map(({ headers }) => String(headers['x-relay-challenge']))
    expect(challenges.map((challenge) => Buffer.from(challenge, 'base64url').length)).toEqual([32, 32])
    expect(new Set(challenges).size).toBe(2)
    for (const { headers } of squatter.requests) {
      expect(Object.keys(headers).toSorted()).toEqual(['host', 'x-relay-challenge'])
      expect(JSON.stringify(headers)).not.toContain(KEY)
    }
  })

  it('waits for one that has just begun, and is refused once that one listens', async () => {
    const startedAt = new Date().toISOString()
    let starting = true
    await using server = await serve((request, response) => {
      if (starting) response.end()
      else answer((challenge) => hmac(KEY, challenge))(request, response)
    })
    await using taken = await profile(left({ startedAt, url: server.url }))
    const taking = takeInstance(taken.store, own)
    while (server.requests.length < 3) await new Promise(setImmediate)
    starting = false
    await expect(taking).rejects.toMatchObject({ kind: 'unavailable' })
  })

  it('waits no longer than a start takes', async () => {
    await using taken = await profile(left({ startedAt: new Date(NOW).toISOString() }))
    let now = NOW
    const instance = await takeInstance(taken.store, own, { clock: () => (now += 2000) })
    expect(await taken.store.get('instance')).toEqual(instance.row)
  })

  it('ends with the caller’s reason when it is cancelled', async () => {
    const controller = new AbortController()
    await using server = await serve(() => controller.abort(new Error('enough')))
    const row = left({ url: server.url })
    await using taken = await profile(row)
    await expect(takeInstance(taken.store, own, { signal: controller.signal })).rejects.toThrow('enough')
    expect(await taken.store.get('instance')).toEqual(row)
  })
})

describe('an instance', () => {
  it('is found by others once it proves itself', async () => {
    await using taken = await profile()
    expect(await findInstance(taken.store)).toBeUndefined()
    let instance: Instance | undefined
    await using server = await serve(answer((challenge) => instance?.prove(challenge) ?? ''))
    const taking = await takeInstance(taken.store, { ...own, url: server.url })
    expect(await findInstance(taken.store)).toBeUndefined()
    instance = taking
    expect(await findInstance(taken.store)).toEqual(instance.row)
  })

  it('is not found when its process is gone or its address is another’s', async () => {
    await using server = await serve(answer((challenge) => hmac(KEY, challenge)))
    await using dead = await profile(left({ url: server.url, pid: deadPid() }))
    await using moved = await profile(left({ url: server.url, key: Buffer.alloc(32).toString('base64url') }))
    expect(await findInstance(dead.store)).toBeUndefined()
    expect(await findInstance(moved.store)).toBeUndefined()
  })

  it('proves itself where more is to be asked', async () => {
    const questions: string[] = []
    await using server = await serve(answer((challenge) => hmac(KEY, challenge)))
    await using taken = await profile(left({ url: server.url }))
    const asking: Ask = async (url, question, options) => {
      questions.push(url.href)
      return await ask(url, question, options)
    }
    expect(await findInstance(taken.store, { ask: asking })).toMatchObject({ url: server.url })
    expect(questions).toEqual([`${server.url}/health`])
  })

  it('gives the profile back', async () => {
    await using taken = await profile()
    const instance = await takeInstance(taken.store, own)
    await instance.release()
    await instance.release()
    expect(await taken.store.list('')).toEqual([])
  })

  it('leaves a row alone that is another’s by now', async () => {
    await using taken = await profile()
    const instance = await takeInstance(taken.store, own)
    const usurper = await takeInstance(taken.store, own)
    await instance.release()
    expect(await taken.store.get('instance')).toEqual(usurper.row)
  })
})
