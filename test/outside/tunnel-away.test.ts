import { describe, expect, it } from 'vitest'
import { githubDelivery, post } from '../kit/delivery.js'
import { entriesOf } from '../kit/journal.js'
import { place } from '../kit/place.js'
import { gosmee, smee } from '../kit/smee.js'

// As GitHub writes them.
const id = (end: string): string => `0b989ba4-242f-11e5-81e1-c7b6966d251${end}`
const [AFTER, GENUINE, COPY, LAST] = [id('a'), id('b'), id('c'), id('d')] as const

const CONNECTED = { type: 'tunnel', state: 'connected', roundTrip: 'ok' }

describe('the tunnel of a machine that was away', () => {
  it('connects again at once after it slept, when its connection only seems to be open', async () => {
    await using server = await smee()
    await using here = await place({ host: 'none' })
    let slept = 0
    const clock = (): number => Date.now() + slept
    const relay = await here.serveWith({ seams: { clock } }, '--tunnel', server.channel)
    await relay.object(CONNECTED)
    slept = 3_600_000
    expect(await relay.object({ type: 'tunnel', state: 'waiting' })).toMatchObject({
      why: 'this machine slept',
    })
    await relay.objects(CONNECTED, 2)
    await post(server.channel, githubDelivery({ id: AFTER }))
    expect(await relay.object({ type: 'delivery' })).toMatchObject({ n: 1, delivery: AFTER })
  })

  it('gets what came meanwhile from a server that keeps it, once and in order', async () => {
    await using server = await gosmee({ stream: 100 })
    await using here = await place({ host: 'none' })
    const first = await here.serve('--tunnel', server.channel)
    await first.object(CONNECTED)
    await post(server.channel, githubDelivery({ id: 'before', body: '{"n":0}' }))
    await first.object({ type: 'delivery' })
    await first.stop()
    for (const n of [1, 2, 3])
      await post(server.channel, githubDelivery({ id: `meanwhile-${n}`, body: `{"n":${n}}` }))
    const second = await here.serve('--tunnel', server.channel)
    const taken = await second.objects({ type: 'delivery' }, 3)
    expect(taken.map(({ delivery }) => delivery)).toEqual(['meanwhile-1', 'meanwhile-2', 'meanwhile-3'])
    await second.stop()
    expect((await entriesOf(here)).map(({ body }) => Buffer.from(body).toString())).toEqual([
      '{"n":0}',
      '{"n":1}',
      '{"n":2}',
      '{"n":3}',
    ])
  })
})

describe('a stranger on the channel', () => {
  it('cannot send a signed delivery again under another id', async () => {
    await using server = await smee()
    await using here = await place({ host: 'none' })
    const relay = await here.serve('--tunnel', server.channel)
    await relay.object(CONNECTED)
    const body = '{"action":"opened","issue":{"number":1}}'
    const genuine = (id: string) => githubDelivery({ event: 'issues', body, id })
    await post(server.channel, genuine(GENUINE))
    await post(server.channel, genuine(COPY))
    await post(server.channel, githubDelivery({ id: LAST }))
    await relay.object({ type: 'delivery', delivery: LAST })
    expect(JSON.parse((await here.run('show', '1', '--json')).out)).toMatchObject({
      delivery: GENUINE,
      duplicates: 1,
    })
  })
})
