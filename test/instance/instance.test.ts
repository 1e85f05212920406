import { createHmac } from 'node:crypto'
import type { RequestListener } from 'node:http'
import { describe, expect, it } from 'vitest'
import type { Json } from '../../src/store/contract.js'
import { type Instance, takeInstance } from '../../src/instance/instance.js'
import { createLoopbackClient, type SendRequest } from '../../src/net/loopback-client.js'
import { answer, deadPid, profile, serve, findInstance } from './rig.js'

const NOW = Date.UTC(2026, 0, 1)
const KEY = Buffer.alloc(32, 7).toString('base64url')
const own = {
  pid: process.pid,
  url: 'http://127.0.0.1:1',
  publicUrl: 'http://127.0.0.1:1',
  provider: 'github',
  providerUrl: 'https://github.com',
}

/** A record that another process wrote long ago. That process, the parent of this one, is alive. */
const oldRecord = (over: { [name: string]: Json } = {}) => ({
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
  it('writes a record with its own key', async () => {
    await using one = await profile()
    await using two = await profile()
    const instance = await takeInstance(one.store, own, { clock: () => NOW })
    const other = await takeInstance(two.store, { ...own, clientId: 'client' }, { clock: () => NOW })
    expect(other.record.clientId).toBe('client')
    expect(instance.record).toEqual({
      v: 1,
      ...own,
      clientId: null,
      maxBody: null,
      key: expect.any(String),
      startedAt: '2026-01-01T00:00:00.000Z',
    })
    expect(await one.store.get('instance')).toEqual(instance.record)
    expect(Buffer.from(instance.record.key, 'base64url')).toHaveLength(32)
    expect(instance.record.key).not.toBe(other.record.key)
    expect(instance.prove('a challenge')).toBe(hmac(instance.record.key, 'a challenge'))
  })

  it('is refused with process and address while another instance proves that it serves the profile', async () => {
    await using server = await serve(answer((challenge) => hmac(KEY, challenge)))
    const record = oldRecord({ url: server.url })
    await using taken = await profile(record)
    await expect(takeInstance(taken.store, own)).rejects.toMatchObject({
      kind: 'unavailable',
      message: `This profile is already served by process ${process.ppid} at ${server.url}. Stop it, or choose another profile with --profile`,
    })
    expect(await taken.store.get('instance')).toEqual(record)
  })

  it('sends no challenge when the recorded process is gone', async () => {
    await using server = await serve(answer((challenge) => hmac(KEY, challenge)))
    await using taken = await profile(oldRecord({ pid: deadPid(), url: server.url }))
    const instance = await takeInstance(taken.store, own)
    expect(await taken.store.get('instance')).toEqual(instance.record)
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
  ])('succeeds when the address belongs to a program that %s', async (_, listener) => {
    await using squatter = await serve(listener)
    await using taken = await profile(oldRecord({ url: squatter.url }))
    const began = Date.now()
    const instance = await takeInstance(taken.store, own)
    expect(Date.now() - began).toBeLessThan(4000)
    expect(await taken.store.get('instance')).toEqual(instance.record)
    expect(squatter.requests.length).toBeGreaterThan(0)
  })

  it('succeeds when the address redirects to a proof elsewhere', async () => {
    await using real = await serve(answer((challenge) => hmac(KEY, challenge)))
    await using squatter = await serve((_, response) =>
      response.writeHead(307, { location: `${real.url}/health` }).end(),
    )
    await using taken = await profile(oldRecord({ url: squatter.url }))
    await takeInstance(taken.store, own)
    expect(real.requests).toEqual([])
  })

  it.each<[string, Json]>([
    ['not a record', 'mine'],
    ['of a later version', oldRecord({ v: 2 })],
    ['without a process id', oldRecord({ pid: 0 })],
    ['without a valid address', oldRecord({ url: 'nowhere' })],
  ])('succeeds when the record is %s', async (_, record) => {
    await using taken = await profile(record)
    const instance = await takeInstance(taken.store, own)
    expect(await taken.store.get('instance')).toEqual(instance.record)
  })

  it('sends a fresh challenge and nothing else to the recorded address', async () => {
    await using squatter = await serve((_, response) => response.end())
    await using taken = await profile(oldRecord({ url: squatter.url }))
    await findInstance(taken.store)
    await takeInstance(taken.store, own)
    expect(squatter.requests.map(({ line }) => line)).toEqual(['GET /health', 'GET /health'])
    const challenges = squatter.requests.map(({ headers }) => String(headers['x-relay-challenge']))
    expect(challenges.map((challenge) => Buffer.from(challenge, 'base64url').length)).toEqual([32, 32])
    expect(new Set(challenges).size).toBe(2)
    for (const { headers } of squatter.requests) {
      expect(Object.keys(headers).toSorted()).toEqual(['connection', 'host', 'x-relay-challenge'])
      expect(JSON.stringify(headers)).not.toContain(KEY)
    }
  })

  it('waits for an instance that is starting, and is refused once it answers', async () => {
    const startedAt = new Date().toISOString()
    let starting = true
    await using server = await serve((request, response) => {
      if (starting) response.end()
      else answer((challenge) => hmac(KEY, challenge))(request, response)
    })
    await using taken = await profile(oldRecord({ startedAt, url: server.url }))
    const taking = takeInstance(taken.store, own)
    while (server.requests.length < 3) await new Promise(setImmediate)
    starting = false
    await expect(taking).rejects.toMatchObject({ kind: 'unavailable' })
  })

  it('waits at most as long as a start takes', async () => {
    await using taken = await profile(oldRecord({ startedAt: new Date(NOW).toISOString() }))
    let now = NOW
    const instance = await takeInstance(taken.store, own, { clock: () => (now += 2000) })
    expect(await taken.store.get('instance')).toEqual(instance.record)
  })

  it('rejects with the reason of the signal that aborts it', async () => {
    const controller = new AbortController()
    await using server = await serve(() => controller.abort(new Error('enough')))
    const record = oldRecord({ url: server.url })
    await using taken = await profile(record)
    await expect(takeInstance(taken.store, own, { signal: controller.signal })).rejects.toThrow('enough')
    expect(await taken.store.get('instance')).toEqual(record)
  })
})

