import { describe, expect, it } from 'vitest'
import { clock } from '../kit/clock.js'
import { post, type WebhookRequest } from '../kit/delivery.js'
import { KEY_SENDERS, keyRequest, valueOf } from '../kit/key-senders.js'
import { place } from '../kit/place.js'
import { type Received, receiver } from '../kit/receiver.js'
import { objects } from './example.js'
import { shared } from './fixture.js'

const HOUR = 3_600_000
/** The id that relay gives to a delivery whose sender gives none. */
const OWN_ID = expect.stringMatching(/^relay-[\da-f-]{36}$/)
const named = KEY_SENDERS.map((sender) => [sender.name, sender] as const)

/** The same request with another value of a header. */
function withHeader(
  request: WebhookRequest,
  name: string,
  change: (value: string) => string,
): WebhookRequest {
  const headers = request.headers.map(
    ([each, value]) => [each, each === name ? change(value) : value] as const,
  )
  return { ...request, headers }
}

/** A signature with another character near its end, which keeps its form. */
const changed = (signature: string): string =>
  signature.replace(
    /(.)(.{8})$/,
    (_, char: string, end: string) =>
      (char === 'A'
        ? 'B'
        : char === 'a'
          ? 'b'
          : char === '1'
            ? '2'
            : /\d/.test(char)
              ? '1'
              : /[A-Z]/.test(char)
                ? 'A'
                : 'a') + end,
  )

const indented = (request: WebhookRequest): WebhookRequest => ({
  ...request,
  body: Buffer.from(JSON.stringify(JSON.parse(String(request.body)), null, 2)),
})

describe('senders that sign with a key pair', () => {
  const time = clock(Date.now())
  const target = shared(() => receiver())
  const here = shared(async () => {
    const made = await place({ host: 'none' })
    for (const [name, { scheme, key }] of named) {
      const added = await made.runWith({ stdin: key }, 'source', 'add', `${name}=${scheme}`, '--json')
      expect(added).toMatchObject({ code: 0, err: '' })
    }
    return made
  })
  const relay = shared(() => {
    const flags = named.flatMap(([name]) => ['--forward', `${name}/*=${target.url}/${name}`])
    return here.serveWith({ seams: { clock: time.now } }, ...flags)
  })
  const send = async (name: string, request: WebhookRequest): Promise<number> =>
    (await post(`${relay.address}/webhook/${name}`, request)).status
  const receivedOf = (name: string): readonly Received[] =>
    target.received.filter(({ path }) => path === `/${name}`)
  const lastOf = async (name: string): Promise<Record<string, unknown>> =>
    objects((await here.run('log', '--source', name, '--last', '1', '--json')).out)[0] ?? expect.unreachable()
  /** relay's own key for a source, as a program would take it. */
  const ownKeyOf = async (name: string): Promise<string> => {
    const listed = objects((await here.run('source', 'list', '--json')).out)
    return String(listed.find((each) => each['name'] === name)?.['ownKey'])
  }
  const reasonOf = async (name: string): Promise<string> => {
    const listed = objects((await here.run('source', 'list', '--json')).out)
    const { lastRefusal } = listed.find((each) => each['name'] === name) ?? {}
    return JSON.stringify(lastRefusal)
  }

  it.each(named)('%s is taken, named, and forwarded as it came', async (name, sender) => {
    const request = keyRequest(sender, time.now())
    expect(await sender.verify(request, sender.key)).toBe(true)
    expect(await send(name, request)).toBe(200)
    await expect.poll(() => receivedOf(name).length).toBe(1)
    const [got = expect.unreachable()] = receivedOf(name)
    expect(await sender.verify(got, sender.key)).toBe(true)
    const sent = got.headers.map(([each, value]) => [each.toLowerCase(), value])
    for (const [each, value] of request.headers) expect(sent).toContainEqual([each.toLowerCase(), value])
    expect(valueOf(got, 'X-Relay-Late')).toBe('')
    expect(await lastOf(name)).toMatchObject({
      event: sender.event,
      delivery: sender.id ?? OWN_ID,
      verifiedBy: 'current',
    })
  })

  it.each(named)('%s is refused when anything is changed, and relay says what', async (name, sender) => {
    const right = keyRequest(sender, time.now())
    const refusals: [WebhookRequest, RegExp][] = [
      [
        { ...right, body: Buffer.from(String(right.body).replace('1', '2')) },
        /signed with another key, or the body was changed/,
      ],
      [withHeader(right, sender.header, changed), /signed with another key, or the body was changed/],
      [{ ...right, headers: right.headers.filter(([each]) => each !== sender.header) }, /there is no /],
      [withHeader(right, sender.header, () => 'x'), /is malformed, expected /],
      // Nobody else ends a body as SendGrid does.
      ...(sender.body.endsWith('\r\n')
        ? []
        : ([[indented(right), /the body was re-encoded on its way/]] satisfies [WebhookRequest, RegExp][])),
      ...(sender.isTimed
        ? ([[keyRequest(sender, time.now() - HOUR), /its signed time is 360[01] s behind/]] satisfies [
            WebhookRequest,
            RegExp,
          ][])
        : []),
    ]
    for (const [request, reason] of refusals) {
      expect(await send(name, request)).toBe(401)
      expect(await reasonOf(name)).toMatch(reason)
    }
  })

  it.each(named)('%s is forwarded as it came an hour later, and marked', async (name, sender) => {
    const { n } = await lastOf(name)
    const count = receivedOf(name).length
    time.advance(HOUR)
    const ran = await here.runWith({ seams: { clock: time.now } }, 'replay', String(n), '--keep-id')
    expect(ran).toMatchObject({ code: 0 })
    const [again = expect.unreachable(), ...others] = receivedOf(name).slice(count)
    expect(others).toEqual([])
    expect(await sender.verify(again, sender.key)).toBe(true)
    expect(valueOf(again, 'X-Relay-Late')).toBe(sender.isTimed ? 'true' : '')
    const to = ['--to', `${target.url}/${name}`, '--json']
    const sent = await here.runWith({ seams: { clock: time.now } }, 'replay', String(n), '--keep-id', ...to)
    expect(objects(sent)[0]?.['late']).toBe(sender.isTimed ? true : undefined)
    const [, last = expect.unreachable()] = receivedOf(name).slice(count)
    expect(await sender.verify(last, sender.key)).toBe(true)
  })

  it.each(named)("what relay makes itself for %s has relay's own signature", async (name, sender) => {
    const count = receivedOf(name).length
    const { n } = await lastOf(name)
    const now = { seams: { clock: time.now }, stdin: sender.body.replace('1', '2') }
    const how = sender.body.startsWith('[')
      ? ['trigger', `${name}/${sender.event}`, '--body', '-']
      : ['replay', String(n), '--set', 'more=1']
    expect(await here.runWith(now, ...how)).toMatchObject({ code: 0 })
    await expect.poll(() => receivedOf(name).length).toBe(count + 1)
    const [made = expect.unreachable()] = receivedOf(name).slice(count)
    expect(await sender.verify(made, await ownKeyOf(name))).toBe(true)
    expect(await sender.verify(made, sender.key)).toBe(false)
    expect(await lastOf(name)).toMatchObject({ verifiedBy: 'own' })
  })

  it.each(named)('%s with another key is refused', async (name, sender) => {
    const own = `${name}-other`
    await here.runWith({ stdin: sender.otherKey }, 'source', 'add', `${own}=${sender.scheme}`)
    expect(await send(own, keyRequest(sender, time.now()))).toBe(401)
    expect(await reasonOf(own)).toMatch(/another source|signed with another key|whose secret proves it/)
  })
})
