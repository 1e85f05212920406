import { createRequire } from 'node:module'
import { randomUUID } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { githubDelivery, post } from '../kit/delivery.js'
import { entriesOf } from '../kit/journal.js'
import { place } from '../kit/place.js'
import { smee } from '../kit/smee.js'
import { fresh } from './fixture.js'

/** What GitHub publishes of its payloads. */
const EXAMPLES: readonly { readonly name: string; readonly examples: readonly object[] }[] = createRequire(
  import.meta.url,
)('@octokit/webhooks-examples')

/** Payload of an event that GitHub has published, with a score. */
function example(event: string): string {
  const all = EXAMPLES.filter(({ name }) => name === event).flatMap(({ examples }) =>
    examples.map((one) => JSON.stringify(one)),
  )
  const found = all.find((one) => one.includes('"score":'))
  if (found === undefined) throw new Error(`no example of ${event}`)
  return found
}

const [ALERT, ADVISORY] = [example('dependabot_alert'), example('security_advisory')]

/** The JSON with this text as the value of a member, wherever it is. */
function withMember(text: string, name: string, value: string): string {
  const changed = text.replaceAll(new RegExp(`("${name}":)[\\d.]+`, 'g'), `$1${value}`)
  if (changed === text) throw new Error(`nothing to change in ${text}`)
  return changed
}

/** An item of a project, whose field of type number was changed. */
const item = (from: string, to: string): string =>
  `{"action":"edited","projects_v2_item":{"id":31,"node_id":"PVTI_1","project_node_id":"PVT_1","content_type":"Issue"},"changes":{"field_value":{"field_node_id":"PVTF_1","field_type":"number","field_name":"Points","project_number":7,"from":${from},"to":${to}}},"organization":{"id":9},"sender":{"id":583231}}`

/** Members of an advisory that come beside the published ones. */
const SEVERITIES =
  '"cvss_severities":{"cvss_v3":{"vector_string":"CVSS:3.1/AV:N","score":9.0},"cvss_v4":{"vector_string":null,"score":0.0}},"epss":{"percentage":1.0e-05,"percentile":1.0},"cvss":'

/** What GitHub, which is Ruby, writes. */
const bodies: readonly (readonly [event: string, what: string, body: string])[] = [
  ...['0.0', '1.0', '10.0', '7.5'].flatMap((score) => [
    ['dependabot_alert', `a score of ${score}`, withMember(ALERT, 'score', score)] as const,
    ['security_advisory', `a score of ${score}`, withMember(ADVISORY, 'score', score)] as const,
  ]),
  ['dependabot_alert', 'whole and other scores', ALERT.replaceAll('"cvss":', SEVERITIES)],
  ['security_advisory', 'whole and other scores', ADVISORY.replaceAll('"cvss":', SEVERITIES)],
  ['projects_v2_item', 'a whole number', item('null', '3.0')],
  ['projects_v2_item', 'two', item('3.0', '5.0')],
  ['projects_v2_item', 'a whole and a broken one', item('0.5', '100.0')],
  ['projects_v2_item', 'a large one', item('1.0e+20', '1.0e-05')],
  ['projects_v2_item', 'integers', item('1', '2')],
  [
    'repository_dispatch',
    "numbers of the user's",
    '{"action":"x","branch":"main","client_payload":{"n":1,"weight":2.0,"list":[1,2.5,3.0],"id":4}}',
  ],
  [
    'deployment',
    "numbers of the user's",
    '{"action":"created","deployment":{"id":1,"payload":{"ratio":1.0,"count":1}},"repository":{"id":2}}',
  ],
]

const CONNECTED = { type: 'tunnel', state: 'connected', roundTrip: 'ok' }

const here = fresh(() => place({ host: 'none' }))

describe('numbers that a smee server writes otherwise', () => {
  it.each([
    ['with the length that the server passes on', true],
    ['without it', false],
  ])('are restored, as GitHub writes them, %s', async (_, isKnown) => {
    await using server = await smee()
    const relay = await here.serve('--tunnel', server.channel)
    await relay.object(CONNECTED)
    // Where the length is unknown, only members that are known to have such numbers are tried.
    const sent = bodies.filter(([, what]) => isKnown || !what.includes("user's"))
    const expected = new Map(
      sent.map(([event, what, body]) => [randomUUID(), { event, what, body }] as const),
    )
    for (const [id, { event, body }] of expected) {
      const { headers } = githubDelivery({ event, id, body })
      const message = Object.fromEntries(headers.map(([name, value]) => [name.toLowerCase(), value]))
      if (isKnown) await post(server.channel, { headers, body: Buffer.from(body) })
      else server.message({ ...message, body: JSON.parse(body) })
    }
    for (const delivery of expected.keys()) await relay.object({ type: 'delivery', delivery })
    const found = (await entriesOf(here)).map(({ deliveryId, body }) => [deliveryId, String(body)] as const)
    expect(new Map(found)).toEqual(new Map([...expected].map(([id, { body }]) => [id, body])))
  })

  it('cost little that is bounded, also where a thousand may have been written otherwise', async () => {
    await using server = await smee()
    const relay = await here.serve('--tunnel', server.channel)
    await relay.object(CONNECTED)
    const numbers = Array.from({ length: 1000 }, (_, n) => `"m${n}":${n}`)
    // Every third one is a floating-point number: which ones these are, nothing says.
    const lost = `{${numbers.map((one, n) => (n % 3 === 0 ? `${one}.0` : one)).join()}}`
    const all = `{${numbers.map((one) => `${one}.0`).join()}}`
    const [refused, whole, last] = [randomUUID(), randomUUID(), randomUUID()]
    await post(server.channel, githubDelivery({ event: 'repository_dispatch', id: refused, body: lost }))
    await post(server.channel, githubDelivery({ event: 'repository_dispatch', id: whole, body: all }))
    await post(server.channel, githubDelivery({ event: 'ping', id: last, body: '{"zen":"x","hook_id":1}' }))
    await relay.object({ type: 'delivery', delivery: whole })
    await relay.object({ type: 'delivery', delivery: last })
    await expect.poll(async () => (await here.run('log', '--refused')).out).toContain(refused)
  })
})
