import { describe, expect, it } from 'vitest'
import { openDatabase } from '../../src/store/open.js'
import { githubDelivery, post } from '../helpers/delivery.js'
import { gosmee as startGosmee } from '../kit/smee.js'
import { entriesOf } from '../helpers/journal.js'
import type { TunnelServer } from '../kit/tunnel-server.js'
import { startTunnel } from './rig.js'

/** Sends deliveries with these numbers, one after the other. */
async function send(server: TunnelServer, ...numbers: readonly number[]): Promise<void> {
  for (const n of numbers) await post(server.channel, githubDelivery({ body: `{"n": ${n}}` }))
}

describe('a gosmee server with Redis', () => {
  it('continues where relay stopped reading: after a break, and after a restart', async () => {
    await using server = await startGosmee({ stream: 1000 })
    const { store } = await openDatabase({ kind: 'memory', folder: '' })
    {
      await using rig = await startTunnel(server.channel, { store, delay: () => 20 })
      await rig.status({ roundTrip: 'ok' })
      await send(server, 1, 2)
      await rig.stored(2)
      server.refuse(503)
      server.hangUp()
      await rig.status({ why: 'the server answers 503' })
      const away = rig.statuses.length
      server.refuse(undefined)
      await send(server, 3)
      await rig.stored(3)
      // Else the server would send this message to the next relay.
      await rig.status({ state: 'connected', roundTrip: 'ok' }, away)
    }
    await send(server, 4, 5)
    await using rig = await startTunnel(server.channel, { store })
    await rig.stored(2)
    expect((await entriesOf(rig.journal)).map(({ body }) => String(Buffer.from(body)))).toEqual([
      '{"n": 4}',
      '{"n": 5}',
    ])
    expect(rig.logged).toEqual([])
  })

  it('is asked again without the id if it does not accept it', async () => {
    await using server = await startGosmee({ stream: 1000 })
    const { store } = await openDatabase({ kind: 'memory', folder: '' })
    await store.put('tunnel-progress', {
      v: 1,
      url: server.channel,
      position: 'unknown',
      read: 0,
      handled: 0,
      closed: true,
    })
    await using rig = await startTunnel(server.channel, { store })
    await rig.status({ roundTrip: 'ok' })
    expect(rig.statuses.map(({ state }) => state)).not.toContain('waiting')
  })

  it('says when it no longer has all messages', async () => {
    await using server = await startGosmee({ stream: 2 })
    const { store } = await openDatabase({ kind: 'memory', folder: '' })
    {
      await using rig = await startTunnel(server.channel, { store })
      await rig.status({ roundTrip: 'ok' })
      await send(server, 1)
      await rig.stored(1)
    }
    await send(server, 2, 3, 4, 5)
    await using rig = await startTunnel(server.channel, { store })
    expect(await rig.logLine('did not store all')).toContain('redeliver the missing ones at the code host')
    await rig.stored(2)
  })
})

describe('the progress of a tunnel', () => {
  const saved = (closed: boolean) => ({
    v: 1,
    url: 'https://smee.invalid/a',
    position: null,
    read: 1200,
    handled: 1100,
    closed,
  })

  it('is reported at the next start if relay was killed', async () => {
    await using server = await startGosmee()
    const { store } = await openDatabase({ kind: 'memory', folder: '' })
    await store.put('tunnel-progress', saved(false))
    await using rig = await startTunnel(server.channel, { store })
    expect(await rig.logLine('without closing')).toContain(
      'It had read 1,200 messages, and 1,100 of them are in the journal or were refused.',
    )
  })

  it('is not reported if relay was stopped, and counts what was read', async () => {
    await using server = await startGosmee()
    const { store } = await openDatabase({ kind: 'memory', folder: '' })
    await store.put('tunnel-progress', saved(true))
    {
      await using rig = await startTunnel(server.channel, { store })
      await rig.status({ roundTrip: 'ok' })
      await send(server, 1, 2)
      await rig.stored(2)
      expect(rig.logged).toEqual([])
    }
    expect(await store.get('tunnel-progress')).toEqual({
      v: 1,
      url: server.channel,
      position: null,
      read: 2,
      handled: 2,
      closed: true,
    })
  })
})
