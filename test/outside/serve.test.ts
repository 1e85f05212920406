import { describe, expect, it } from 'vitest'
import { SECRET } from '../kit/delivery.js'
import { signIn } from '../kit/pages.js'
import { place } from '../kit/place.js'
import { closedPort } from '../kit/ports.js'

const SANDBOX = ['--sandbox', '--sandbox-port', '0']

describe('relay serve', () => {
  it('runs the whole service with its sandbox, and stops cleanly', async () => {
    await using here = await place({ host: 'none' })
    const program = await here.serve(...SANDBOX)
    const url = program.address
    expect(await (await fetch(`${url}/health`)).text()).toBe('{"status":"ok"}')
    expect(await program.object({ event: 'ping' })).toMatchObject({
      v: 1,
      type: 'delivery',
      n: 1,
      provider: 'sandbox',
    })
    const { code, err } = await program.stop('SIGINT')
    expect(code).toBe(0)
    expect(err).toContain(`address      ${url}`)
    expect(err).toMatch(/#1 +ping +octo\/demo/)
    expect(err).not.toContain('Stopping')
  })

  it('says at Ctrl-C what is still waiting, and for which target', async () => {
    const down = await closedPort()
    await using here = await place({ host: 'none' })
    const program = await here.serve('--forward', `app=${down}`)
    for (const id of ['a', 'b']) expect(await program.deliver({ id })).toMatchObject({ status: 200 })
    await program.object({ type: 'target', state: 'down' })
    const { code, err } = await program.stop('SIGINT')
    expect(code).toBe(0)
    expect(err).toContain('\nStopping. Still waiting: 2 for app; sent at the next start.\n')
  })

  it.each([[[]], [['--quiet']]])(
    'says in one line why a delivery is refused, and nothing of it to the sender %j',
    async (flags) => {
      await using here = await place({ host: 'none' })
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
      expect(lines.map((text) => text.replace(/^\d\d:\d\d:\d\d {2}/, 'time '))).toEqual([
        `time ${line.trimEnd()}`,
      ])
    },
  )

  it('returns browsers to the base URL as it was written', async () => {
    const base = 'http://localhost:3000/done/?to=/#/'
    await using here = await place({ host: 'none' })
    const { address } = await here.serve(...SANDBOX, '--base-url', base)
    const { location } = await signIn(address, 'ada')
    expect(location).toBe('http://localhost:3000/done/?to=/&auth=success&userId=ada#/')
  })

  it('warns of an address that others reach', async () => {
    await using here = await place({ host: 'none' })
    const program = await here.serve('--host', '0.0.0.0')
    expect((await program.stop()).err).toContain(
      'warning: --host 0.0.0.0: anyone who can reach it can revoke tokens, since DELETE /auth/token needs no password',
    )
  })
})

describe('relay serve, asked to stop,', () => {
  const COMMENT = { owner: 'octo', repo: 'demo', issueNumber: 1, body: 'late' }

  it('cuts off what takes longer than its limit', async () => {
    await using here = await place({ signedIn: true })
    const { out: token } = await here.run('token')
    const program = await here.serveWith({ seams: { limits: { stop: 200 } } })
    here.sandbox.faults.next('comment', { kind: 'slow', ms: 1000 })
    const answer = comment(program.address, token).catch((error: unknown) => error)
    await expect.poll(() => here.sandbox.requests.at(-1)?.path).toMatch(/\/comments$/)
    program.kill('SIGTERM')
    expect(await answer).toBeInstanceOf(TypeError)
    expect((await program.ended).code).toBe(0)
  })

  function comment(address: string, token: string): Promise<Response> {
    return fetch(`${address}/api/comment`, {
      method: 'POST',
      headers: { Authorization: `Bearer ${token.trim()}`, 'Content-Type': 'application/json' },
      body: JSON.stringify(COMMENT),
    })
  }
})
