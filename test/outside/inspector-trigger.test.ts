import { beforeEach, describe, expect, it } from 'vitest'
import { openInspector } from '../kit/inspector.js'
import { linesOf } from '../kit/journal.js'
import { place } from '../kit/place.js'
import { receiver, valuesOf } from '../kit/receiver.js'
import { fresh, shared } from './fixture.js'
import { SENDERS, SENDERS_ENV } from './source-senders.js'

interface Listed {
  readonly source: string
  readonly scheme: string
  readonly events: readonly string[]
}

/** As the inspector's page reads it. */
interface Triggers {
  readonly sources: readonly Listed[]
  readonly targets: readonly { readonly id: string; readonly name: string; readonly label: string }[]
}

describe('what is listed', () => {
  const target = shared(() => receiver())
  const here = shared(() => place({ host: 'none', env: SENDERS_ENV }))
  const relay = shared(() =>
    here.serve(
      '--forward',
      `all=${target.url}/all`,
      '--forward',
      `open=open/*=${target.url}/open?key=hidden`,
    ),
  )
  const inspector = shared(() => openInspector(here, relay))
  const triggers = async (): Promise<Triggers> => JSON.parse(await (await inspector.get('triggers')).text())

  it('is of every source what relay trigger lists, with the targets, whose passwords are hidden', async () => {
    const { sources, targets } = await triggers()
    expect(sources.map(({ source, scheme }) => ({ name: source, scheme }))).toEqual([
      { name: 'github', scheme: 'github' },
      ...SENDERS.map(({ name, scheme }) => ({ name, scheme })),
    ])
    for (const { source, events } of sources) {
      const { code, out } = await here.run(
        'trigger',
        '--list',
        ...(source === 'github' ? [] : ['--source', source]),
      )
      expect([source, code === 0 ? out.trimEnd().split('\n') : []]).toEqual([source, events])
    }
    expect(targets.map(({ name, label }) => [name, label])).toEqual([
      ['all', `${target.url}/all`],
      ['open', `${target.url}/open?…`],
    ])
  })

  it('is sent, each unchanged example of each source, and arrives verified and of its event', async () => {
    const { sources, targets } = await triggers()
    const all = sources.flatMap(({ source, events }) => {
      // One of each event of the code host, whose examples are many.
      const some =
        source === 'github' ? events.filter((event) => /^(?:push|ping|issues\.)/.test(event)) : events
      return some.map((event) => ({ source, event }))
    })
    expect(all.length).toBeGreaterThan(20)
    for (const { source, event } of all) {
      const query = new URLSearchParams({ source, event })
      const { text }: { readonly text: string } = JSON.parse(
        await (await inspector.get(`triggers/example?${query.toString()}`)).text(),
      )
      const sent = await inspector.send('trigger', {
        source,
        example: event,
        body: text,
        target: targets[0]?.id,
      })
      const made: unknown = await sent.json()
      expect([source, event, sent.status, made]).toEqual([source, event, 200, { n: expect.any(Number) }])
    }
    await target.has(all.length)
    const lines = await linesOf(here)
    expect(lines.map(({ source, verifiedBy }) => [source, verifiedBy])).toEqual(
      all.map(({ source }) => [source, 'current']),
    )
    // Of a code host, the name has the action behind the event.
    const names = lines.map(({ event, action }) => [event, ...(action === null ? [] : [action])].join('.'))
    expect(names.map((name, i) => name.startsWith(String(all[i]?.event)))).toEqual(names.map(() => true))
  })
})

describe('sending', () => {
  const [target, other] = [fresh(() => receiver()), fresh(() => receiver())]
  const here = fresh(() => place({ host: 'none', env: SENDERS_ENV }))
  const relay = fresh(() =>
    here.serve('--forward', `all=${target.url}/all`, '--forward', `push=${other.url}/push`),
  )
  const inspector = fresh(() => openInspector(here, relay))
  let targets: Triggers['targets'] = []
  beforeEach(async () => {
    ;({ targets } = JSON.parse(await (await inspector.get('triggers')).text()))
  })

  const trigger = async (given: object) => {
    const response = await inspector.send('trigger', given)
    return [response.status, await response.json()]
  }

  it('sends an edited example along the routes as the code host does, and marks it as no copy', async () => {
    const body = '{"ref":"refs/heads/mine","repository":{"full_name":"octo/demo"}}'
    expect(await trigger({ source: 'github', example: 'push', body })).toEqual([200, { n: 1 }])
    await Promise.all([target.has(1), other.has(1)])
    const [received] = other.received
    expect(received?.body.toString()).toBe(body)
    expect(received && valuesOf(received, 'x-github-event')).toEqual(['push'])
    expect(received && valuesOf(received, 'x-relay-edited')).toEqual([])
  })

  it('sends the same twice as two deliveries, and to the one target that is named', async () => {
    const given = { source: 'github', example: 'push', body: '{"a":1}', target: targets[0]?.id }
    expect([await trigger(given), await trigger(given)]).toEqual([
      [200, { n: 1 }],
      [200, { n: 2 }],
    ])
    await target.has(2)
    expect(other.received).toEqual([])
  })

  it('sends a payload of one’s own, of an event that has no example, or that the payload names', async () => {
    expect(await trigger({ source: 'github', event: 'made_up', body: '{"a":1}' })).toEqual([200, { n: 1 }])
    expect(await trigger({ source: 'stripe', body: '{"type":"made.up"}' })).toEqual([200, { n: 2 }])
    await target.has(2)
    expect(target.received.map((each) => valuesOf(each, 'x-github-event'))).toEqual([['made_up'], []])
    expect(target.received[1]?.body.toString()).toMatch(/^\{"type":"made\.up","id":"[^"]+"\}$/)
  })

  it.each([
    [
      'no event',
      { source: 'github', body: '{}' },
      'Not sent: The body names no event. Give it in the field Event',
    ],
    [
      'another event than the payload has',
      { source: 'stripe', event: 'a.b', body: '{"type":"c.d"}' },
      'Not sent: Event is a.b, but the body is of c.d: change one of them',
    ],
    ['a body that is no JSON', { source: 'github', example: 'push', body: '{' }, /^Not sent: .*JSON/],
    [
      'no such source',
      { source: 'nobody', example: 'push', body: '{}' },
      'There is no source of that name any more. Reload the page',
    ],
    [
      'no such target',
      { source: 'github', example: 'push', body: '{}', target: 'x' },
      'There is no such target any more. Reload the page',
    ],
  ])('refuses %s in words of the page', async (_, given, why) => {
    expect(await trigger(given)).toEqual([400, { error: expect.stringMatching(why) }])
    expect(await linesOf(here)).toEqual([])
  })

  it('refuses what has no key, and what is larger than relay accepts', async () => {
    const given = { source: 'github', example: 'push', body: '{}' }
    const keyless = await inspector.send('trigger', given, { 'X-Relay-Key': '' })
    expect(keyless.status).toBe(403)
    const large = { ...given, body: JSON.stringify('x'.repeat(1_048_576)) }
    expect(await trigger(large)).toEqual([
      413,
      { error: 'The body has 1048578 bytes, the limit is 1048576 (--max-body)' },
    ])
  })
})
