import { describe, expect, it } from 'vitest'
import { post } from '../kit/delivery.js'
import { hub, joining } from '../kit/hub.js'
import { place } from '../kit/place.js'
import { fresh } from './fixture.js'
import { fails } from '../kit/run.js'

const CONNECTED = { type: 'tunnel', state: 'connected', roundTrip: 'ok' }

const server = fresh(() => hub())
const here = fresh(() => place({ host: 'none' }))

describe('a source that nothing proves, at a hub', () => {
  const refusal = (): string =>
    `Nothing proves what the source door sends, and anybody who knows its address at the hub ${server.address} can send it. Start without it, or allow that with --allow-unsigned`

  it('needs --allow-unsigned, also at later starts, without the invitation', async () => {
    const env = { ...here.env, ...(await joining(server)) }
    const argv = ['serve', '--port', '0', '--tunnel', server.address, '--source', 'door=none']
    expect(await here.runWith({ env }, ...argv)).toEqual(fails(2, refusal()))
    const relay = await here.serveWith({ env }, '--tunnel', '--source', 'door=none', '--allow-unsigned')
    const url = String((await relay.object({ ...CONNECTED, source: 'door' }))['url'])
    expect((await post(url, { headers: [], body: Buffer.from('knock') })).status).toBe(200)
    await relay.object({ type: 'delivery', n: 1 })
    await relay.says(
      `door takes deliveries that nothing proves, from anybody who knows its address at the hub ${server.address}\n`,
    )
    await relay.stop()
    expect(await here.run(...argv)).toEqual(fails(2, refusal()))
  })

  it('is not taken by a change of the settings while relay runs', async () => {
    const env = { ...here.env, ...(await joining(server)) }
    const relay = await here.serveWith({ env }, '--tunnel')
    await relay.object(CONNECTED)
    here.configure({ sources: ['door=none'] })
    relay.kill('SIGHUP')
    await relay.says(refusal())
    expect((await relay.stop()).err).not.toContain('source door: ')
  })
})
