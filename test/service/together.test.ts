import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { expect, it } from 'vitest'
import { repository } from '../kit/code-host.js'
import { githubDelivery, post } from '../kit/delivery.js'
import { emptyFolder } from '../kit/folder.js'
import { describeWith } from '../kit/needs.js'
import { closedPort } from '../kit/ports.js'
import { signIn } from '../kit/pages.js'
import { place, type Serving, USER } from '../kit/place.js'
import { receiver } from '../kit/receiver.js'
import type { StartOptions } from '../kit/run.js'
import { idsOf, nothingWaits } from '../kit/service.js'
import { smee } from '../kit/smee.js'

/** Milliseconds until a relay must have taken over from one that has ended. Alone on a machine it does so at once. */
const TAKEOVER = 15_000

async function send(relay: Serving, id: string): Promise<void> {
  expect((await relay.deliver({ id })).status).toBe(200)
}

/** What a relay has printed of its tunnel. */
function tunnelLines({ err }: Serving): readonly string[] {
  return err.split('\n').filter((line) => line.includes('tunnel '))
}

describeWith('postgres', 'two relays on one database', () => {
  it('are one service: each takes in, one forwards, in order; the other takes over when it ends', async () => {
    await using here = await place({ host: 'none', store: 'postgres' })
    await using target = await receiver()
    const first = await here.serve('--forward', target.url)
    const second = await here.serve('--forward', target.url)
    const ids = Array.from({ length: 20 }, (_, i) => String(i))
    for (const id of ids) await send(Number(id) % 2 === 0 ? first : second, id)
    await target.has(20)
    expect(idsOf(target)).toEqual(ids)
    await second.object({ type: 'target', target: target.url, state: 'elsewhere' })
    await nothingWaits(here)
    await first.stop()
    const before = performance.now()
    await send(second, 'after')
    await target.has(21)
    expect(performance.now() - before).toBeLessThan(TAKEOVER)
    expect(idsOf(target)).toEqual([...ids, 'after'])
  })

  it('show what waits for a target that is not configured any more, and forward it once it is again', async () => {
    await using here = await place({ host: 'none', store: 'postgres' })
    await using target = await receiver()
    await target.down()
    const first = await here.serve('--forward', target.url)
    await send(first, '1')
    await first.object({ type: 'attempt', n: 1 })
    await first.stop()
    const second = await here.serve()
    await second.object({ type: 'target', state: 'gone', queued: 1 })
    await second.stop()
    await target.up()
    const third = await here.serve('--forward', target.url)
    await target.has(1)
    expect(idsOf(target)).toEqual(['1'])
    expect(await third.stop()).toMatchObject({ code: 0 })
  })

  it('let a sign-in begin at one and end at the other, and feel a revocation at once', async () => {
    await using here = await place({ store: 'postgres' })
    const first = await here.serve()
    const second = await here.serve('--public-url', first.address)
    // The code host sends the browser to the first, whichever has sent it there.
    const { location } = await signIn(second.address, USER)
    expect(location).toContain('auth=success')
    const { code, out } = await here.run('token')
    expect(code).toBe(0)
    const headers = { Authorization: `Bearer ${out.trim()}`, 'Content-Type': 'application/json' }
    const statuses = async (text: string): Promise<readonly number[]> => {
      const body = JSON.stringify({ owner: 'octo', repo: 'demo', issueNumber: 1, body: text })
      const asked = [first, second].map(({ address }) =>
        fetch(`${address}/api/comment`, { method: 'POST', headers, body }),
      )
      return (await Promise.all(asked)).map(({ status }) => status)
    }
    expect(await statuses('before')).toEqual([200, 200])
    const revoked = await fetch(`${first.address}/auth/token/${USER}`, { method: 'DELETE' })
    expect(revoked.status).toBe(200)
    expect(await statuses('after')).toEqual([401, 401])
  })

  it('need the same routes: another set is refused at the start, without passwords', async () => {
    await using here = await place({ host: 'none', store: 'postgres' })
    const route = 'http://user:a-password@127.0.0.1:1/a'
    const first = await here.serve('--forward', route, '--ignore', 'ping')
    const other = ['--forward', 'push=http://127.0.0.1:2/b', '--ignore', 'ping']
    const refused = await here.run('serve', '--port', '0', ...other)
    expect(refused).toMatchObject({ code: 2, out: '', err: expect.stringContaining('routes') })
    expect(refused.err).not.toContain('a-password')
    const second = await here.serve('--ignore', 'ping', '--forward', route)
    await first.stop()
    await second.stop()
    // With none of them running, the set can change.
    const third = await here.serve()
    expect(await third.stop()).toMatchObject({ code: 0 })
  })

  it('need the same options of a route: another value of any is refused at the start', async () => {
    await using here = await place({ host: 'none', store: 'postgres' })
    const route = {
      name: 'app',
      forward: 'https://127.0.0.1:1/a',
      timeout: '5s',
      ordered: false,
      concurrency: 2,
      headers: { A: '1', B: '2' },
      verify: true,
      reply: '1s',
    }
    const others: readonly object[] = [
      { timeout: '6s' },
      { ordered: true, concurrency: undefined },
      { concurrency: 3 },
      { headers: { A: '1', B: '3' } },
      { verify: false },
      { reply: '2s' },
    ]
    // Settings of its own for each: a running relay follows its file.
    const settingsWith = (over: object): StartOptions => {
      const configFolder = emptyFolder()
      writeFileSync(
        path.join(configFolder, 'config.json'),
        JSON.stringify({ routes: [{ ...route, ...over }] }),
      )
      return { configFolder }
    }
    const first = await here.serveWith(settingsWith({}))
    for (const other of others) {
      const refused = await here.runWith(settingsWith(other), 'serve', '--port', '0')
      expect({ other, ...refused }).toMatchObject({ other, code: 2, out: '' })
      expect(refused.err).toContain('has other routes')
    }
    const second = await here.serveWith(settingsWith({ headers: { B: '2', A: '1' } }))
    await first.stop()
    await second.stop()
  })

  it('have one tunnel: the other relay opens it when the first ends', async () => {
    await using here = await place({ host: 'none', store: 'postgres' })
    await using channel = await smee()
    await using target = await receiver()
    const flags = ['--tunnel', channel.channel, '--forward', target.url]
    const connected = { type: 'tunnel', state: 'connected', roundTrip: 'ok' }
    const first = await here.serve(...flags)
    await first.object(connected)
    const second = await here.serve(...flags)
    await post(channel.channel, githubDelivery())
    await target.has(1)
    expect(tunnelLines(second)).toEqual([])
    await first.stop()
    await second.object(connected)
    // With a body of its own: a channel is public, so a copy of the bytes is a duplicate.
    await post(
      channel.channel,
      githubDelivery({ body: '{"zen":"Half measures are as bad as nothing at all."}' }),
    )
    await target.has(2)
  })

  it('have one hook: it stays when the relay that made it ends, until the last one ends', async () => {
    await using here = await place({ store: 'postgres', signedIn: true })
    const demo = await repository(here.sandbox)
    const port = String(await closedPort())
    const first = await here.serve('--hook', 'octo/demo', '--port', port)
    const { url } = await first.object({ type: 'hook', state: 'ready' })
    const second = await here.serve('--hook', 'octo/demo', '--public-url', `http://127.0.0.1:${port}`)
    await first.stop()
    expect((await demo.hooks()).map((hook) => hook.url)).toEqual([url])
    await second.object({ type: 'hook', state: 'ready' })
    await second.stop()
    expect(await demo.hooks()).toEqual([])
  })

  it('take in what log --follow and wait then show, whichever of them took it in', async () => {
    await using here = await place({ host: 'none', store: 'postgres' })
    const first = await here.serve()
    const second = await here.serve()
    // On other machines, which have nothing in common with the relays but the database.
    const machine = () => ({ env: { RELAY_HOME: emptyFolder() } })
    const following = here.startWith(machine(), 'log', '--follow', '--json')
    const waiting = here.startWith(machine(), 'wait', 'push', '--timeout', '1m')
    await waiting.says('aiting')
    await send(first, 'one')
    await send(second, 'two')
    await following.object({ n: 1 })
    await following.object({ n: 2 })
    expect((await waiting.ended).out).toContain('#1')
  })
})
