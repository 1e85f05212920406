import { beforeAll, describe, expect, it } from 'vitest'
import { type DeliveryOptions, giteaDelivery, githubDelivery, post } from '../kit/delivery.js'
import { place } from '../kit/place.js'
import { fails } from '../kit/run.js'
import { example, objects } from './example.js'
import { json, shared } from './fixture.js'

const CANARY = 'Bearer canary'
const OTHER = 'signed with another secret, or the body was changed on its way'
const PATH = 'it looks like a delivery: the payload URL of the webhook must end in /webhook'
const JSON_BODY = '{"action":"opened","zen":"<é>"}'

const here = shared(() => place({ host: 'none' }))
const relay = shared(() => here.serve())
beforeAll(async () => {
  const wrong = githubDelivery({ id: 'd-1', body: JSON_BODY, secret: 'x', set: { Authorization: CANARY } })
  const sent = [
    ['/webhook', wrong],
    ['/webhooks', githubDelivery({ id: 'd-2' })],
    ['/webhook', githubDelivery({ id: 'd-3', body: 'not JSON' })],
    ['/webhook', githubDelivery({ id: 'd-4', set: { 'X-Hub-Signature-256': 'sha1=0' } })],
  ] as const
  for (const [path, request] of sent) await post(`${relay.address}${path}`, request)
})

describe('relay log --refused', () => {
  it('lists what was refused with the reason, and counts each kind', async () => {
    const { code, out, err } = await here.run('log', '--refused')
    const lines = out.trimEnd().split('\n')
    expect(lines.map((line) => line.replace(/ {2}\d{4}-\S+ \S+/, ''))).toEqual([
      `refused:1  http 401  push  d-1  ${OTHER}`,
      `refused:2  http 404  push  d-2  ${PATH}`,
      'refused:3  http 400  push  d-3  the body is not JSON',
      expect.stringMatching(/^refused:4 {2}http 401 {2}push {2}d-4 {2}.*SHA-1/),
    ])
    expect([code, err]).toEqual([
      0,
      'refused since the start: 1 without a well-formed signature, 1 whose signature does not match, 1 malformed, or under the wrong event, 1 sent to another path\n',
    ])
  })

  it('prints records, the newest N', async () => {
    const { out } = await here.run('log', '--refused', '--json', '--last', '2')
    const why = { status: 400, kind: 'invalid_event', reason: 'the body is not JSON' }
    const what = { via: 'http', source: 'github', event: 'push', delivery: 'd-3', size: 8 }
    const counts = { invalid_signature: 1, wrong_path: 1, invalid_event: 1, no_signature: 1 }
    expect(objects(out)).toEqual([
      { v: 1, type: 'refused', id: 3, time: expect.stringMatching(/Z$/), ...what, ...why },
      expect.objectContaining({ id: 4, kind: 'no_signature' }),
      { v: 1, type: 'refused_counts', ...counts },
    ])
  })

  it('needs a running instance', async () => {
    await using stopped = await example()
    const none =
      'Profile default is not being served, and only the running instance has refused requests. Start it with relay serve'
    expect(await stopped.run('log', '--refused')).toEqual(fails(1, none))
  })
})

describe('relay show refused:1', () => {
  it('shows the request, marked as unproved, without credentials', async () => {
    const { code, out } = await here.run('show', 'refused:1')
    expect(code).toBe(0)
    expect(out).toContain('refused:1  not proved, and never forwarded\n')
    expect(out).toContain(`reason      ${OTHER}\n`)
    expect(out).toContain('claims      event push, delivery d-1\n')
    expect(out).toContain('  X-GitHub-Delivery: d-1\n')
    expect(out).toContain(`body (32 bytes)\n  {\n    "action": "opened",\n    "zen": "<é>"\n  }\n`)
    expect(out).not.toContain(CANARY)
  })

  it('gives the exact bytes, and a record', async () => {
    expect((await here.run('show', 'refused:1', '--body')).out).toBe(JSON_BODY)
    const shown = { type: 'refused', id: 1, body: JSON_BODY, complete: true, payload: JSON.parse(JSON_BODY) }
    expect(await json(here.run('show', 'refused:1', '--json'))).toMatchObject(shown)
  })

  it('says what was not stored, and which there are', async () => {
    expect((await here.run('show', 'refused:2')).out).toMatch(/body \(\d+ bytes\): not read\n$/)
    expect(await here.run('show', 'refused:9')).toEqual(
      fails(6, 'The running instance has no refused:9. relay log --refused lists those it has'),
    )
  })
})

describe('relay verify refused:1', () => {
  it('explains the signature with the secret of this shell', async () => {
    const { code, out, err } = await here.run('verify', 'refused:1', 'refused:3')
    expect([code, out, err]).toEqual([
      5,
      `invalid  refused:1  ${OTHER}\nvalid    refused:3\n`,
      'error: 1 of 2 signatures do not match\n',
    ])
  })

  it('gives the reason of the instance where the body was not stored', async () => {
    const { code, out } = await here.run('verify', 'refused:2', '--json')
    expect([code, objects(out)]).toEqual([
      5,
      [expect.objectContaining({ name: 'refused:2', valid: false, reason: 'unverifiable', hint: PATH })],
    ])
  })
})

const FORM = 'application/x-www-form-urlencoded'
const form = new URLSearchParams({ payload: JSON_BODY }).toString()
/** What a code host sends that is set up otherwise than relay. */
const STRANGE: Readonly<Record<string, DeliveryOptions>> = {
  'with another secret': { secret: 'x' },
  'without a secret': { set: { 'X-Hub-Signature-256': 'sha256=' } },
  'as a form, of which the JSON is signed': { type: FORM, body: form, signed: JSON_BODY, secret: 'x' },
  'as a form, signed whole': { type: FORM, body: form, secret: 'x' },
  'with SHA-1 alone': {
    set: { 'X-Hub-Signature-256': undefined, 'X-Hub-Signature': `sha1=${'0'.repeat(40)}` },
  },
  'that is no JSON': { body: 'not JSON' },
}
const ADDRESS = ', and RELAY_PROVIDER_URL to its address'

describe.each([
  ['github', 'Gitea', giteaDelivery, `RELAY_PROVIDER=gitea${ADDRESS}`],
  ['gitea', 'GitHub', githubDelivery, 'RELAY_PROVIDER=github'],
] as const)('a relay that is set to %s says of a delivery of %s', (provider, label, delivery, fix) => {
  const env = { RELAY_PROVIDER: provider, RELAY_PROVIDER_URL: `https://${provider}.example` }
  const here = shared(() => place({ host: 'none', env }))
  const relay = shared(() => here.serve())

  it.each(Object.keys(STRANGE))('what to set: one %s', async (name) => {
    const { status } = await post(`${relay.address}/webhook`, delivery({ body: JSON_BODY, ...STRANGE[name] }))
    expect(status).toBeGreaterThanOrEqual(400)
    const [refused] = objects(await here.run('log', '--refused', '--json', '--last', '1'))
    const reason = `its headers are those of ${label}, but this relay receives from ${provider}: set ${fix}`
    expect(refused).toMatchObject({ type: 'refused', reason })
  })

  it('nothing odd of one to another path', async () => {
    await post(`${relay.address}/webhooks`, delivery())
    const [refused] = objects(await here.run('log', '--refused', '--json', '--last', '1'))
    expect(refused).toMatchObject({ reason: PATH })
  })
})
