import { describe, expect, it } from 'vitest'
import { events } from 'webhook-relay/testing'
import { openInspector } from '../kit/inspector.js'
import { place } from '../kit/place.js'
import { fresh, json } from './fixture.js'

const SIGNING = `whsec_${Buffer.alloc(32, 7).toString('base64')}`
const REPO = 'group/sub/demo'

const here = fresh(() => place({ host: 'gitlab', signedIn: true, env: { RELAY_WEBHOOK_SECRET: SIGNING } }))
const hooks = () => here.gitlab.state.hooks.all

describe('the inspector of a relay at a GitLab', () => {
  it('lists what GitLab sends, and sends it', async () => {
    const inspector = await openInspector(here, await here.serve())
    const listed: unknown = await inspector.json('triggers')
    const [own] = Object(listed).sources
    expect([own.source, own.scheme]).toEqual(['gitlab-host', 'gitlab-host'])
    expect(own.events).toEqual(events({ provider: 'gitlab' }))
    const { body } = await json(here.run('trigger', 'merge_request.open', '--print'))
    const sent = await inspector.send('trigger', {
      source: 'gitlab-host',
      example: 'merge_request.open',
      body,
    })
    expect(sent.status).toBe(200)
    const all: unknown = await inspector.json('deliveries')
    const [delivery] = Object(all).deliveries
    expect(delivery).toMatchObject({ event: 'merge_request', action: 'open', subject: '!1' })
  })

  it('adds a hook of a project in groups, and refuses events that GitLab does not have', async () => {
    const relay = await here.serve()
    const inspector = await openInspector(here, relay)
    const add = async (given: object): Promise<readonly [number, unknown]> => {
      const answer = await inspector.send('hooks', { repo: REPO, user: 'ada', ...given })
      return [answer.status, await answer.json()]
    }
    expect(await add({ events: 'push,pull_request' })).toEqual([
      400,
      {
        error: expect.stringContaining(
          'Hooks of GitLab have no event pull_request. Did you mean merge_request?',
        ),
      },
    ])
    expect(hooks()).toEqual([])
    const to = `the hook of ${REPO}, to ${relay.address}/webhook`
    expect(await add({ events: 'push' })).toEqual([200, { text: `Created ${to}` }])
    here.gitlab.state.hooks.hasCommit = false
    for (const each of hooks()) each.recentFailures = 40
    const paused = 'The code host has paused it, since deliveries to it failed'
    expect(await add({ events: 'push' })).toEqual([200, { text: `Found ${to}. ${paused}` }])
  })
})
