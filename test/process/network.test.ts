import path from 'node:path'
import { describe, expect, it } from 'vitest'
import { place } from '../kit/place.js'
import { receiver } from '../kit/receiver.js'

// What stands between relay and other machines.

describe('a host that is two seconds away', () => {
  const preload = `--require=${path.resolve('test/kit/slow-connect.cjs')}`

  it.each([
    ['two addresses of one kind', '127.0.0.1,127.0.0.2'],
    ['an address of each kind, of which one leads nowhere', '127.0.0.1,fd00:dead::1'],
    ['the same in the other order', 'fd00:dead::1,127.0.0.1'],
  ])('is reached, with %s', async (_, addresses) => {
    await using target = await receiver(202)
    const env = { NODE_OPTIONS: preload, FAR_ADDRESSES: addresses, FAR_MS: '2000' }
    await using here = await place({ host: 'none' })
    const { port } = new URL(target.url)
    const relay = await here.serveWith({ built: true, env }, '--forward', `http://app.localhost:${port}/`)
    await relay.deliver()
    const attempt = await relay.object({ type: 'attempt' })
    expect(attempt).toMatchObject({ outcome: 'succeeded', status: 202 })
  })
})

describe('a proxy', () => {
  it.each([
    ['HTTP_PROXY', 'http://'],
    ['http_proxy', 'http://a b'],
    ['ALL_PROXY', 'socks5://127.0.0.1:1080'],
  ])('that cannot be used (%s=%s) is named with its variable', async (name, value) => {
    await using here = await place({ host: 'none', env: { [name]: value } })
    const relay = await here.serveWith({ built: true }, '--forward', 'http://app.invalid/')
    await relay.deliver()
    const { error } = await relay.object({ type: 'attempt' })
    expect(error).toMatch(new RegExp(`^${name} (?:is not the address of a proxy|names a SOCKS proxy)`))
  })
})

describe('a wall clock that is set back by an hour', () => {
  it('stops no target that is down, and none that asked for a retry', async () => {
    const preload = `--require=${path.resolve('test/kit/set-back.cjs')}`
    await using target = await receiver()
    await target.down()
    await using busy = await receiver()
    busy.answers(503)
    await using here = await place({ host: 'none' })
    const forward = ['--forward', target.url, '--forward', busy.url]
    const relay = await here.serveWith({ built: true, env: { NODE_OPTIONS: preload } }, ...forward)
    await relay.deliver()
    await relay.object({ type: 'target', state: 'down' })
    await relay.object({ type: 'attempt', status: 503 })
    relay.kill('SIGUSR2')
    await relay.says('the clock was set back')
    await target.up()
    const succeeded = await relay.objects({ type: 'attempt', outcome: 'succeeded' }, 2)
    expect(succeeded).toHaveLength(2)
    expect([target.received.length, busy.received.length]).toEqual([1, 2])
  })
})
