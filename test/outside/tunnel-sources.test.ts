import { createHmac } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { githubDelivery, post, SECRET, type WebhookRequest } from '../kit/delivery.js'
import { openInspector } from '../kit/inspector.js'
import { readMetrics } from '../kit/metrics.js'
import { place } from '../kit/place.js'
import { receiver, valuesOf } from '../kit/receiver.js'
import { smee } from '../kit/smee.js'
import { fresh } from './fixture.js'

const here = fresh(() =>
  place({
    host: 'none',
    env: {
      RELAY_SOURCE_BILLING_SECRET: SECRET,
      RELAY_SOURCE_SLACK_SECRET: SECRET,
      RELAY_SOURCE_GITLAB_SECRET: 'plain',
      RELAY_SOURCE_CI_SECRET: SECRET,
      RELAY_SOURCE_BUILDKITE_SECRET: SECRET,
      RELAY_SOURCE_FLUTTERWAVE_SECRET: SECRET,
    },
  }),
)
const target = fresh(() => receiver())

/** An event as Stripe writes and signs it. */
function stripeEvent(id: string): WebhookRequest {
  const time = Math.floor(Date.now() / 1000)
  const body = `{\n  "id": "${id}",\n  "data": {\n    "object": {\n      "metadata": {\n      },\n      "name": "Café <b>"\n    }\n  },\n  "type": "invoice.paid"\n}`
  const signature = createHmac('sha256', SECRET).update(`${time}.${body}`).digest('hex')
  return {
    headers: [
      ['Content-Type', 'application/json; charset=utf-8'],
      ['Stripe-Signature', `t=${time},v1=${signature},v0=${'0'.repeat(64)}`],
    ],
    body: Buffer.from(body),
  }
}

describe('a handshake through a tunnel', () => {
  const ZOOM = 'hmac header=X-Signature event=$.event handshake=zoom'
  const hmac = (body: string): string => createHmac('sha256', SECRET).update(body).digest('hex')

  it.each([
    [
      'signed',
      'ci',
      ZOOM,
      '{"event":"endpoint.url_validation","payload":{"plainToken":"qgg8"}}',
      'endpoint.url_validation',
    ],
    [
      'unsigned',
      'ci',
      'hmac header=X-Signature event=$.event handshake=monday',
      '{"challenge":"3eZb"}',
      'challenge',
    ],
    [
      'with a secret',
      'ci',
      'hmac header=X-Signature event=$.event handshake=notion',
      '{"verification_token":"secret_tMrlL1"}',
      'verification_token',
    ],
  ])('is a line and listed, and no delivery: %s', async (_, source, scheme, body, name) => {
    await using server = await smee()
    const relay = await here.serve(
      '--source',
      `${source}=${scheme}`,
      '--tunnel',
      server.url,
      '--forward',
      target.url,
    )
    const works = { type: 'tunnel', state: 'connected', roundTrip: 'ok', source }
    const own = String((await relay.object(works))['url'])
    const headers: [string, string][] = [['Content-Type', 'application/json']]
    if (name.startsWith('endpoint')) headers.push(['X-Signature', hmac(body)])
    await post(own, { headers, body: Buffer.from(body) })
    const why = 'it came through a tunnel, whose server passes on no answer'
    expect(await relay.object({ type: 'handshake', source })).toMatchObject({ name, status: null })
    // A delivery that comes behind it.
    const paid = '{"event":"paid"}'
    await post(own, {
      headers: [
        ['Content-Type', 'application/json'],
        ['X-Signature', hmac(paid)],
      ],
      body: Buffer.from(paid),
    })
    await target.has(1)
    expect(target.received.map((each) => String(each.body))).toEqual([paid])
    const { out } = await here.run('log', '--refused', '--json')
    const listed = out
      .trim()
      .split('\n')
      .map((line): Record<string, unknown> => JSON.parse(line))
    expect(listed.find(({ kind }) => kind === 'handshake')).toMatchObject({ source, via: 'tunnel' })
    expect(String(listed.find(({ kind }) => kind === 'handshake')?.['reason'])).toContain(why)
    const { out: shown } = await here.run('show', 'refused:1', '--json')
    expect(shown.includes('secret_tMrlL1')).toBe(false)
    expect((await here.run('log', '--json')).out.trim().split('\n')).toHaveLength(1)
  })
})

