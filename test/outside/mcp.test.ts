import { describe, expect, it } from 'vitest'
import { canary } from '../kit/canary.js'
import { post } from '../kit/delivery.js'
import { codingAgent, type Fields } from '../kit/mcp.js'
import { CLIENT, place } from '../kit/place.js'
import { receiver } from '../kit/receiver.js'
import { shared } from './fixture.js'

const NOT_RUNNING =
  'No relay is running for profile default. Start it with relay serve. relay mcp --serve would start one by itself'
const READERS = [
  'explain_refused',
  'list_deliveries',
  'relay_state',
  'show_delivery',
  'show_routes',
  'wait_for_delivery',
]
const SENDERS = ['replay_delivery', 'trigger_delivery']
const ACTIONS = ['comment', 'merge', 'react']

/** The result's delivery, or its part. */
const at = (result: unknown, ...path: (string | number)[]): unknown =>
  path.reduce<unknown>((value, step) => Object(value)[step], result)

describe('relay mcp', () => {
  const here = shared(() => place({ host: 'none' }))

  it('goes the way of an agent that writes a handler: 500 with its body, mended, 200', async () => {
    // The handler crashes at first.
    await using handler = await receiver({ status: 500, body: "TypeError: Cannot read 'ref' of undefined" })
    await using relay = await here.serve('--forward', `push=${handler.url}/hook`)
    await using agent = await codingAgent(here)
    expect(await agent.call('relay_state')).toMatchObject({
      profile: 'default',
      running: { url: relay.address, sandbox: false },
      start: null,
      routes: [{ target: `push=${handler.url}/hook`, state: 'up' }],
    })
    const broken = await agent.call('trigger_delivery', { event: 'push', set: ['ref=refs/heads/main'] })
    const n = at(broken, 'delivery', 'n')
    expect(broken).toMatchObject({
      sent: { ok: true, status: 200 },
      delivery: {
        verifiedBy: 'current',
        targets: [{ state: 'waiting', status: 500 }],
        attempts: [
          {
            outcome: 'retry',
            status: 500,
            fromOutside: { answer: "TypeError: Cannot read 'ref' of undefined" },
          },
        ],
        fromOutside: { event: 'push', ref: 'refs/heads/main' },
      },
      notes: [],
    })
    handler.answers(...Array.from({ length: 9 }, () => 200))
    const mended = await agent.call('replay_delivery', { entry: String(n) })
    expect(mended).toMatchObject({
      sent: { ok: true, status: 200 },
      delivery: {
        targets: [{ state: 'succeeded', status: 200 }],
        attempts: [{ outcome: 'succeeded', status: 200 }],
      },
    })
    expect(at(mended, 'delivery', 'n')).not.toBe(n)
    const { body } = handler.received.at(-1) ?? {}
    expect(JSON.parse(String(body))).toMatchObject({ ref: 'refs/heads/main' })
  })
})
