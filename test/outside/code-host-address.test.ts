import { expect, it } from 'vitest'
import { place } from '../kit/place.js'

it.each([
  ['http://git.example.org', 'must be https, unless it is on this machine'],
  ['https://user:password@git.example.org', 'must not contain a user name or password'],
  ['https://git.example.org/?x=1', 'must not contain a query or a fragment'],
])('a code host at %s is refused, exit 2', async (address, why) => {
  await using here = await place({ host: 'none', env: { RELAY_PROVIDER_URL: address } })
  for (const argv of [['serve', '--port', '0'], ['whoami']]) {
    const { code, err } = await here.run(...argv)
    expect({ code, says: err.includes(why), leaks: err.includes('password@') }).toEqual({
      code: 2,
      says: true,
      leaks: false,
    })
  }
})

it.each(['http://127.0.0.1:1', 'http://localhost:1', 'https://git.example.org'])(
  'one at %s is taken',
  async (address) => {
    await using here = await place({ host: 'none', env: { RELAY_PROVIDER_URL: address } })
    const relay = await here.serve()
    expect((await relay.stop()).code).toBe(0)
  },
)
