import { describe, expect, it } from 'vitest'
import { repository } from '../kit/code-host.js'
import { commentsOf, linesOf } from '../kit/journal.js'
import { setUpApp } from '../kit/pages.js'
import { place } from '../kit/place.js'
import { closedPort } from '../kit/ports.js'
import { receiver } from '../kit/receiver.js'
import { smee } from '../kit/smee.js'
import { fresh } from './fixture.js'

const here = fresh(async () => {
  const env = { RELAY_CLIENT_ID: undefined, RELAY_CLIENT_SECRET: undefined, RELAY_WEBHOOK_SECRET: undefined }
  return place({ env: { ...env, RELAY_PORT: String(await closedPort()) } })
})
const demo = fresh(() => repository(here.sandbox))
const target = fresh(() => receiver())

const webhookSecret = async (): Promise<string> =>
  (await here.run('config', '--reveal', 'webhookSecret')).out.trim()

describe('relay setup --app-hook', () => {
  it('has the App send through the tunnel that runs, and what it sent meanwhile is caught up with through another', async () => {
    await using first = await smee()
    await using second = await smee()
    const flags = (channel: string) => ['--tunnel', channel, '--catch-up', '--forward', target.url]
    const before = await here.serve(...flags(first.channel))
    await before.object({ type: 'tunnel', state: 'connected' })
    const { slug } = await setUpApp(here)
    // The secret is that of the running relay, so it needs no restart for this.
    await demo.comment('one')
    await before.object({ type: 'delivery', event: 'issue_comment' })
    await before.stop()
    await demo.comment('two', 'three')
    const relay = await here.serve(...flags(second.channel))
    expect(await relay.object({ type: 'hook', app: slug, state: 'leads here' })).toMatchObject({
      url: second.channel,
      repaired: [`it led to ${first.channel}`],
    })
    const caughtUp = await relay.object({ type: 'hook', app: slug, state: 'caught up' })
    expect(caughtUp).toMatchObject({ missing: 2, arrived: 2, failed: [] })
    await relay.says(`webhook of the App ${slug} repaired (it led to ${first.channel}): ${second.channel}`)
    await demo.comment('four')
    await relay.objects({ type: 'delivery', event: 'issue_comment' }, 3)
    await relay.objects({ type: 'attempt', outcome: 'succeeded' }, 3)
    expect((await relay.stop()).code).toBe(0)
    expect(await commentsOf(here, await webhookSecret())).toEqual(['one', 'two', 'three', 'four'])
  })

  it('and a hook on one repository never have an event forwarded twice', async () => {
    const relay = await here.serve('--forward', `issue_comment=${target.url}`)
    await setUpApp(here)
    // As a person makes it, which relay cannot refuse.
    await demo.addHook({ url: `${relay.address}/webhook`, secret: await webhookSecret() })
    await demo.comment('one', 'two', 'three')
    await target.has(3)
    await here.sandbox.idle()
    expect((await relay.stop()).code).toBe(0)
    const texts = target.received.map(({ body }) => JSON.parse(body.toString()).comment.body)
    expect(texts).toEqual(['one', 'two', 'three'])
    // Once through the App, once through the hook.
    const lines = await linesOf(here, '--event', 'issue_comment')
    expect(lines.map(({ duplicates }) => duplicates)).toEqual([1, 1, 1])
  })
})