describe('relay serve --tunnel with sources', () => {
  it('gives each source a channel of its own, shows it everywhere, and remembers it', async () => {
    await using server = await smee()
    const flags = ['--source', 'billing=stripe', '--tunnel', server.url, '--metrics', '--forward', target.url]
    const relay = await here.serve(...flags)
    const works = { type: 'tunnel', state: 'connected', roundTrip: 'ok' }
    const host = String((await relay.object({ ...works, source: 'github' }))['url'])
    const own = String((await relay.object({ ...works, source: 'billing' }))['url'])
    expect(own).not.toBe(host)

    const event = stripeEvent('evt_1')
    await post(own, event)
    await post(host, githubDelivery())
    await target.has(2)
    const handed = target.received.filter(({ body }) => body.equals(event.body))
    const signatures = handed.map((each) => valuesOf(each, 'Stripe-Signature'))
    expect(signatures).toEqual([[event.headers[1]?.[1]]])
    expect(await relay.object({ type: 'delivery', event: 'invoice.paid' })).toMatchObject({
      delivery: 'evt_1',
      restored: 'indented-open',
    })
    // Another's secret proves nothing there, nor a copy on another channel.
    await post(host, event)
    await post(own, githubDelivery())
    await expect
      .poll(async () => (await readMetrics(relay.address))['relay_deliveries_refused_total']?.values)
      .toMatchObject({ 'reason=no_signature': 2 })

    const connected = (await readMetrics(relay.address))['relay_tunnel_connected']?.values
    expect(connected).toEqual({ '': 1, 'source=billing': 1 })
    const state = await (await openInspector(here, relay)).json('state')
    const shown = { state: 'connected', detail: null }
    expect(state).toMatchObject({
      tunnel: { ...shown, source: 'github', payloadUrl: host },
      sourceTunnels: [{ ...shown, source: 'billing', payloadUrl: own }],
    })
    const { out } = await here.run('doctor')
    expect(out).toContain(`connected to ${host} since `)
    expect(out).toContain(`; billing: connected to ${own} since `)
    expect((await here.run('config')).out).toContain(own)
    expect((await here.run('source', 'list')).out).toContain(own)
    const { err } = await relay.stop()
    for (const text of [
      `payload URL  ${host}\n`,
      `sources      billing  ${own}\n`,
      `tunnel connected: payload URL ${host}\n`,
      `tunnel of billing connected: payload URL ${own}\n`,
    ])
      expect(err).toContain(text)

    const again = await here.serve(...flags)
    expect(await again.object({ ...works, source: 'billing' })).toMatchObject({ url: own })
    expect(await again.object({ ...works, source: 'github' })).toMatchObject({ url: host })
  })

  it.each<[flags: readonly string[], why: string]>([
    [
      ['--source', 'billing=stripe', '--tunnel', 'https://smee.io/Kf3v'],
      '--tunnel names one channel, which only the code host can use',
    ],
    [
      ['--source', 'gitlab', '--tunnel'],
      'Set a signing token there (whsec_…) and here, or serve it without --tunnel',
    ],
    [
      ['--source', 'ci=token header=X-Token', '--tunnel'],
      'Serve it without --tunnel, with a profile of its own',
    ],
    // The same secret sends itself, or signs, as a setting there says.
    ...['buildkite', 'flutterwave'].map((sender): [readonly string[], string] => [
      ['--source', sender, '--tunnel'],
      'anyone can read and write a channel. Serve it without --tunnel, with a profile of its own',
    ]),
    [['--source', 'any=none', '--tunnel'], 'its deliveries do not prove their body'],
  ])('ends at the start, before anything is made, for %j', async (flags, why) => {
    const { code, out, err } = await here.run('serve', '--port', '0', ...flags)
    expect([code, out]).toEqual([2, ''])
    expect(err).toContain(why)
    expect((await here.run('profiles', '--json')).out).toBe('')
  })

  it('says how to remove a source of the profile that cannot have a tunnel', async () => {
    await here.runWith({ stdin: 'tok-5b1e77' }, 'source', 'add', 'ci=token header=X-Token')
    const { code, err } = await here.run('serve', '--port', '0', '--tunnel')
    await here.run('source', 'remove', 'ci')
    expect([code, err]).toEqual([2, expect.stringMatching(/, or remove it here: relay source remove ci\n$/)])
  })

  it('says what of Slack a smee server does not pass on', async () => {
    await using server = await smee()
    const relay = await here.serve('--source', 'slack', '--tunnel', server.url)
    await relay.object({ type: 'tunnel', roundTrip: 'ok', source: 'slack' })
    const { err } = await relay.stop()
    expect(err).toMatch(/warning: slack works only in part through --tunnel: .* forms, .* url_verification/)
  })
})
