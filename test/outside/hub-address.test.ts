import { expect, it } from 'vitest'
import { hub, joining } from '../kit/hub.js'
import { place } from '../kit/place.js'
import { fresh } from './fixture.js'

const server = fresh(() => hub())
const here = fresh(() => place({ host: 'none' }))

it('relay serve --tunnel at a hub without an invitation names RELAY_HUB_TOKEN', async () => {
  const relay = await here.serve('--tunnel', server.address)
  expect(await relay.object({ type: 'tunnel', state: 'waiting' })).toMatchObject({
    why: `${server.address} did not create a channel: it answers 404. If it is a hub, set RELAY_HUB_TOKEN to an invitation, which its operator makes with relay hub invite`,
  })
})

it('relay serve --tunnel with a payload URL of a hub names the address of the hub', async () => {
  const env = { ...here.env, ...(await joining(server)) }
  const relay = await here.serveWith({ env }, '--tunnel')
  const { url } = await relay.object({ type: 'tunnel', state: 'connected', roundTrip: 'ok' })
  await relay.stop()
  const again = await here.serve('--tunnel', String(url))
  expect(await again.object({ type: 'tunnel', state: 'waiting' })).toMatchObject({
    why: `no channel at this address: the server answers with application/json. If that is a payload URL of a hub, name the hub alone, --tunnel ${server.address}, with RELAY_HUB_TOKEN at the first start`,
  })
})
