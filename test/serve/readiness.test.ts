import { once } from 'node:events'
import { createServer } from 'node:net'
import { describe, expect, it } from 'vitest'
import { RelayError } from '../../src/base/errors.js'
import { Journal } from '../../src/journal/journal.js'
import { serviceSettings } from '../../src/cli/session.js'
import { openSettings } from '../../src/cli/settings/read.js'
import { createReadiness } from '../../src/serve/readiness.js'
import { serve } from '../../src/serve/serve.js'
import { emptyFolder } from '../kit/folder.js'
import { testShell } from '../rooms/cli-shell.js'
import { RecordingLog } from '../helpers/log.js'
import { openDatabase } from '../../src/store/open.js'

const UNAVAILABLE = { kind: 'unavailable', status: 503 }

describe('readiness', () => {
  it('begins when deliveries can be stored, and ends when relay stops', async () => {
    await using database = await openDatabase({ kind: 'memory', folder: '' })
    const readiness = createReadiness(new RecordingLog())
    await expect(readiness.check()).rejects.toMatchObject({ ...UNAVAILABLE, message: 'relay is starting' })
    readiness.start(new Journal(database.sql))
    await readiness.check()
    await readiness.stop()
    await expect(readiness.check()).rejects.toMatchObject({ ...UNAVAILABLE, message: 'relay is stopping' })
  })

  it('checks storage once a second at most for a thousand requests', async () => {
    const began = performance.now()
    let checks = 0
    const readiness = createReadiness(new RecordingLog())
    readiness.start({ check: async () => void checks++ })
    await Promise.all(Array.from({ length: 500 }, () => readiness.check()))
    for (let i = 0; i < 500; i++) await readiness.check()
    expect(checks).toBeLessThanOrEqual(1 + Math.floor((performance.now() - began) / 1000))
  })

  it('is away while nothing can be written, comes back by itself, and says each once', async () => {
    const fault = { fails: false }
    await using database = await openDatabase({ kind: 'memory', folder: '', fault })
    const log = new RecordingLog()
    const readiness = createReadiness(log)
    readiness.start(new Journal(database.sql))
    fault.fails = true
    const failure = { kind: 'storage', message: 'Deliveries cannot be stored', cause: { kind: 'storage' } }
    for (let i = 0; i < 3; i++) await expect(readiness.check()).rejects.toMatchObject(failure)
    fault.fails = false
    const answer = () => readiness.check().catch((error: unknown) => error)
    await expect.poll(answer, { timeout: 10_000 }).toBeUndefined()
    await readiness.check()
    expect(log.lines).toEqual(['warn /ready answers 503: no room', 'info /ready answers 200 again'])
  })

  it('does not wait for storage that hangs, and asks it again only later', async () => {
    let checks = 0
    const readiness = createReadiness(new RecordingLog())
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

  it('lets a load balancer that watches notice before the end; otherwise the end comes at once', async () => {
    const log = new RecordingLog()
    const unwatched = createReadiness(log)
    unwatched.start({ check: async () => {} })
    await unwatched.check()
    await unwatched.stop()
    expect(log.lines).toEqual([])
    const watched = createReadiness(log)
    watched.start({ check: async () => {} })
    await watched.check({ watched: true })
    const began = performance.now()
    const stopping = watched.stop()
    await expect(watched.check()).rejects.toBeInstanceOf(RelayError)
    await stopping
    expect(performance.now() - began).toBeGreaterThan(4900)
    expect(log.lines).toEqual([
      'info /ready answers 503 for 5 s, so that a load balancer stops sending first',
    ])
  })
})

describe('a start that fails after the data is open', () => {
  it('answers the requests that wait for it, and ends at once', async () => {
    const port = String(await freePort())
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

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  server.close()
  await once(server, 'close')
  return typeof address === 'object' && address ? address.port : 0
}
