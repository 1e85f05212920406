import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'

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
})
