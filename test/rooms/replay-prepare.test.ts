import { createHmac } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { Secret } from '../../src/base/secret.js'
import type { Header } from '../../src/http/headers.js'
import { type Fixture, fromFixture } from '../../src/replay/fixture.js'
import { prepareRequest } from '../../src/replay/prepare.js'

const secrets = { current: new Secret('s') }
const hmac = (algorithm: string, text: string): string =>
  createHmac(algorithm, 's').update(text).digest('hex')

function fixture(more: Partial<Fixture> = {}): Fixture {
  return {
    relay: 1,
    provider: 'github',
    event: 'push',
    delivery: 'id',
    headers: {},
    body: '{"a":1}',
    ...more,
  }
}

const headersOf = (more: Partial<Fixture>): readonly Header[] =>
  prepareRequest(fromFixture(fixture(more)), { secrets }).headers

describe('a hand-written fixture', () => {
  it.each([
    ['github', 'X-GitHub', []],
    ['sandbox', 'X-GitHub', []],
    ['gitea', 'X-Gitea', [['X-Gitea-Signature', hmac('sha256', '{"a":1}')]]],
    ['other', 'X-Provider', []],
  ])('of %s gets the headers that it lacks', (provider, prefix, more) => {
    expect(headersOf({ provider })).toEqual([
      ['Content-Type', 'application/json'],
      [`${prefix}-Event`, 'push'],
      [`${prefix}-Delivery`, 'id'],
      ['X-Hub-Signature-256', `sha256=${hmac('sha256', '{"a":1}')}`],
      ...more,
    ])
  })

  it('is sent as compact JSON, without credentials and what belongs to a connection', () => {
    const headers = { Host: 'x', 'Content-Length': '3', Cookie: 'a=b', 'content-type': 'application/json' }
    const { body: _, ...rest } = fixture({ headers, payload: { a: [1] } })
    const { headers: lines, body } = prepareRequest(fromFixture(rest), { secrets })
    expect(Buffer.from(body).toString()).toBe('{"a":[1]}')
    expect(lines.map(([name]) => name)).toEqual([
      'content-type',
      'X-GitHub-Event',
      'X-GitHub-Delivery',
      'X-Hub-Signature-256',
    ])
  })
})

describe('signing again', () => {
  it('replaces every signature in its place, with its own algorithm, and joins two to one', () => {
    const headers = {
      'X-Hub-Signature': 'sha1=0',
      'x-forgejo-signature': '0',
      'X-Gogs-Signature': '0',
      'X-Hub-Signature-256': ['sha256=0', 'sha256=1'],
      'X-Last': '1',
    }
    const digest = hmac('sha256', '{"a":1}')
    expect(headersOf({ headers }).slice(0, 5)).toEqual([
      ['X-Hub-Signature', `sha1=${hmac('sha1', '{"a":1}')}`],
      ['x-forgejo-signature', digest],
      ['X-Gogs-Signature', digest],
      ['X-Hub-Signature-256', `sha256=${digest}`],
      ['X-Last', '1'],
    ])
  })
})

it.each([
  ['{"a":19,"b":"x"}', '{"a":11,"b":"x"}'],
  ['{"a":[1]}\n', '{"a":[2]}\n'],
  ['{"a":"é"}', '{"a":"é"} '],
])('a body that was tampered with is still JSON: %j', (body, expected) => {
  const changed = prepareRequest(fromFixture(fixture({ body })), { secrets, tamper: 'body' })
  expect(Buffer.from(changed.body).toString()).toBe(expected)
})

it('a delivery under svix- headers is signed again, once its time is too long ago, under these alone and with its id', () => {
  const now = Date.UTC(2026, 0, 31, 12)
  const later = now + 3_600_000
  const own = { 'svix-id': 'msg_1', 'svix-timestamp': String(now / 1000), 'svix-signature': 'v1,x' }
  const recorded = fromFixture(
    fixture({ provider: 'standard', event: 'a', headers: own, body: '{"type":"a"}' }),
  )
  const first = prepareRequest(recorded, { secrets, now })
  const again = prepareRequest({ ...recorded, ...first }, { secrets, now: later, freshId: true })
  expect([first.isRenewed, again.isRenewed]).toEqual([false, true])
  const signed = createHmac('sha256', 's')
    .update(`msg_1.${later / 1000}.{"type":"a"}`)
    .digest('base64')
  expect(Object.fromEntries(again.headers)).toEqual({
    'Content-Type': 'application/json',
    'svix-id': 'msg_1',
    'svix-timestamp': String(later / 1000),
    'svix-signature': `v1,${signed}`,
  })
})
