import { describe, expect, it } from 'vitest'
import { type CodingAgent, codingAgent, type Fields } from '../kit/mcp.js'
import { place } from '../kit/place.js'
import { receiver } from '../kit/receiver.js'

// The relay of `--serve` belongs to no window: each call finds one, or starts it.

const STARTED = expect.stringMatching(/^No relay was running: this call has started one/)
/** A call of each tool that a model may make next. */
const CALLS: readonly (readonly [tool: string, given: Fields])[] = [
  ['relay_state', {}],
  ['list_deliveries', {}],
  ['show_delivery', { entry: 1 }],
  ['show_routes', {}],
  ['trigger_delivery', { list: true }],
  ['trigger_delivery', { event: 'issues.opened' }],
  ['replay_delivery', { entry: 1 }],
  ['wait_for_delivery', { match: 'push', since: '1h' }],
]

const running = async (agent: CodingAgent): Promise<Fields> =>
  Object((await agent.call('relay_state'))['running'])

describe('of two windows with --serve', () => {
  it.each(CALLS)('the second takes over at its next call, which is %s %j', async (tool, given) => {
    await using here = await place({ host: 'none' })
    await using handler = await receiver()
    const flags = ['--serve', '--forward', handler.url]
    await using first = await codingAgent(here, ...flags)
    await first.call('trigger_delivery', { event: 'push' })
    await using second = await codingAgent(here, ...flags)
    const { pid } = await running(second)
    await first.close()
    const { notes } = await second.call(tool, given)
    expect(notes).toEqual(expect.arrayContaining([STARTED]))
    const { pid: own, url } = await running(second)
    expect(own).not.toBe(pid)
    expect((await fetch(`${String(url)}/health`)).status).toBe(200)
    // Said once.
    expect((await second.call('relay_state'))['notes']).toEqual([])
  })
})

describe('a --serve beside a relay with other targets', () => {
  it('says that its own are not in use, and what to do, until it runs itself', async () => {
    await using here = await place({ host: 'none' })
    await using handler = await receiver()
    const relay = await here.serve('--forward', `star=${handler.url}`)
    await using agent = await codingAgent(
      here,
      '--serve',
      '--forward',
      handler.url,
      '--exec',
      'push=cat',
      '--forward',
      `star=${handler.url}`,
    )
    const { pid } = await running(agent)
    const unused = `The relay that runs (process ${String(pid)}) was not started by this client, and lacks 2 targets that the client is set up with. Stop it: the next call starts one that has them`
    for (const tool of ['relay_state', 'show_routes'])
      expect((await agent.call(tool))['notes']).toEqual([unused])
    await relay.stop()
    expect(await agent.call('trigger_delivery', { event: 'issues.opened' })).toMatchObject({
      outcome: 'succeeded 200',
    })
    expect((await agent.call('show_routes'))['notes']).toEqual([])
  })
})

describe('a --serve that failed', () => {
  it.each(CALLS)('is tried again at the next call, which is %s %j', async (tool, given) => {
    await using here = await place({ host: 'none' })
    await using busy = await receiver()
    await using agent = await codingAgent(here, '--serve', '--port', String(busy.port), '--forward', '9')
    const why = expect.stringMatching(/^With --serve, .* no relay could start\. Port \d+ is in use/)
    expect(await agent.call('relay_state')).toMatchObject({
      running: null,
      // Where it will be.
      payloadUrl: `http://127.0.0.1:${busy.port}/webhook`,
      settings: { flags: ['port', 'forward'] },
      routes: [{ target: 'http://localhost:9' }],
      notes: [why],
    })
    expect((await agent.call('show_routes'))['notes']).toEqual([why])
    await busy.down()
    const { content } = await agent.client.callTool({
      name: tool,
      arguments: tool.startsWith('wait') ? { ...given, timeout: 1 } : given,
    })
    expect(content).toMatchObject([{ text: expect.stringContaining('this call has started one') }])
    expect(await running(agent)).toMatchObject({ url: `http://127.0.0.1:${busy.port}` })
  })
})
