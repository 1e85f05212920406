import { describe, expect, it } from 'vitest'
import { RelayError } from '../../src/base/errors.js'
import { silentLog } from '../../src/base/log.js'
import { serviceSettings } from '../../src/cli/session.js'
import { openSettings } from '../../src/cli/settings/read.js'
import { Readiness } from '../../src/serve/readiness.js'
import { serve } from '../../src/serve/serve.js'
import { emptyFolder } from '../kit/folder.js'
import { closedPort } from '../kit/ports.js'
import { testShell } from './cli-shell.js'

describe('readiness', () => {
  it('checks storage once a second at most for a thousand requests', async () => {
    const began = performance.now()
    let checks = 0
    const readiness = new Readiness(silentLog)
    readiness.start({ check: async () => void checks++ })
    await Promise.all(Array.from({ length: 500 }, () => readiness.check()))
    for (let i = 0; i < 500; i++) await readiness.check()
    expect(checks).toBeLessThanOrEqual(1 + Math.floor((performance.now() - began) / 1000))
  })

  it('does not wait for storage that hangs, and asks it again only later', async () => {
    let checks = 0
    const readiness = new Readiness(silentLog)
    readiness.start({
      async check() {
        checks++
        await new Promise(() => {})
      },
    })
    const cause = { message: 'storage did not answer within 2 s' }
    const all = await Promise.allSettled([readiness.check(), readiness.check()])
    expect(all).toMatchObject([
      { reason: { kind: 'storage', cause } },
      { reason: { kind: 'storage', cause } },
    ])
    expect(checks).toBe(1)
  })
})

describe('a start that fails after the data is open', () => {
  it('answers the requests that wait for it, and ends at once', async () => {
    const port = String(await closedPort())
    const { shell } = testShell({ env: { RELAY_HOME: emptyFolder(), RELAY_PORT: port } })
    const settings = serviceSettings(
      { own: openSettings(shell, {}).read() },
      { sandbox: false, inspect: true },
    )
    const address = `http://127.0.0.1:${port}`
    let waiting: Promise<Response> | undefined
    const complete: typeof settings.complete = async (database) => {
      waiting = fetch(`${address}/webhook`, { method: 'POST', body: '{}' })
      // Its connection was accepted before this one.
      expect((await fetch(`${address}/ready`)).status).toBe(503)
      return settings.complete(database)
    }
    const failure = new RelayError('storage', 'cannot be registered')
    const onTaken = (): never => {
      throw failure
    }
    await expect(serve({ ...settings, complete }, { onTaken })).rejects.toBe(failure)
    const answer = await waiting
    expect([answer?.status, await answer?.json()]).toEqual([503, { error: 'relay is stopping' }])
  })
})
