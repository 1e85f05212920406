import { describe, expect, it } from 'vitest'
import { hub, joining } from '../kit/hub.js'
import { openInspector } from '../kit/inspector.js'
import { codingAgent } from '../kit/mcp.js'
import { place } from '../kit/place.js'
import { fresh, json } from './fixture.js'

const CONNECTED = { type: 'tunnel', state: 'connected', roundTrip: 'ok' }

const server = fresh(() => hub())

describe('the commands beside relay serve --tunnel at a hub', () => {
  it('know its payload URL: hook add, doctor, source list, the inspector and agents', async () => {
    await using here = await place({ signedIn: true })
    const env = { ...here.env, ...(await joining(server)) }
    const relay = await here.serveWith(
      { env },
      '--tunnel',
      '--source',
      'open=none event=$.type',
      '--allow-unsigned',
    )
    const url = String((await relay.object({ ...CONNECTED, source: 'sandbox' }))['url'])
    const other = url.replace(/\/sandbox$/, '/open')
    expect(url).toMatch(new RegExp(`^${server.address}/[\\w-]{32}/sandbox$`))

    const added = await here.run('hook', 'add', 'octo/demo', '--json')
    expect(added).toMatchObject({ code: 0, out: expect.stringContaining(`"url":"${url}"`) })
    // The sandbox has sent a ping to the hub, which is here.
    expect(await relay.object({ type: 'delivery', event: 'ping' })).toMatchObject({ n: 1 })

    const { checks }: { checks: Record<string, string>[] } = await json(here.run('doctor', '--json'))
    const named = (name: string) => checks.find(({ check }) => check === name)
    expect(named('tunnel')).toMatchObject({
      state: 'ok',
      text: expect.stringContaining(`connected to ${url} `),
    })
    expect(named('tunnel')?.['text']).toMatch(/, and works; open: connected to \S+ since .*, and works$/)
    expect(named('hook')).toMatchObject({ state: 'ok' })

    expect((await here.runWith({ env }, 'source', 'list', '--json')).out).toContain(`"${other}"`)

    const inspector = await openInspector(here, relay)
    expect(await inspector.json('state')).toMatchObject({
      tunnel: { payloadUrl: url, state: 'connected' },
      sourceTunnels: [{ payloadUrl: other, source: 'open', state: 'connected' }],
    })

    await using agent = await codingAgent(here)
    const { tunnels } = await agent.call('relay_state')
    expect(tunnels).toMatchObject([
      { state: 'connected', fromOutside: { url } },
      { state: 'connected', fromOutside: { url: other } },
    ])
  })

  it('leave --tunnel new to smee, whatever the invitation', async () => {
    await using here = await place({ host: 'none' })
    const env = { ...here.env, RELAY_HUB_TOKEN: await server.invite() }
    // A process of its own, whose proxy is none: no smee server can be reached.
    const relay = await here.serveWith(
      { built: true, env: { ...env, HTTPS_PROXY: 'http://127.0.0.1:9' } },
      '--tunnel',
      'new',
    )
    await relay.object({ type: 'tunnel', state: 'waiting' })
    expect((await server.operate('list', '--json')).out).not.toContain('"type":"channel"')
  })
})
