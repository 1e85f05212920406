import { Agent, ProxyAgent } from 'undici'
import { describe, expect, it } from 'vitest'
import type { TunnelStatus } from '../../src/tunnel/state.js'
import { githubDelivery, post } from '../helpers/delivery.js'
import { startProxy } from '../helpers/proxy.js'
import { scriptedServer } from '../helpers/scripted-server.js'
import { type TunnelServer, smee as startSmee } from '../kit/smee.js'
import { type RigOptions, startTunnel, through } from './rig.js'

/** Connects a tunnel, ends its connection with `interrupt`, and waits for the next one. Returns the reported reason. */
async function reasonOfEnd(
  smee: TunnelServer,
  interrupt: () => unknown,
  options: RigOptions = {},
  repair: () => unknown = () => {},
): Promise<string | null> {
  await using rig = await startTunnel(smee.channel, options)
  await rig.status({ roundTrip: 'ok' })
  const seen = rig.statuses.length
  await interrupt()
  const { why } = await rig.status({ state: 'waiting' }, seen)
  await repair()
  await rig.status({ state: 'connected', attempt: 0, retryAt: null, why: null, roundTrip: 'ok' }, seen)
  await post(smee.channel, githubDelivery())
  await rig.stored(1)
  return why
}

/** Starts a tunnel that connects only after `repair` was called. Returns its status before that. */
async function statusOfFailure(
  channel: string,
  smee: TunnelServer,
  repair: () => unknown,
  options: RigOptions = {},
): Promise<TunnelStatus> {
  await using rig = await startTunnel(channel, options)
  await rig.status({ state: 'waiting', attempt: 1 })
  const status = await rig.status({ state: 'waiting', attempt: 3 })
  await repair()
  await rig.status({ roundTrip: 'ok' })
  await post(smee.channel, githubDelivery())
  await rig.stored(1)
  return status
}

describe('a connection that ends', () => {
  it('is replaced when the server stops pinging without closing', async () => {
    await using smee = await startSmee({ pingEvery: 10 })
    expect(await reasonOfEnd(smee, () => smee.fallSilent(), { limits: { silence: 300 } })).toBe(
      'no traffic for 0.3 s',
    )
    expect(smee.connections).toBeGreaterThan(1)
  })

  it('stays open while the server pings', async () => {
    await using smee = await startSmee({ pingEvery: 10 })
    await using rig = await startTunnel(smee.channel, { limits: { silence: 300 } })
    await rig.status({ roundTrip: 'ok' })
    await smee.pinged(60)
    expect([smee.connections, rig.statuses.map(({ state }) => state)]).toEqual([
      1,
      ['connecting', 'connected', 'connected'],
    ])
  })

  it('is replaced when the server closes it', async () => {
    await using smee = await startSmee()
    expect(await reasonOfEnd(smee, () => smee.hangUp())).toBe('the server closed the connection')
  })

  it('is replaced when the server stops and comes back', async () => {
    await using smee = await startSmee()
    const why = await reasonOfEnd(
      smee,
      () => smee.down(),
      {},
      () => smee.up(),
    )
    expect(why).toBe('the connection was interrupted')
  })

  it('is replaced when the machine has slept', async () => {
    await using smee = await startSmee()
    let slept = 0
    const clock = (): number => Date.now() + slept
    expect(await reasonOfEnd(smee, () => (slept = 3_600_000), { clock })).toBe('this machine slept')
  })

  it('is retried without limit', async () => {
    await using smee = await startSmee()
    await using rig = await startTunnel(smee.channel, { delay: (failures) => failures })
    smee.refuse(503)
    smee.hangUp()
    const { since } = await rig.status({ state: 'waiting', attempt: 1 })
    const { why, since: still } = await rig.status({ state: 'waiting', attempt: 40 })
    expect([why, still]).toEqual(['the server answers 503', since])
    smee.refuse(undefined)
    await rig.status({ state: 'connected', attempt: 0 }, rig.statuses.length)
  })
})

