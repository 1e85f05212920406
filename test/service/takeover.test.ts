import { expect, it } from 'vitest'
import { githubDelivery, post } from '../kit/delivery.js'
import { readMetrics } from '../kit/metrics.js'
import { describeWith } from '../kit/needs.js'
import { database } from '../kit/postgres.js'
import { receiver } from '../kit/receiver.js'
import { idsOf, nothingWaits, type ServiceRelay, serviceRelay } from '../kit/service.js'
import { smee } from '../kit/smee.js'

/** Milliseconds until a relay must have taken over from another. Alone on a machine it is 5 s at most. */
const TAKEOVER = 15_000
const CONNECTED = { type: 'tunnel', state: 'connected', roundTrip: 'ok' }

async function send({ url }: ServiceRelay, id: string): Promise<void> {
  expect((await post(`${url}/webhook`, githubDelivery({ id }))).status).toBe(200)
}

/** A delivery through the tunnel, with a body of its own: a channel is public, so a copy of the bytes is a duplicate. */
async function sendThrough(channel: string, id: string): Promise<void> {
  expect((await post(channel, githubDelivery({ id, body: JSON.stringify({ id }) }))).status).toBe(200)
}

async function isConnected({ url }: ServiceRelay): Promise<number | undefined> {
  return (await readMetrics(url))['relay_tunnel_connected']?.values['']
}

describeWith('postgres', 'two relays on one database', () => {
  it('forward what one of them has acknowledged, although it is killed at once; the next takes queue and tunnel over', async () => {
    await using shared = await database()
    await using tunnel = await smee()
    await using target = await receiver()
    const flags = ['--tunnel', tunnel.channel, '--forward', target.url]
    await using first = await serviceRelay(shared, flags)
    await first.program.object(CONNECTED)
    await using second = await serviceRelay(shared, flags)
    await send(second, '1')
    await second.program.stop('SIGKILL')
    await target.has(1)

    await using third = await serviceRelay(shared, flags)
    await nothingWaits(shared)
    await first.program.stop('SIGKILL')
    const before = performance.now()
    await send(third, '2')
    await target.has(2)
    const took = performance.now() - before
    process.stderr.write(`SIGKILL: taken over after ${Math.round(took)} ms\n`)
    expect(took).toBeLessThan(TAKEOVER)
    await third.program.object(CONNECTED)
    await sendThrough(tunnel.channel, 'c0ffee00-0000-4000-8000-000000000003')
    await target.has(3)
    expect(idsOf(target).slice(0, 2)).toEqual(['1', '2'])
    expect(await third.program.stop()).toMatchObject({ code: 0 })
  })

  it('take queue and tunnel over from one that stands still, and which takes in again when it continues', async () => {
    await using shared = await database()
    await using tunnel = await smee()
    await using target = await receiver()
    const flags = ['--tunnel', tunnel.channel, '--metrics', '--forward', target.url]
    await using first = await serviceRelay(shared, flags)
    await first.program.object(CONNECTED)
    await send(first, '1')
    await target.has(1)
    await using second = await serviceRelay(shared, flags)
    await nothingWaits(shared)
    expect(await isConnected(first)).toBe(1)
    first.program.kill('SIGSTOP')
    const before = performance.now()
    await send(second, '2')
    await target.has(2)
    const took = performance.now() - before
    process.stderr.write(`SIGSTOP: taken over after ${Math.round(took)} ms\n`)
    expect(took).toBeLessThan(TAKEOVER)
    await second.program.object(CONNECTED)
    // Either takes in what it gets, also the one that continues.
    first.program.kill('SIGCONT')
    await send(first, '3')
    await target.has(3)
    expect(idsOf(target)).toEqual(['1', '2', '3'])
    // It no longer says that the tunnel is connected.
    await expect.poll(() => isConnected(first)).toBeUndefined()
    expect(await isConnected(second)).toBe(1)
  })
})
