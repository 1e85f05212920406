// The examples that come with relay for every sender that it knows by name.
import { readdirSync, readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { type Fixture, fixtureOf, signedRequest, startRelay, TEST_SECRET } from 'webhook-relay/testing'
import { receiver } from '../kit/receiver.js'
import { NAMED_SENDERS } from '../kit/named-senders.js'
import { place } from '../kit/place.js'
import { shared } from './fixture.js'

const HOSTS = new Set(['github', 'gitea', 'gitlab-host'])
const SENDERS = readdirSync('fixtures', { withFileTypes: true })
  .filter((each) => each.isDirectory() && !HOSTS.has(each.name))
  .map(({ name }) => name)

/** At least so many events of those that are used most. */
const MOST_USED: Readonly<Record<string, number>> = {
  stripe: 10,
  ...Object.fromEntries(
    'slack shopify gitlab linear bitbucket twilio standard paddle hubspot zoom square'
      .split(' ')
      .map((name) => [name, 5]),
  ),
}

/** What programs read of an event's payload, deep inside: sender, event, paths. */
const READ = `
stripe checkout.session.completed: data.object.customer_details.email data.object.customer_details.address.country
      data.object.collected_information.shipping_details.name data.object.payment_method_types.0
stripe invoice.paid: data.object.lines.data.0.pricing.price_details.price data.object.status_transitions.paid_at
      data.object.parent.subscription_details.subscription data.object.customer_address.city
stripe customer.subscription.updated: data.object.items.data.0.price.recurring.interval
      data.previous_attributes.cancel_at_period_end data.object.items.data.0.current_period_end
slack app_mention: event.blocks.0.elements.0.elements.0.user_id authorizations.0.user_id
slack block_actions: message.blocks.0.elements.0.text.text actions.0.value channel.name container.message_ts
slack view_submission: view.state.values.title.value.value
shopify orders/create: customer.default_address.country_code line_items.0.price_set.shop_money.amount
      shipping_address.city shipping_lines.0.price tax_lines.0.rate client_details.user_agent
shopify refunds/create: refund_line_items.0.line_item.sku transactions.0.amount
gitlab Merge Request Hook.open: object_attributes.last_commit.id object_attributes.source.default_branch
      labels.0.title reviewers.0.username
gitlab Push Hook: commits.0.author.email commits.0.added.0 project.git_ssh_url
gitlab Pipeline Hook: builds.0.runner.description merge_request.source_branch
linear Issue.create: data.team.key data.state.name data.assignee.email data.labels.0.name data.project.name actor.name
linear Issue.update: updatedFrom.stateId
bitbucket jira:issue_updated: issue.fields.assignee.displayName issue.fields.status.statusCategory.key changelog.items.0.toString
bitbucket repo:push: push.changes.0.new.target.author.user.display_name push.changes.0.commits.0.hash
standard user.created: data.email_addresses.0.email_address data.email_addresses.0.verification.status
standard email.bounced: data.bounce.type data.to.0
paddle transaction.completed: data.details.totals.grand_total data.items.0.price.unit_price.amount
      data.payments.0.method_details.card.last4
paddle subscription.created: data.items.0.price.billing_cycle.interval data.current_billing_period.ends_at
hubspot contact.propertyChange: 0.propertyName 0.objectId
square payment.updated: data.object.payment.card_details.card.last_4
zoom recording.completed: payload.object.recording_files.0.download_url
twilio received: From Body
stripe payment_intent.payment_failed: data.object.last_payment_error.decline_code
stripe charge.succeeded: data.object.payment_method_details.card.last4 data.object.billing_details.address.line1
`

/** When the examples were written, in the forms in which senders write times. */
const WRITTEN = /2026-01-3[01]|(?<!\d)17698[56]\d{4}|31 Jan 2026|Jan 31 .* 2026/

function readFixtures(sender: string): Fixture[] {
  return readdirSync(`fixtures/${sender}`).map((file) =>
    JSON.parse(readFileSync(`fixtures/${sender}/${file}`, 'utf8')),
  )
}

/** The payload of a fixture: JSON, in a form, or the fields of one; or the claims of a token. */
function payloadOf({ body = '', headers }: Fixture): unknown {
  const [, claims, signature] = body.split('.')
  if (body.startsWith('eyJ') && claims !== undefined && signature !== undefined)
    return JSON.parse(Buffer.from(claims, 'base64url').toString())
  const [, boundary] = /^multipart\/form-data; boundary=(.+)$/.exec(String(headers['Content-Type'])) ?? []
  if (boundary !== undefined) {
    const parts = body.split(`--${boundary}`).slice(1, -1)
    return Object.fromEntries(
      parts.map((part) => /name="(.*)"\r\n\r\n([^]*)\r\n$/.exec(part)?.slice(1) ?? []),
    )
  }
  if (!String(headers['Content-Type']).startsWith('application/x-www-form-urlencoded'))
    return JSON.parse(body)
  const fields = Object.fromEntries(new URLSearchParams(body))
  return fields['payload'] === undefined ? fields : JSON.parse(fields['payload'])
}

/** The values of members that are no objects, by their paths. */
function leavesOf(value: unknown, path = ''): [path: string, text: string][] {
  if (typeof value !== 'object' || value === null) return [[path, String(value)]]
  return Object.entries(value).flatMap(([name, each]) => leavesOf(each, `${path}.${name}`))
}

it('are there for every sender with a name', () => {
  const names = NAMED_SENDERS.map(({ name }) => name)
  expect(names.filter((name) => !SENDERS.includes(name))).toEqual([])
})

const DAY = 86_400_000
/** Its only time is when somebody came to a server. */
const TIMELESS = new Set(['discord 2'])

/** The time that a text is, in milliseconds since 1970-01-01 UTC: none before 2015, which are versions of interfaces. */
function timeOf(text: string): number[] {
  const seconds = /^\d{10}(?:\.\d+)?$/.test(text) ? Number(text) * 1000 : NaN
  const time = /^\d{13}$/.test(text)
    ? Number(text)
    : /^\d{4}-\d\d-\d\d/.test(text)
      ? Date.parse(text)
      : seconds
  return time > Date.UTC(2015) && time < Date.now() + 400 * DAY ? [time] : []
}

/** Secrets of senders that do not take any text. */
const SECRETS: Readonly<Record<string, string>> = { braintree: 'public_1:s3cret' }

/** Senders whose private key nobody else has: relay signs with a key pair of its own. */
const OWN_KEYS: ReadonlySet<string> = new Set([
  'discord',
  'google-pubsub',
  'paypal',
  'plaid',
  'sendgrid',
  'sns',
  'telnyx',
  'wix',
])

const here = shared(() => place({ host: 'none' }))

describe.each(SENDERS)('each example of %s', (name) => {
  const fixtures = readFixtures(name)
  const events = fixtures.map(({ event }) => event)

  it('is listed, and is in a file that people can read, without a signature', async () => {
    const { out } = await here.run('trigger', '--list', '--source', name)
    expect(out.trimEnd().split('\n').toSorted()).toEqual(events.toSorted())
    expect(events.length).toBeGreaterThanOrEqual(MOST_USED[name] ?? 1)
    for (const { payload, headers } of fixtures) {
      expect(payload).toBeTypeOf('object')
      // Box says in headers of their own how it signs.
      const proofs = /signature(?!-(?:version|algorithm))|hmac|(?<!idempotency-)token/i
      expect(Object.keys(headers).join(' ')).not.toMatch(proofs)
    }
  })

  it('is taken and forwarded, as it was made', async () => {
    await using target = await receiver()
    await using relay = await startRelay({
      secret: SECRETS[name] ?? TEST_SECRET,
      sources: { [name]: name },
      forward: [`${name}/*=${target.url}`],
    })
    for (const event of events) {
      const made = fixtureOf(event, { scheme: name })
      const delivery = await relay.deliver(made)
      expect([event, delivery]).toMatchObject([
        event,
        {
          provider: name,
          event,
          verifiedBy: OWN_KEYS.has(name) ? 'own' : 'current',
          attempts: [{ outcome: 'succeeded' }],
        },
      ])
      expect(target.received.at(-1)?.body.toString()).toBe(Buffer.from(delivery.body).toString())
    }
  })

  it('has a time of these days, where it has one', () => {
    for (const { event } of fixtures) {
      const made = fixtureOf(event, { scheme: name })
      const texts = [...leavesOf(payloadOf(made)), ...leavesOf(made.headers)].map(([, text]) => text)
      const times = texts.flatMap(timeOf)
      const isOld = times.length > 0 && !times.some((time) => Math.abs(time - Date.now()) < 2 * DAY)
      expect([event, isOld]).toEqual([event, TIMELESS.has(`${name} ${event}`)])
    }
  })

  it('is refused with a spoilt signature, wherever that is', async () => {
    const secret = SECRETS[name] ?? TEST_SECRET
    await using relay = await startRelay({ secret, sources: { [name]: name } })
    const [event = ''] = events
    const send = async (tamper?: 'signature'): Promise<number> => {
      const url = `${relay.url}/webhook/${name}`
      const fixture = fixtureOf(event, { scheme: name })
      return (await fetch(signedRequest(fixture, { secret, url, ...(tamper && { tamper }) }))).status
    }
    // The certificate, which could prove it, cannot be fetched here.
    const refused = name === 'sns' || name === 'paypal' ? 503 : 401
    expect([await send(), await send('signature')]).toEqual([200, refused])
  })

  it('happens now, with new ids, the same wherever one is', () => {
    for (const { event, payload } of fixtures) {
      const [one, other] = [1, 2].map(() => fixtureOf(event, { scheme: name }))
      if (!one || !other) throw new Error('not made')
      expect([event, one.delivery === other.delivery]).toEqual([event, false])
      expect([event, WRITTEN.exec(`${one.body} ${JSON.stringify(one.headers)}`)?.[0]]).toEqual([
        event,
        undefined,
      ])
      const written = new Map(leavesOf(payload))
      const made = leavesOf(payloadOf(one))
      expect([event, made.map(([path]) => path)]).toEqual([event, [...written.keys()]])
      const renewed = new Map<string, string>()
      for (const [path, text] of made) {
        const before = written.get(path) ?? ''
        expect([event, path, renewed.get(before) ?? text]).toEqual([event, path, text])
        renewed.set(before, text)
      }
      const changed = [...renewed].filter(([before, text]) => before !== text && /^[\w-]{9,}$/.test(before))
      expect([event, changed.filter(([before]) => one.body?.includes(before))]).toEqual([event, []])
    }
  })
})

/** Headers with what a sender makes for each event or request: its id, or its time. */
const FRESH_HEADER =
  /(?:event|delivery|request|message|notification|transmission|transport|idempotency|invocation|correlation)-?(?:\w+-)*(?:id|uuid|token)$|idempotency-key$|(?:date|timestamp|triggered-at|-time)$/i

it('dates and ids are new in headers, too, of every example', () => {
  const found = SENDERS.flatMap((name) =>
    readFixtures(name).flatMap(({ event, headers }) => {
      const made = fixtureOf(event, { scheme: name })
      return Object.entries(headers)
        .filter(([header]) => FRESH_HEADER.test(header))
        .map(([header, written]) => ({ header, isNew: made.headers[header] !== written, name, event }))
    }),
  )
  expect(found.filter(({ isNew }) => !isNew)).toEqual([])
  const names = new Set(found.map(({ header }) => header))
  expect([...names]).toEqual(expect.arrayContaining(['X-Shopify-Event-Id', 'X-Gitlab-Event-UUID']))
})

describe('a program that reads deep members', () => {
  const rows = READ.trim()
    .split(/\n(?! )/)
    .map((row) => /^(\S+) (.+?): ([^]+)$/.exec(row)?.slice(1) ?? [])
  it.each(rows)('of %s %s finds %s', (scheme = '', event = '', paths = '') => {
    const leaves = new Map(leavesOf(payloadOf(fixtureOf(event, { scheme }))))
    for (const path of paths.split(/\s+/))
      expect([path, leaves.get(`.${path}`)]).toEqual([path, expect.stringMatching(/^(?!null$)./)])
  })
})
