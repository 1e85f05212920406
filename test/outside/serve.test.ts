import { describe, expect, it } from 'vitest'
import { SECRET } from '../kit/delivery.js'
import { holding } from '../kit/holding.js'
import { connect } from '../kit/http.js'
import { openInspector } from '../kit/inspector.js'
import { signIn } from '../kit/pages.js'
import { place } from '../kit/place.js'
import { closedPort } from '../kit/ports.js'
import { receiver } from '../kit/receiver.js'
import { fresh } from './fixture.js'

const SANDBOX = ['--sandbox', '--sandbox-port', '0']

const here = fresh(() => place({ host: 'none' }))

describe('relay serve', () => {
  it('runs the whole service with its sandbox, and stops cleanly', async () => {
    const program = await here.serve(...SANDBOX)
    const url = program.address
    expect(await (await fetch(`${url}/health`)).text()).toBe('{"status":"ok"}')
    const ping = { v: 1, type: 'delivery', n: 1, provider: 'sandbox' }
    expect(await program.object({ event: 'ping' })).toMatchObject(ping)
    const { code, err } = await program.stop('SIGINT')
    expect(code).toBe(0)
    expect(err).toContain(`address      ${url}`)
    expect(err).toMatch(/#1 +ping +octo\/demo/)
    expect(err).not.toContain('Stopping')
  })

  it('says at Ctrl-C what is still waiting, and for which target', async () => {
    const down = await closedPort()
    const program = await here.serve('--forward', `app=${down}`)
    for (const id of ['a', 'b']) expect(await program.deliver({ id })).toMatchObject({ status: 200 })
    await program.object({ type: 'target', state: 'down' })
    const { code, err } = await program.stop('SIGINT')
    expect(code).toBe(0)
    expect(err).toContain('\nStopping. Still waiting: 2 for app; sent at the next start.\n')
    const without = await here.serve()
    await without.says('is no longer configured')
    expect((await without.stop('SIGINT')).err).not.toContain('Still waiting')
  })

  it.each([[[]], [['--quiet']]])(
    'says in one line why a delivery is refused, and nothing of it to the sender %j',
    async (flags) => {
      const program = await here.serve(...flags)
      const refused = { status: 401, type: 'application/json', body: '{"error":"Invalid signature"}' }
      expect(await program.deliver({ id: 'd-1', secret: `${SECRET}\n` })).toEqual(refused)
      const line =
        "warning: POST /webhook was answered 401: the sender's secret ends in a newline, relay's does not (unproved: event push, delivery d-1; relay show refused:1)\n"
      await program.says(line)
      expect(await program.deliver()).toMatchObject({ status: 200 })
      await program.object({ type: 'delivery', n: 1 })
      const { err } = await program.stop()
      const lines = err.split('\n').filter((text) => /warning|refused|\b401\b|Invalid/.test(text))
      expect(lines).toEqual([expect.stringMatching(/^\d\d:\d\d:\d\d {2}/)])
      expect(lines[0]?.slice(10)).toBe(line.trimEnd())
    },
  )

  it('warns of an address that others reach', async () => {
    const program = await here.serve('--host', '0.0.0.0')
    expect((await program.stop()).err).toContain(
      'warning: --host 0.0.0.0: anyone who can reach it can revoke tokens, since DELETE /auth/token needs no password',
    )
  })
})

describe('relay serve, asked to stop,', () => {
  it('cuts off what takes longer than its limit', async () => {
    await using held = await holding({ seams: { limits: { stop: 200 } } })
    using connection = await connect(held.relay.port)
    connection.send(held.request)
    await held.has(1)
    held.relay.kill('SIGTERM')
    expect(await connection.closed()).toBe('')
    expect((await held.relay.ended).code).toBe(0)
  })
})

const PROFILE = { RELAY_PROFILE: 'sandbox' }

describe('relay serve --sandbox', () => {
  it('that is refused, the profile being served, leaves the tokens of the other alone', async () => {
    await using here = await place({ host: 'none', env: PROFILE })
    const serving = await here.serve(...SANDBOX)
    await signIn(serving.address, 'ada')
    expect(await here.run('serve', '--port', '0', ...SANDBOX)).toMatchObject({ code: 1, out: '' })
    const { out } = await here.run('token', '--user', 'ada', '--header')
    const [name = '', value = ''] = out.trim().split(': ')
    const headers = { [name]: value, 'Content-Type': 'application/json' }
    const body = JSON.stringify({ owner: 'octo', repo: 'demo', issueNumber: 1, content: 'rocket' })
    const answer = await fetch(`${serving.address}/api/react`, { method: 'POST', headers, body })
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
    const own = { run: (...argv: string[]) => here.runWith(embedded, ...argv) }
    const inspector = await openInspector(own, second)
    expect(await inspector.json('state')).toMatchObject({ users: [{ userId: 'grace' }] })
    await second.stop()
    expect(await tokenOf('grace')).toBe(0)
  })

  it('names --sandbox-port when that port is in use, exit 1', async () => {
    await using other = await receiver()
    const { port } = new URL(other.url)
    const { code, err } = await here.run('serve', '--port', '0', '--sandbox', '--sandbox-port', port)
    const used = `Port ${port} is in use. Choose another with --sandbox-port, or 0 for any free port.`
    expect([code, err]).toEqual([1, expect.stringContaining(used)])
  })
})