describe('a connection that fails', () => {
  it.each([502, 503, 429])(
    'because the server answers %i is retried until the server recovers',
    async (status) => {
      await using smee = await startSmee()
      smee.refuse(status)
      const { why } = await statusOfFailure(smee.channel, smee, () => smee.refuse(undefined))
      expect(why).toBe(`the server answers ${status}`)
    },
  )

  it('because nothing listens', async () => {
    await using smee = await startSmee()
    await smee.down()
    const { why } = await statusOfFailure(smee.channel, smee, () => smee.up())
    expect(why).toBe('connection refused')
  })

  it('because the server does not answer', async () => {
    await using smee = await startSmee()
    smee.stall(true)
    const limits = { opening: 50 }
    const { why } = await statusOfFailure(smee.channel, smee, () => smee.stall(false), { limits })
    expect(why).toBe('no answer within 0.05 s')
  })

  it('because its host cannot be looked up', async () => {
    await using smee = await startSmee()
    let known = false
    const agent = new Agent({
      connect: {
        lookup: (_, __, answer) => {
          if (known) answer(null, [{ address: '127.0.0.1', family: 4 }])
          else answer(Object.assign(new Error('getaddrinfo'), { code: 'ENOTFOUND' }), [])
        },
      },
    })
    const channel = smee.channel.replace('127.0.0.1', 'smee.invalid')
    const repair = (): void => void (known = true)
    const { why } = await statusOfFailure(channel, smee, repair, { sendOnce: through(agent) })
    expect(why).toBe('host not found')
    await agent.destroy()
  })

  it('because a proxy refuses', async () => {
    await using smee = await startSmee()
    let open = false
    await using proxy = await startProxy(
      () => smee.url,
      () => open,
    )
    const agent = new ProxyAgent(proxy.url)
    const repair = (): void => void (open = true)
    const { why } = await statusOfFailure(smee.channel, smee, repair, { sendOnce: through(agent) })
    expect(why).toBe('the proxy answers 407')
    await agent.destroy()
  })

  it('because the server redirects', async () => {
    await using server = await scriptedServer(() => ({
      status: 301,
      headers: { location: 'https://smee.invalid/a' },
    }))
    await using rig = await startTunnel(`${server.url}/channel`)
    expect((await rig.status({ state: 'waiting' })).why).toBe(
      'the server answers 301: it redirects to https://smee.invalid/a',
    )
  })

  it('because there is no channel', async () => {
    await using smee = await startSmee()
    await using rig = await startTunnel(`${smee.url}/`.replace(/\/$/, '/a/b'))
    expect((await rig.status({ state: 'waiting' })).why).toBe('the server answers 404')
  })

  it('ends with the tunnel, even while it waits', async () => {
    await using smee = await startSmee()
    smee.stall(true)
    const rig = await startTunnel(smee.channel)
    await rig[Symbol.asyncDispose]()
    const waiting = await startTunnel(smee.channel, { delay: () => 3_600_000, limits: { opening: 20 } })
    await waiting.status({ state: 'waiting' })
    await waiting[Symbol.asyncDispose]()
    expect(waiting.statuses.map(({ state }) => state)).toEqual(['connecting', 'waiting'])
  })
})

describe('the payload URL', () => {
  it('is known before the first connection, and while the tunnel is down', async () => {
    await using smee = await startSmee()
    smee.refuse(503)
    await using rig = await startTunnel(smee.channel)
    await rig.status({ state: 'waiting' })
    expect(rig.statuses.slice(0, 2).map(({ state, url }) => [state, url])).toEqual([
      ['connecting', smee.channel],
      ['waiting', smee.channel],
    ])
  })
})

describe('Retry-After', () => {
  it('is waited for, also where the server creates no channel', async () => {
    await using smee = await startSmee()
    smee.refuse(429, { 'retry-after': '300' })
    for (const address of [smee.channel, smee.url]) {
      await using rig = await startTunnel(address)
      const { since, retryAt } = await rig.status({ state: 'waiting' })
      expect((retryAt ?? 0) - since).toBeGreaterThanOrEqual(299_000)
    }
  })
})
