import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, it } from 'vitest'
import { emptyFolder } from '../helpers/context.js'
import { Program, relay } from '../helpers/program.js'
import { closedPort, scriptedServer } from '../helpers/scripted-server.js'
import { sign } from '../helpers/sign.js'

const SECRET = 'e2e secret'
const SERVE = ['serve', '--port', '0', '--json']

async function deliver(url: string, event: string, id: string, payload: object = {}): Promise<void> {
  const body = JSON.stringify(payload)
  const answer = await fetch(`${url}/webhook`, {
    method: 'POST',
    headers: {
      'Content-Type': 'application/json',
      'X-GitHub-Event': event,
      'X-GitHub-Delivery': id,
      'X-Hub-Signature-256': sign(SECRET, Buffer.from(body)),
    },
    body,
  })
  expect(answer.status).toBe(200)
}

describe('relay serve with targets', () => {
  it('hands each delivery on to those it is for, and shows each attempt', async () => {
    await using target = await scriptedServer(() => ({ status: 202 }))
    const file = path.join(emptyFolder(), 'out')
    const env = { RELAY_WEBHOOK_SECRET: SECRET, OUT: file }
    const routes = ['--forward', `push=${target.url}/hooks`, '--exec', 'issues.opened=cat > "$OUT"; exit 4']
    await using program = new Program([...SERVE, ...routes, '--ignore', 'check_run'], env)
    const url = await program.url()
    await deliver(url, 'push', 'a', { repository: { full_name: 'octo/demo' } })
    await deliver(url, 'issues', 'b', { action: 'opened' })
    await deliver(url, 'check_run', 'c')
    expect(await program.object({ type: 'attempt', n: 1 })).toMatchObject({
      target: `push=${target.url}/hooks`,
      outcome: 'succeeded',
      status: 202,
      state: 'succeeded',
    })
    expect(await program.object({ type: 'attempt', n: 2 })).toMatchObject({
      outcome: 'refused',
      status: 4,
      state: 'failed',
    })
    expect(await program.object({ type: 'delivery', n: 3 })).toMatchObject({ event: 'check_run' })
    const { code, err } = await program.stop()
    expect(code).toBe(0)
    expect(err).toMatch(/#1 +push +octo\/demo +127\.0\.0\.1:\d+ ✓ 202 \d+ms\n/)
    expect(err).toMatch(/#2 +issues\.opened +cat ✗ exit 4 \d+ms\n/)
  })

  it('continues after a crash with what a target that was down has not had', async () => {
    const env = { RELAY_WEBHOOK_SECRET: SECRET, RELAY_HOME: emptyFolder() }
    const address = `http://127.0.0.1:${await closedPort()}`
    await using first = new Program([...SERVE, '--forward', address], env)
    const url = await first.url()
    for (const id of ['a', 'b', 'c']) await deliver(url, 'push', id)
    expect(await first.object({ type: 'target', state: 'down' })).toMatchObject({ target: address })
    await first.stop('SIGKILL')

    await using other = new Program([...SERVE, '--exec', 'push=exit 0'], env)
    await other.says(`is no longer configured (${address}): 3 waiting, 24 h at most`)
    await other.stop()

    await using target = await scriptedServer(() => ({ status: 200 }), Number(new URL(address).port))
    await using last = new Program([...SERVE, '--forward', address], env)
    await last.object({ type: 'attempt', n: 3 })
    expect(target.received.map(({ headers }) => headers['x-github-delivery'])).toEqual(['a', 'b', 'c'])
  })

  it('reads the routes again when a settings file changes, and at SIGHUP', async () => {
    await using target = await scriptedServer(() => ({ status: 200 }))
    await using program = new Program(SERVE, { RELAY_WEBHOOK_SECRET: SECRET })
    const file = path.join(program.cwd, 'relay.json')
    const url = await program.url()
    await deliver(url, 'push', 'a')
    expect(await program.object({ type: 'delivery', n: 1 })).toMatchObject({ n: 1 })

    writeFileSync(file, JSON.stringify({ forward: [`push=${target.url}`] }))
    await program.says('Reloaded the settings: 1')
    await deliver(url, 'push', 'b')
    expect(await program.object({ type: 'attempt', n: 2 })).toMatchObject({ status: 200 })

    writeFileSync(file, '{ "forward": "nowhere" }')
    await program.says('warning: the routes are unchanged: ')
    await deliver(url, 'push', 'c')
    expect(await program.object({ type: 'attempt', n: 3 })).toMatchObject({ status: 200 })

    writeFileSync(file, '{ "exec": ["push=exit 9"] }')
    await program.says('relay.json runs a command for deliveries: push=exit 9')
    program.child.kill('SIGHUP')
    await deliver(url, 'push', 'd')
    expect(await program.object({ type: 'attempt', n: 4 })).toMatchObject({ status: 9 })
    expect((await program.stop()).code).toBe(0)
  })

  it('says what is wrong with a route, exit 2', async () => {
    const { code, out, err } = await relay(['serve', '--forward', 'push=ftp://x'])
    expect({ code, out }).toEqual({ code: 2, out: '' })
    expect(err).toContain('--forward: ')
    expect(err).toContain('names no http:// or https:// address')
  })
})

describe('relay routes test', () => {
  it('says which routes a delivery takes, and why', async () => {
    const env = { RELAY_WEBHOOK_SECRET: SECRET, RELAY_HOME: emptyFolder() }
    await using program = new Program(SERVE, env)
    await deliver(await program.url(), 'issues', 'a', { action: 'opened' })
    const routes = ['--forward', 'issues.*=http://localhost:1', '--exec', 'push=true']
    expect(await relay(['routes', 'test', 'last', ...routes], env)).toEqual({
      code: 0,
      signal: null,
      out: 'yes  issues.*=http://localhost:1  issues.opened matches issues.*\nno   push=exec:true               issues.opened does not match push\n',
      err: '',
    })
    expect(JSON.parse((await relay(['routes', 'test', '1', '--json', ...routes], env)).out)).toEqual({
      v: 1,
      n: 1,
      event: 'issues',
      action: 'opened',
      ignoredBy: null,
      routes: [
        { target: 'issues.*=http://localhost:1', matched: true, why: 'issues.opened matches issues.*' },
        { target: 'push=exec:true', matched: false, why: 'issues.opened does not match push' },
      ],
    })
    expect((await relay(['routes', 'test', '9'], env)).code).toBe(6)
  })
})
