import { expect, it } from 'vitest'
import { SECRET, secretVariable } from '../kit/delivery.js'
import { hub, joining } from '../kit/hub.js'
import { place } from '../kit/place.js'
import { objects } from './example.js'

const CONNECTED = { type: 'tunnel', state: 'connected', roundTrip: 'ok' }
const SOURCES = ['stripe', 'linear', 'zoom']

it('relay serve has one line for each change of the connection to a hub, whatever the number of sources', async () => {
  await using here = await place({ host: 'none' })
  await using server = await hub()
  const port = Number(new URL(server.address).port)
  const env = { ...here.env, ...(await joining(server)) }
  for (const name of SOURCES) Object.assign(env, { [secretVariable(name)]: SECRET })
  const flags = SOURCES.flatMap((name) => ['--source', name])
  const relay = await here.serveWith({ env }, '--tunnel', ...flags)
  const url = String((await relay.object({ ...CONNECTED, source: 'zoom' }))['url'])
  await server.stop()
  for (const attempt of [1, 2, 3])
    await relay.object({ type: 'tunnel', source: 'zoom', state: 'waiting', attempt })
  await using again = await hub({ port, env: server.env })
  expect(again.address).toBe(server.address)
  await relay.objects({ ...CONNECTED, source: 'zoom' }, 2)
  const { err } = await relay.stop()
  const lines = err
    .split('\n')
    .filter((line) => line.includes('tunnel '))
    .map((line) =>
      line.replace(/^.*?(?=tunnel )/, '').replace(/down: .*; (?:reconnecting|attempt \d+ in \d+s)$/, 'down'),
    )
  const attempts = lines.filter((line) => line.startsWith('tunnel is down'))
  const [connected, works] = [
    `tunnel connected: payload URL ${url.replace(/zoom$/, '<source>')}`,
    'tunnel works: an empty test message went through the hub and came back',
  ]
  expect(attempts.length).toBeGreaterThanOrEqual(3)
  expect(lines).toEqual([connected, works, ...attempts.map(() => 'tunnel is down'), connected, works])
})

it('the test of a connection to a hub ends with the connection', async () => {
  await using here = await place({ host: 'none' })
  await using server = await hub()
  const token = await server.invite('--channel-rate', '1')
  const env = { ...here.env, RELAY_HUB_TOKEN: token, RELAY_TUNNEL: server.address }
  const relay = await here.serveWith({ env }, '--tunnel')
  await relay.object(CONNECTED)
  await relay.stop()
  // The test message of the first start was the only request of this minute.
  const again = await here.serveWith({ env }, '--tunnel')
  const roundTrip = 'the hub answers 429 to a delivery'
  await again.object({ type: 'tunnel', state: 'connected', roundTrip })
  await server.stop()
  await again.object({ type: 'tunnel', state: 'waiting', attempt: 4 })
  const { out } = await again.stop()
  const waiting = objects(out).filter(({ type, state }) => type === 'tunnel' && state === 'waiting')
  expect(new Set(waiting.map((status) => status['roundTrip']))).toEqual(new Set([roundTrip]))
})
