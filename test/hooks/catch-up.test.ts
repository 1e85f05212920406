import { describe, expect, it } from 'vitest'
import { RelayError } from '../../src/base/errors.js'
import { Secret } from '../../src/base/secret.js'
import {
  catchUp,
  type CatchUpOptions,
  type DeliveryLog,
  LOG_PERIOD_MS,
  logOf,
} from '../../src/hooks/catch-up.js'
import type { HookDelivery } from '../../src/providers/hooks.js'
import { createProvider } from '../../src/providers/open.js'
import { startSandbox } from '../../src/testing/index.js'

const sent = (n: number, more: Partial<HookDelivery> = {}): HookDelivery => ({
  id: `${n}`,
  guid: `g${n}`,
  event: 'push',
  action: null,
  deliveredAt: n,
  redelivery: false,
  statusCode: 502,
  status: 'failed to connect to host',
  ...more,
})
const limited = (): RelayError => new RelayError('rate_limited', 'slow down', { retryAfter: 1 })
const failed = (): RelayError => new RelayError('provider_failed', 'it failed (502)')

/** A code host that has sent five deliveries, and a journal; `redeliver` says what becomes of each that is asked for. */
function rig(
  redeliver: (guid: string, host: { arrive: () => void; fail: () => void }) => void = (_, { arrive }) =>
    arrive(),
) {
  const entries = [1, 2, 3, 4, 5].map((n) => sent(n)).toReversed()
  const journal = new Set<string>()
  const asked: string[] = []
  const waits: string[] = []
  const log: DeliveryLog = {
    page: () => Promise.resolve({ deliveries: [...entries], next: undefined }),
    async redeliver(id) {
      const guid = `g${id}`
      asked.push(guid)
      redeliver(guid, {
        arrive: () => void journal.add(guid),
        fail: () =>
          void entries.unshift(
            sent(100 + asked.length, {
              guid,
              redelivery: true,
              statusCode: 500,
              status: 'Invalid HTTP Response: 500',
            }),
          ),
      })
    },
  }
  let reached = -1n
  const place = { get: async () => reached, put: async (id: bigint) => void (reached = id) }
  const run = (more: Partial<Omit<CatchUpOptions, 'log'>> & { log?: Partial<DeliveryLog> } = {}) =>
    catchUp({
      journal: {
        known: (ids) => Promise.resolve(new Set(ids.filter((id) => journal.has(id)))),
        keptSince: () => Promise.resolve(-Infinity),
      },
      since: 0,
      place,
      onWait: (why, ms) => waits.push(`${why}: ${Math.round(ms / 1000)}`),
      ...more,
      log: { ...log, ...more.log },
    })
  return { run, journal, asked, waits, log }
}

