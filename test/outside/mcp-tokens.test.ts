import { describe, expect, it } from 'vitest'
import { fill } from '../kit/journal.js'
import { type CodingAgent, codingAgent } from '../kit/mcp.js'
import { place } from '../kit/place.js'
import { receiver } from '../kit/receiver.js'
import { tokensOf } from '../kit/tokens.js'
import { shared } from './fixture.js'

const FAILED = { status: 'failed', attempts: [{ outcome: 'refused', status: 500 }] } as const

// A model pays for each word of a tool, again with each further step.

describe('what an agent reads', () => {
  const here = shared(() => place({ host: 'none' }))
  const trace = `TypeError: Cannot read properties of undefined (reading 'login')\n${'    at handle (/home/octo/projects/app/src/webhooks/handler.js:112:34)\n'.repeat(40)}`
  const handler = shared(() => receiver({ status: 500, body: trace }))
  const agent: CodingAgent = shared(() =>
    codingAgent(here, '--serve', '--forward', `app=pull_request=${handler.url}/hook`),
  )

  it('of the tools is less than 2,500 tokens', async () => {
    const { tools } = await agent.client.listTools()
    expect(tools.length).toBe(9)
    expect(tokensOf({ tools })).toBeLessThan(2500)
  })

  it('of what became of a delivery is less than 300 tokens, and of an error less than 100', async () => {
    const event = 'pull_request.review_requested'
    const sizes: (readonly [string, number])[] = []
    const measured = async (name: string, given: Record<string, unknown>): Promise<void> => {
      sizes.push([`${name} ${JSON.stringify(given)}`, tokensOf(await agent.call(name, given))])
    }
    await measured('trigger_delivery', { event })
    await measured('wait_for_delivery', { match: event, since: '1m' })
    await measured('replay_delivery', { entry: 'last' })
    await measured('replay_delivery', { entry: 'last' })
    handler.answers(200, 200)
    await measured('replay_delivery', { entry: 'last', set: ['pull_request.number=7'] })
    await measured('wait_for_delivery', { match: event, since: '1m', forwarded: true })
    await measured('trigger_delivery', { event, to: handler.url })
    expect(sizes.filter(([, size]) => size >= 300)).toEqual([])
    const errors = [
      await agent.fails('replay_delivery', { entry: 1, dryRun: true }),
      await agent.fails('trigger_delivery', { event, set: ['pull_request.nummber=7'] }),
      await agent.fails('list_deliveries', { limit: 3 }),
    ]
    expect(errors.map(tokensOf).filter((size) => size >= 100)).toEqual([])
  })

  it.each([
    [1, 'waiting after 500'],
    [2, '1 of 2 failed 404; 1 of 2 waiting after 500'],
    [5, '2 of 5 failed; 2 of 5 waiting; 1 of 5 succeeded'],
    [20, '2 of 20 failed; 2 of 20 waiting; 16 of 20 succeeded'],
  ])(
    'of what became of a delivery with %i targets is less than 300 tokens, and says first that %s',
    async (count, became) => {
      await using wide = await place({ host: 'none' })
      const bodies = [
        trace,
        '無法讀取 undefined 的屬性 🚧 '.repeat(200),
        'Zx9+/'.repeat(900),
        '\u0001"\\'.repeat(300),
      ]
      const statuses = [500, 404, 422, 503]
      await using broken = await receiver(({ path }) => {
        const at = Number(path.split('-').at(-1))
        // One of each kind, and all others are well.
        return at >= 4
          ? 200
          : { status: statuses[at] ?? 200, body: bodies[at] ?? '', headers: { 'Retry-After': '60' } }
      })
      const targets = Array.from({ length: count }, (_, i) => [
        '--forward',
        `service-${count - i}=pull_request=${broken.url}/webhooks/handler-${count - i - 1}`,
      ])
      await using _relay = await wide.serve(...targets.flat())
      await using reader = await codingAgent(wide)
      const event = 'pull_request.review_requested'
      const results = [
        await reader.call('trigger_delivery', { event }),
        await reader.call('wait_for_delivery', { match: event, since: '1m' }),
        await reader.call('replay_delivery', { entry: 'last' }),
      ]
      expect(results.map(tokensOf).filter((size) => size >= 300)).toEqual([])
      for (const { outcome, delivery } of results) {
        const { targets: shown, attempts, moreTargets = 0 } = Object(delivery)
        expect(shown.length + moreTargets).toBe(count)
        expect(outcome).toBe(became)
        // What failed is there before what is well.
        const bad = shown.filter((each: unknown) => Object(each).state !== 'succeeded')
        expect(bad.length === Math.min(count, 4) || bad.length === shown.length).toBe(true)
        expect(JSON.stringify([attempts, shown])).toContain('"answer":"')
      }
    },
  )

  it('of a list is at most 40 tokens for each delivery', async () => {
    await using full = await place({ host: 'none' })
    await fill(
      full,
      Array.from({ length: 120 }, (_, i) => ({
        id: `d${i}`,
        event: 'pull_request',
        action: 'review_requested',
        repo: 'some-company/some-service',
        number: 1200 + i,
        receivedAt: Date.now() - 600_000,
        forwards: { 'pull_request=http://127.0.0.1:3000/hook': FAILED },
      })),
    )
    await using reader = await codingAgent(full)
    const { deliveries } = await reader.call('list_deliveries', { last: 100 })
    const lines: unknown[] = Object(deliveries)
    expect(lines.length).toBe(100)
    expect(lines.map(tokensOf).filter((size) => size > 40)).toEqual([])
    expect(lines.at(-1)).toMatchObject({ fromOutside: { repo: expect.stringContaining('service#1319') } })
  })
})
