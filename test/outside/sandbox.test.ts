import { describe, expect, it } from 'vitest'
import { signIn } from '../kit/pages.js'
import { place } from '../kit/place.js'
import { receiver } from '../kit/receiver.js'

const SANDBOX = ['--sandbox', '--sandbox-port', '0']
const PROFILE = { RELAY_PROFILE: 'sandbox' }

describe('relay serve --sandbox', () => {
  it('that is refused, the profile being served, leaves the tokens of the other alone', async () => {
    await using here = await place({ host: 'none', env: PROFILE })
    const serving = await here.serve(...SANDBOX)
    await signIn(serving.address, 'ada')
    const second = await here.run('serve', '--port', '0', '--json', ...SANDBOX)
    expect(second).toMatchObject({ code: 1, out: '' })

    const { out } = await here.run('token', '--user', 'ada', '--header')
    const [name = '', value = ''] = out.trim().split(': ')
    const answer = await fetch(`${serving.address}/api/react`, {
      method: 'POST',
      headers: { [name]: value, 'Content-Type': 'application/json' },
      body: JSON.stringify({ owner: 'octo', repo: 'demo', issueNumber: 1, content: 'rocket' }),
    })
    expect(answer.status).toBe(200)
  })

  it('forgets the tokens of an earlier sandbox, and no others', async () => {
    await using here = await place({ env: PROFILE })
    const embedded = { env: { RELAY_PROVIDER: undefined, RELAY_PROVIDER_URL: undefined } }
    const tokenOf = async (user: string, over = {}): Promise<number> =>
      (await here.runWith(over, 'token', '--user', user)).code
    const ordinary = await here.serve()
    await signIn(ordinary.address, 'grace')
    await ordinary.stop()

    const first = await here.serveWith(embedded, ...SANDBOX)
    await signIn(first.address, 'ada')
    expect(await tokenOf('ada', embedded)).toBe(0)
    await first.stop()
    const second = await here.serveWith(embedded, ...SANDBOX)
    expect(await tokenOf('ada', embedded)).toBe(4)
    await second.stop()
    expect([await tokenOf('ada'), await tokenOf('grace')]).toEqual([4, 0])
  })

  it('names --sandbox-port when that port is in use, exit 1', async () => {
    await using other = await receiver()
    await using here = await place({ host: 'none' })
    const { port } = new URL(other.url)
    const { code, out, err } = await here.run('serve', '--port', '0', '--sandbox', '--sandbox-port', port)
    expect({ code, out }).toEqual({ code: 1, out: '' })
    expect(err).toContain(
      `Port ${port} is in use. Choose another with --sandbox-port, or 0 for any free port.`,
    )
  })
})
