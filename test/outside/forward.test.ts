import { readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, it } from 'vitest'
import { place, type Serving } from '../kit/place.js'
import { receiver, valuesOf } from '../kit/receiver.js'

async function deliver(relay: Serving, event: string, id: string, payload: object = {}): Promise<void> {
  expect(await relay.deliver({ event, id, body: JSON.stringify(payload) })).toMatchObject({ status: 200 })
}

describe('relay serve with targets', () => {
  it('hands each delivery on to those it is for, and shows each attempt', async () => {
    await using target = await receiver(202)
    await using here = await place({ host: 'none' })
    const file = path.join(here.cwd, 'out')
    const routes = ['--forward', `push=${target.url}/hooks`, '--exec', 'issues.opened=cat > "$OUT"; exit 4']
    const relay = await here.serveWith({ env: { OUT: file } }, ...routes, '--ignore', 'check_run')
    await deliver(relay, 'push', 'a', { repository: { full_name: 'octo/demo' } })
    await deliver(relay, 'issues', 'b', { action: 'opened' })
    await deliver(relay, 'check_run', 'c')
    expect(await relay.object({ type: 'attempt', n: 1 })).toMatchObject({
      target: `push=${target.url}/hooks`,
      outcome: 'succeeded',
      status: 202,
      state: 'succeeded',
    })
    expect(await relay.object({ type: 'attempt', n: 2 })).toMatchObject({
      outcome: 'refused',
      status: 4,
      state: 'failed',
    })
    expect(await relay.object({ type: 'delivery', n: 3 })).toMatchObject({ event: 'check_run' })
    expect(readFileSync(file, 'utf8')).toBe('{"action":"opened"}')
    expect(target.received.map((request) => request.path)).toEqual(['/hooks'])
    const { code, err } = await relay.stop()
    expect(code).toBe(0)
    expect(err).toMatch(/ {2}#1 {2}push {2}octo\/demo\n/)
    expect(err).toMatch(/ {2}#1 {2}→ 127\.0\.0\.1:\d+ ✓ 202 \d+ms\n/)
    expect(err).toMatch(/ {2}#2 {2}issues\.opened\n/)
    expect(err).toMatch(/ {2}#2 {2}→ cat ✗ exit 4 \d+ms\n/)
    expect(err).toMatch(/ {2}#3 {2}check_run {2}ignored by check_run\n/)
  })

  it('continues after a crash with what a target that was down has not had', async () => {
    await using target = await receiver()
    await target.down()
    await using here = await place({ host: 'none' })
    const first = await here.serveWith({ built: true }, '--forward', target.url)
    for (const id of ['a', 'b', 'c']) await deliver(first, 'push', id)
    expect(await first.object({ type: 'target', state: 'down' })).toMatchObject({ target: target.url })
    await first.stop('SIGKILL')

    const other = await here.serve('--exec', 'push=exit 0')
    await other.says(`is no longer configured (${target.url}): 3 waiting, 24 h at most`)
    await other.stop()

    await target.up()
    const last = await here.serve('--forward', target.url)
    await last.object({ type: 'attempt', n: 3 })
    expect(target.received.flatMap((request) => valuesOf(request, 'x-github-delivery'))).toEqual([
      'a',
      'b',
      'c',
    ])
  })

  it('reads the routes again when a settings file changes, and at SIGHUP', async () => {
    await using target = await receiver()
    await using here = await place({ host: 'none' })
    const relay = await here.serve()
    const file = path.join(here.cwd, 'relay.json')
    await deliver(relay, 'push', 'a')
    expect(await relay.object({ type: 'delivery', n: 1 })).toMatchObject({ n: 1 })

    writeFileSync(file, JSON.stringify({ forward: [`push=${target.url}`] }))
    await relay.says('Reloaded the settings: 1')
    await deliver(relay, 'push', 'b')
    expect(await relay.object({ type: 'attempt', n: 2 })).toMatchObject({ status: 200 })

    writeFileSync(file, '{ "forward": "nowhere" }')
    await relay.says('warning: the routes are unchanged: ')
    await deliver(relay, 'push', 'c')
    expect(await relay.object({ type: 'attempt', n: 3 })).toMatchObject({ status: 200 })

    writeFileSync(file, '{ "exec": ["push=exit 9"] }')
    await relay.says('relay.json runs a command for deliveries: push=exit 9')
    relay.kill('SIGHUP')
    await deliver(relay, 'push', 'd')
    expect(await relay.object({ type: 'attempt', n: 4 })).toMatchObject({ status: 9 })
    expect((await relay.stop()).code).toBe(0)
  })
})
