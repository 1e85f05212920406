import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'
import { membersOf } from '../kit/published-types.js'

const run = promisify(execFile)

/** What runs in a relay when a test fails, and nothing stops it. `done` prints a word, so that an early end is noticed. */
const STATES: Readonly<Record<string, string>> = {
  'that is idle': `await startRelay()`,
  'that was stopped': `await (await startRelay()).stop()`,
  'that has delivered': `
    const relay = await startRelay({ exec: ['cat'] })
    await relay.deliver(push)
    await fetch(relay.url + '/health')`,
  'whose user has signed in': `await (await startRelay()).signIn()`,
  'whose target is down': `await (await startRelay({ forward: ['http://127.0.0.1:1/'] })).deliver(push)`,
  'whose target has to be tried again': `
    const app = createServer((_, res) => res.writeHead(500).end()).listen(0, '127.0.0.1').unref()
    await once(app, 'listening')
    await (await startRelay({ forward: ['http://127.0.0.1:' + app.address().port] })).deliver(push)`,
  'whose target never answers': `
    const app = createServer(() => {}).listen(0, '127.0.0.1').unref().on('connection', (socket) => socket.unref())
    await once(app, 'listening')
    await (await startRelay({ forward: ['http://127.0.0.1:' + app.address().port] }))
      .deliver(push, { timeout: 50 }).catch(() => {})`,
  'whose command runs': `
    await (await startRelay({ exec: ['sleep 30'] })).deliver(push, { timeout: 50 }).catch(() => {})`,
  'whose wait has failed': `await (await startRelay()).deliveries({}, { timeout: 20 }).catch(() => {})`,
  'with a sandbox alone': `await (await startSandbox()).token()`,
  'whose sandbox runs checks': `
    const sandbox = await startSandbox({ checkDuration: 60_000 })
    const Authorization = 'Bearer ' + (await sandbox.token())
    const body = JSON.stringify({ message: 'x', content: 'aGk=', branch: 'main' })
    const file = sandbox.url + '/api/v3/repos/octo/demo/contents/new.txt'
    const { status } = await fetch(file, { method: 'PUT', headers: { Authorization }, body })
    if (status !== 201) throw new Error(String(status))`,
}

/** Members that do not wait. */
const OTHERS = new Set(['secret', 'sandbox', 'retryNow', 'replaceRoutes', 'url', 'faults'])
/** A minute, for what would wait so long. */
const LONG = '{ timeout: 60_000 }'
/** Each method that waits, as a test calls it that forgets to wait for it. The targets answer after a minute, too. */
const UNAWAITED: Readonly<Record<string, string>> = {
  startRelay: 'startRelay()',
  startSandbox: 'startSandbox()',
  deliver: `relay.deliver(push, { until: 'settled', timeout: 60_000 })`,
  deliveries: `relay.deliveries({}, ${LONG})`,
  nothingMore: 'relay.nothingMore({}, { within: 60_000 })',
  signIn: 'relay.signIn()',
  stop: 'relay.stop()',
  asyncDispose: 'relay[Symbol.asyncDispose]()',
  token: 'sandbox.token()',
  idle: 'sandbox.idle()',
  'stop of a sandbox': 'sandbox.stop()',
}

describe.concurrent('a process with a relay', () => {
  it.each(Object.entries(STATES))('%s ends by itself', async (_, text) => {
    const program = `
      import { once } from 'node:events'
      import { createServer } from 'node:http'
      import { fixtureOf, startRelay, startSandbox } from 'webhook-relay/testing'
      const push = fixtureOf('push')
      ${text}
      console.log('done')`
    const started = performance.now()
    const { stdout } = await run(process.execPath, ['--input-type=module', '--eval', program], {
      timeout: 25_000,
    })
    expect(stdout).toBe('done\n')
    expect(performance.now() - started).toBeLessThan(25_000)
  })

  it.each(Object.entries(UNAWAITED))('that nothing waits for ends by itself: %s', async (_, call) => {
    const program = `
      import { fixtureOf, startRelay, startSandbox } from 'webhook-relay/testing'
      const push = fixtureOf('push')
      const relay = await startRelay({ exec: ['sleep 60'] })
      const sandbox = await startSandbox({ checkDuration: 60_000, webhook: relay.url })
      ${call}
      console.log('done')`
    const { stdout } = await run(process.execPath, ['--input-type=module', '--eval', program], {
      timeout: 25_000,
    })
    expect(stdout).toBe('done\n')
  })

  it.each(Object.entries(UNAWAITED))('that something waits for goes on: %s', async (_, call) => {
    const program = `
      import { fixtureOf, startRelay, startSandbox } from 'webhook-relay/testing'
      const push = fixtureOf('push')
      const relay = await startRelay({ exec: ['sleep 0.1'] })
      const sandbox = await startSandbox()
      await ${call.replaceAll('60_000', '200')}.catch(({ kind }) => console.log(kind))
      console.log('done')`
    const { stdout } = await run(process.execPath, ['--input-type=module', '--eval', program], {
      timeout: 25_000,
    })
    expect(stdout).toBe(call.includes('deliveries') ? 'timed_out\ndone\n' : 'done\n')
  })

  it('is asked for each of its methods that wait', () => {
    const waiting = [
      ...membersOf('testing/relay.d.ts', 'TestRelay'),
      ...membersOf('testing/sandbox.d.ts', 'TestSandbox'),
      ...membersOf('testing/sandbox.d.ts', 'StartedSandbox'),
    ].filter((name) => !OTHERS.has(name))
    expect(waiting.filter((name) => !Object.hasOwn(UNAWAITED, name))).toEqual([])
  })
})