describe('catching up', () => {
  it('asks for each that is missing, oldest first, once the one before has arrived', async () => {
    let underWay = 0
    let most = 0
    const { run, asked, journal } = rig((_, { arrive }) => {
      most = Math.max(most, ++underWay)
      setTimeout(() => {
        underWay--
        arrive()
      }, 10)
    })
    journal.add('g2')
    expect(await run()).toEqual({ missing: 4, arrived: 4, failed: [] })
    expect([asked, most]).toEqual([['g1', 'g3', 'g4', 'g5'], 1])
    expect(await run()).toEqual({ missing: 0, arrived: 0, failed: [] })
  })

  it('never asks again for what it had, also when retention has removed it', async () => {
    const { run, asked, journal } = rig((guid, { arrive }) => (guid === 'g4' ? undefined : arrive()))
    const limits = { arrival: 10, logLook: 1000 }
    expect(await run({ limits })).toMatchObject({ missing: 5, arrived: 4 })
    journal.clear()
    expect(await run({ limits })).toMatchObject({ missing: 2, arrived: 1 })
    expect(asked).toEqual(['g1', 'g2', 'g3', 'g4', 'g5', 'g4', 'g5'])
  })

  it('leaves out pings', async () => {
    const deliveries = [sent(2), sent(1, { event: 'ping' })]
    const { run, asked } = rig()
    expect(await run({ log: { page: async () => ({ deliveries, next: undefined }) } })).toMatchObject({
      missing: 1,
    })
    expect(asked).toEqual(['g2'])
  })

  it('leaves out what is older than wanted, and does not ask for what came meanwhile', async () => {
    const { run, asked, journal } = rig((_, { arrive }) => {
      journal.add('g4')
      arrive()
    })
    expect(await run({ since: 3 })).toEqual({ missing: 3, arrived: 3, failed: [] })
    expect(asked).toEqual(['g3', 'g5'])
  })

  it('waits for rate limits, and tries again after failures without a known cause', async () => {
    const faults = [limited(), failed()]
    const { run, log, asked, waits } = rig()
    const redeliver: DeliveryLog['redeliver'] = async (id, options) => {
      const fault = faults.shift()
      if (fault) throw fault
      return log.redeliver(id, options)
    }
    expect(await run({ log: { redeliver } })).toMatchObject({ arrived: 5 })
    expect(asked).toEqual(['g1', 'g2', 'g3', 'g4', 'g5'])
    expect(waits).toEqual(['slow down: 1', 'it failed (502): 1'])
  })

  it('names what fails again, and what the code host refuses, and continues with the rest', async () => {
    const { run, log } = rig((guid, { arrive, fail }) => (guid === 'g2' ? fail() : arrive()))
    const redeliver: DeliveryLog['redeliver'] = async (id, options) => {
      if (id === '4') throw new RelayError('forbidden', 'not allowed')
      return log.redeliver(id, options)
    }
    expect(await run({ log: { redeliver } })).toEqual({
      missing: 5,
      arrived: 3,
      failed: [
        { delivery: sent(2), why: 'the redelivery failed too: Invalid HTTP Response: 500 (500)' },
        { delivery: sent(4), why: 'not allowed' },
      ],
    })
  })

  it('stops asking when five in a row do not arrive', async () => {
    const { run, asked } = rig()
    const refuse = (): Promise<never> => {
      asked.push('refused')
      return Promise.reject(new RelayError('unprocessable', 'no'))
    }
    const many = Array.from({ length: 8 }, (_, n) => sent(n))
    const page = () => Promise.resolve({ deliveries: many.toReversed(), next: undefined })
    const result = await run({ log: { redeliver: refuse, page } })
    expect([asked.length, result.arrived]).toEqual([5, 0])
    expect(result.failed.map(({ why }) => why)).toEqual([
      ...Array(5).fill('no'),
      ...Array(3).fill('not asked for, since 5 in a row did not arrive'),
    ])
  })

  it('says which the log has forgotten meanwhile, and asks for the rest, however many these are', async () => {
    const { run, asked, log } = rig()
    const many = Array.from({ length: 8 }, (_, n) => sent(n + 1))
    const page = () => Promise.resolve({ deliveries: many.toReversed(), next: undefined })
    const redeliver: DeliveryLog['redeliver'] = async (id, options) => {
      if (Number(id) < 8) throw new RelayError('not_found', 'Not Found')
      return log.redeliver(id, options)
    }
    const result = await run({ log: { redeliver, page } })
    expect([asked, result.arrived]).toEqual([['g8'], 1])
    expect(new Set(result.failed.map(({ why }) => why))).toEqual(
      new Set(['the code host has it no longer: its log goes back 3 days']),
    )
  })

  it('cannot have what became older than three days before it was asked for', async () => {
    let now = Date.now()
    await using sandbox = await startSandbox({ clock: () => now })
    const provider = createProvider({ name: 'sandbox', url: sandbox.url })
    const repo = { owner: 'octo', repo: 'demo' }
    const token = await sandbox.token('repo')
    const settings = { url: 'http://127.0.0.1:9/', secret: new Secret('x'), events: ['issue_comment'] }
    const { id } = await provider.hooks.create(token, repo, settings)
    await provider.comment(token, { ...repo, issueNumber: 1, body: 'old' })
    await sandbox.idle()
    const own = logOf(provider, { token: async () => token, repo }, id)
    const page: DeliveryLog['page'] = async (...args) => {
      const listed = await own.page(...args)
      now += LOG_PERIOD_MS + 1
      return listed
    }
    const { missing, failed: lost } = await rig().run({ log: { ...own, page } })
    expect([missing, lost]).toEqual([
      1,
      [
        {
          delivery: expect.objectContaining({ event: 'issue_comment' }),
          why: 'the code host has it no longer: its log goes back 3 days',
        },
      ],
    ])
  })

  it('does not wait for a limit of more than an hour, and ends at once when it is aborted', async () => {
    const late = new RelayError('rate_limited', 'slow down', { retryAfter: 3601 })
    await expect(rig().run({ log: { page: () => Promise.reject(late) } })).rejects.toBe(late)
    const stop = new AbortController()
    const { run } = rig(() => setTimeout(() => stop.abort(), 5))
    await expect(run({ signal: stop.signal })).rejects.toMatchObject({ name: 'AbortError' })
  })

  it('is refused where the code host has no log', () => {
    const gitea = createProvider({ name: 'gitea', url: 'https://git.example.com' })
    const repo = { owner: 'octo', repo: 'demo' }
    expect(() => logOf(gitea, { token: async () => '', repo }, 1)).toThrow(
      expect.objectContaining({ kind: 'unprocessable', exitCode: 8 }),
    )
  })
})
