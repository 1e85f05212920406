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
  })
})