describe('an instance', () => {
  it('is found once it proves itself', async () => {
    await using taken = await profile()
    expect(await findInstance(taken.store)).toBeUndefined()
    let instance: Instance | undefined
    await using server = await serve(answer((challenge) => instance?.prove(challenge) ?? ''))
    const taking = await takeInstance(taken.store, { ...own, url: server.url })
    expect(await findInstance(taken.store)).toBeUndefined()
    instance = taking
    expect(await findInstance(taken.store)).toEqual(instance.record)
  })

  it('is not found when its process is gone or another instance has its address', async () => {
    await using server = await serve(answer((challenge) => hmac(KEY, challenge)))
    await using dead = await profile(oldRecord({ url: server.url, pid: deadPid() }))
    await using moved = await profile(
      oldRecord({ url: server.url, key: Buffer.alloc(32).toString('base64url') }),
    )
    expect(await findInstance(dead.store)).toBeUndefined()
    expect(await findInstance(moved.store)).toBeUndefined()
  })

  it('proves itself on the connection that later requests use', async () => {
    const requests: string[] = []
    using client = createLoopbackClient()
    await using server = await serve(answer((challenge) => hmac(KEY, challenge)))
    await using taken = await profile(oldRecord({ url: server.url }))
    const send: SendRequest = async (url, request, options) => {
      requests.push(url.href)
      return await client.send(url, request, options)
    }
    expect(await findInstance(taken.store, { send })).toMatchObject({ url: server.url })
    expect(requests).toEqual([`${server.url}/health`])
  })

  it('releases the profile', async () => {
    await using taken = await profile()
    const instance = await takeInstance(taken.store, own)
    await instance.release()
    await instance.release()
    expect(await taken.store.list('')).toEqual([])
  })

  it('leaves the record of its successor alone', async () => {
    await using taken = await profile()
    const instance = await takeInstance(taken.store, own)
    const successor = await takeInstance(taken.store, own)
    await instance.release()
    expect(await taken.store.get('instance')).toEqual(successor.record)
  })
})
