import { describe, expect, it } from 'vitest'
import { RelayError } from '../../src/base/errors.js'
import { Secret } from '../../src/base/secret.js'
import type { Delivery, Receipt } from '../../src/journal/types.js'
import { Journal } from '../../src/journal/journal.js'
import { openDatabase } from '../../src/store/open.js'
import { createIntake, type IntakeParts, type WebhookRequest } from '../../src/webhook/intake.js'
import { GITEA, GITHUB, giteaDelivery, githubDelivery, SECRET, SECRETS } from '../helpers/delivery.js'
import { countOf, entriesOf, nowhere } from '../helpers/journal.js'

const FORM = 'application/x-www-form-urlencoded'
const form = (payload: string): string => new URLSearchParams({ payload }).toString()
/** JSON as Gitea writes it: two-space indent, HTML characters escaped. */
const GITEA_JSON = '{\n  "action": "opened",\n  "title": "\\u003cb\\u003e \\u0026 é",\n  "number": 3\n}'

const badSignature = new RelayError('invalid_signature', 'Invalid signature')
const badEvent = new RelayError('invalid_event', 'Invalid event')

async function setUp(parts: Partial<IntakeParts> = {}) {
  const journal = new Journal((await openDatabase({ kind: 'memory', folder: '' })).sql)
  const common = { provider: GITHUB, secrets: SECRETS, journal, plan: nowhere, clock: () => 1000 }
  const intake = createIntake({ ...common, ...parts })
  return { journal, intake }
}

/** The stored entry, or the error if nothing was stored. */
async function receive(request: WebhookRequest, parts: Partial<IntakeParts> = {}): Promise<unknown> {
  const { journal, intake } = await setUp(parts)
  try {
    await intake.receive(request)
    return await journal.read(1)
  } catch (error) {
    return (await countOf(journal)) === 0 ? error : new Error('stored all the same', { cause: error })
  }
}

describe('a genuine delivery', () => {
  it('is stored whole, and reported once stored', async () => {
    const reported: [Delivery, Receipt][] = []
    const { journal, intake } = await setUp({ onDelivery: (...args) => void reported.push(args) })
    const payload = { action: 'opened', number: 12, repository: { full_name: 'octo/demo' } }
    const request = githubDelivery({
      body: JSON.stringify(payload),
      event: 'pull_request',
      id: 'a-1',
      hook: '7',
    })
    expect(await intake.receive(request)).toEqual({ n: 1, duplicate: false, targets: [] })
    const delivery = {
      receivedAt: 1000,
      provider: 'github',
      event: 'pull_request',
      deliveryId: 'a-1',
      hookId: '7',
      headers: request.headers,
      body: request.body,
      verifiedBy: 'current',
      action: 'opened',
      repo: 'octo/demo',
      number: 12,
    }
    expect(await journal.read(1)).toEqual({
      n: 1,
      ...delivery,
      body: new Uint8Array(request.body),
      duplicates: 0,
    })
    expect(reported).toEqual([[delivery, { n: 1, duplicate: false, targets: [] }]])
  })

  it('may be signed with the previous secret', async () => {
    const secrets = { current: new Secret('new'), previous: new Secret(SECRET) }
    expect(await receive(githubDelivery(), { secrets })).toMatchObject({ verifiedBy: 'previous' })
  })

  it('is stored without credentials', async () => {
    const request = githubDelivery({
      set: {
        Authorization: 'Bearer x',
        cookie: ['a=1', 'b=2'],
        'Proxy-Authorization': 'Basic x',
        'proxy-connection': 'close',
        'X-Proxy': 'kept',
        'Cookie-Law': 'kept',
      },
    })
    expect(await receive(request)).toMatchObject({
      headers: [
        ['Content-Type', 'application/json'],
        ['X-GitHub-Hook-ID', '42'],
        ['X-GitHub-Event', 'push'],
        expect.anything(),
        expect.anything(),
        ['X-Proxy', 'kept'],
        ['Cookie-Law', 'kept'],
      ],
    })
  })
})

describe('the signature', () => {
  const good = githubDelivery().headers.at(-1)?.[1] ?? ''
  it.each([
    ['absent', undefined],
    ['repeated', [good, good]],
    ['empty', ''],
    ['of an empty digest', 'sha256='],
    ['upper-case', good.toUpperCase()],
    ['SHA-1', 'sha1=01dc10d0c83e72ed246219cdd91669667fe2ca59'],
    ['not ASCII', `sha256=${'é'.repeat(64)}`],
  ])('is refused when %s', async (_, value) => {
    const request = githubDelivery({ set: { 'X-Hub-Signature-256': value } })
    expect(await receive(request)).toEqual(badSignature)
  })

  it('is refused when made from other bytes or with another secret', async () => {
    expect(await receive(githubDelivery({ body: '{}', signed: '{} ' }))).toEqual(badSignature)
    expect(await receive(githubDelivery({ secret: 'other' }))).toEqual(badSignature)
  })

  it('is checked before everything else', async () => {
    const set = { 'X-GitHub-Event': undefined, 'X-GitHub-Delivery': undefined }
    expect(await receive(githubDelivery({ body: 'not JSON', secret: 'other', set }))).toEqual(badSignature)
  })
})

describe('the event and delivery headers', () => {
  it.each([
    ['X-GitHub-Event', undefined],
    ['X-GitHub-Event', ''],
    ['X-GitHub-Event', ['push', 'push']],
    ['X-GitHub-Event', 'a'.repeat(101)],
    ['X-GitHub-Event', 'push/x'],
    ['X-GitHub-Event', 'push, push'],
    ['X-GitHub-Event', 'pu\tsh'],
    ['X-GitHub-Event', 'é'],
    ['X-GitHub-Delivery', undefined],
    ['X-GitHub-Delivery', ''],
    ['X-GitHub-Delivery', ['a', 'a']],
    ['X-GitHub-Delivery', 'a'.repeat(201)],
    ['X-GitHub-Delivery', 'a b'],
    ['X-GitHub-Delivery', 'é'],
    ['X-GitHub-Hook-ID', ['1', '1']],
    ['X-GitHub-Hook-ID', 'a b'],
  ])('are refused: %s %j', async (name, value) => {
    expect(await receive(githubDelivery({ set: { [name]: value } }))).toEqual(badEvent)
  })

  it('are checked before the body', async () => {
    // Both errors are the same; only their causes differ.
    const request = githubDelivery({ body: 'not JSON', set: { 'X-GitHub-Event': undefined } })
    const { intake } = await setUp()
    await expect(intake.receive(request)).rejects.toMatchObject({
      cause: { message: 'the header x-github-event is missing, repeated or malformed' },
    })
  })

  it.each([
    ['a'.repeat(100), 'a'.repeat(200)],
    ['Merge Request Hook', '!~,;"'],
    ['repo:push_1.2-3', '1'],
  ])('may be %s and %s', async (event, deliveryId) => {
    expect(await receive(githubDelivery({ event, id: deliveryId }))).toMatchObject({ event, deliveryId })
  })

  it('may have the generic names', async () => {
    const set = {
      'X-GitHub-Event': undefined,
      'X-GitHub-Delivery': undefined,
      'X-GitHub-Hook-ID': undefined,
      'x-provider-EVENT': 'issues',
      'X-Provider-Delivery': 'd-1',
    }
    const identity = { event: 'issues', deliveryId: 'd-1', hookId: '' }
    expect(await receive(githubDelivery({ set }))).toMatchObject(identity)
    expect(await receive(githubDelivery({ set: { ...set, 'X-Provider-Event': 'a' } }))).toEqual(badEvent)
  })

  it("are the provider's own if both are present, even if its own are invalid", async () => {
    const set = { 'X-Provider-Event': 'other', 'X-Provider-Delivery': ['other', 'other'] }
    const request = githubDelivery({ event: 'push', id: 'mine', set })
    expect(await receive(request)).toMatchObject({ event: 'push', deliveryId: 'mine' })
    expect(await receive(githubDelivery({ event: '', set }))).toEqual(badEvent)
  })

  it("are Gitea's if Gitea is the provider, though it sends GitHub's as well", async () => {
    const request = giteaDelivery({
      event: 'pull_request_approved',
      id: 'g-1',
      set: { 'X-GitHub-Delivery': 'other', 'X-GitHub-Event': 'other', 'X-GitHub-Hook-ID': '9' },
    })
    const identity = { event: 'pull_request_approved', deliveryId: 'g-1', hookId: '' }
    expect(await receive(request, { provider: GITEA })).toMatchObject(identity)
    expect(await receive(githubDelivery(), { provider: GITEA })).toEqual(badEvent)
  })
})

describe('the body', () => {
  const nested = (depth: number): string => '['.repeat(depth) + ']'.repeat(depth)
  it.each(['null', '0', '"text"', '[]', ' {}\r\n', nested(1000), '{"__proto__":{"action":"x"}}'])(
    'may be any JSON value: %.40s',
    async (body) => {
      const summary = { action: null, repo: null, number: null }
      expect(await receive(githubDelivery({ body }))).toMatchObject({
        ...summary,
        body: new Uint8Array(Buffer.from(body)),
      })
    },
  )

  it.each([
    ['empty', ''],
    ['followed by more', '{}{}'],
    ['preceded by a byte order mark', '\ufeff{}'],
    ['not UTF-8', Uint8Array.of(0x22, 0xff, 0x22)],
    ['nested 1,001 deep', nested(1001)],
    ['a form with the content type of JSON', form('{}')],
  ])('is refused when it is %s', async (_, body) => {
    expect(await receive(githubDelivery({ body }))).toEqual(badEvent)
  })

  it.each([undefined, 'text/plain', 'application/x-www-form-urlencodedx', ''])(
    'is read as JSON when the content type is %j',
    async (type) => {
      expect(await receive(githubDelivery({ body: '{}', set: { 'Content-Type': type } }))).toMatchObject({
        n: 1,
      })
    },
  )
})

describe('a form', () => {
  it.each([FORM, 'Application/X-WWW-Form-Urlencoded; charset=utf-8', `${FORM};`])(
    'of GitHub is signed as sent and stored as sent (%s)',
    async (type) => {
      const body = form('{"action":"opened"}')
      expect(await receive(githubDelivery({ body, type }))).toMatchObject({
        action: 'opened',
        body: new Uint8Array(Buffer.from(body)),
      })
    },
  )

  it('of GitHub is refused if only the JSON is signed', async () => {
    expect(await receive(githubDelivery({ body: form('{}'), signed: '{}', type: FORM }))).toEqual(
      badSignature,
    )
  })

  it('of Gitea is signed by its JSON, including escapes and indent, and stored as sent', async () => {
    const body = form(GITEA_JSON)
    const request = giteaDelivery({ body, signed: GITEA_JSON, type: FORM })
    expect(await receive(request, { provider: GITEA })).toMatchObject({
      action: 'opened',
      number: 3,
      body: new Uint8Array(Buffer.from(body)),
    })
  })

  it('of Gitea is refused if it is signed as sent', async () => {
    const request = giteaDelivery({ body: form(GITEA_JSON), type: FORM })
    expect(await receive(request, { provider: GITEA })).toEqual(badSignature)
  })

  it.each(['', 'payload=%7', 'payload={}&payload={}', '{}'])(
    'is refused without exactly one payload: %j',
    async (body) => {
      expect(await receive(githubDelivery({ body, type: FORM }))).toEqual(badEvent)
      const request = giteaDelivery({ body, signed: '{}', type: FORM })
      expect(await receive(request, { provider: GITEA })).toEqual(badSignature)
    },
  )

  it('is refused if its payload is not JSON', async () => {
    expect(await receive(githubDelivery({ body: 'payload=', type: FORM }))).toEqual(badEvent)
    const request = giteaDelivery({ body: 'payload={', signed: '{', type: FORM })
    expect(await receive(request, { provider: GITEA })).toEqual(badEvent)
  })

  it("is not what Gitea's JSON hooks send", async () => {
    const request = giteaDelivery({ body: GITEA_JSON })
    expect(await receive(request, { provider: GITEA })).toMatchObject({ action: 'opened', number: 3 })
  })
})

describe('a journal that fails', () => {
  it('fails the request with a general message; its own message is in the cause', async () => {
    const reported: unknown[] = []
    const cause = new RelayError('storage', 'disk /x is full')
    const journal = { append: () => Promise.reject(cause) }
    const intake = createIntake({
      provider: GITHUB,
      secrets: SECRETS,
      journal,
      plan: nowhere,
      onDelivery: (delivery) => void reported.push(delivery),
    })
    await expect(intake.receive(githubDelivery())).rejects.toEqual(
      new RelayError('storage', 'Delivery could not be stored', { cause }),
    )
    expect(reported).toEqual([])
  })
})

describe('a delivery from a tunnel', () => {
  it('is identified by the signed bytes, under any id and in any form', async () => {
    const { journal, intake } = await setUp({ provider: GITEA })
    const wrapped = { signed: GITEA_JSON, type: FORM }
    const requests = [
      giteaDelivery({ body: GITEA_JSON, id: 'a' }),
      giteaDelivery({ body: GITEA_JSON, id: 'b' }),
      giteaDelivery({ body: form(GITEA_JSON), ...wrapped }),
      giteaDelivery({ body: `x=1&${form(GITEA_JSON)}`, ...wrapped }),
    ]
    for (const request of requests) await intake.receive(request, { restored: 'raw' })
    await journal.flush()
    expect(await entriesOf(journal)).toMatchObject([
      { n: 1, deliveryId: 'a', duplicates: 3, restored: { how: 'raw' } },
    ])
  })

  const comment = JSON.stringify({ action: 'created', issue: {}, comment: { body: '&payload=%7B%7D&' } })
  const unknown = JSON.stringify({ action: 'created', novelty: {} })

  it('is refused under an event that its payload is not of; over HTTP the header is its own', async () => {
    const { journal, intake } = await setUp()
    for (const event of ['push', 'issues', 'made_up'])
      await expect(
        intake.receive(githubDelivery({ body: comment, event }), { restored: 'compact' }),
      ).rejects.toEqual(
        new RelayError('invalid_event', 'Invalid event', {
          cause: new Error('the payload is of issue_comment, not of the event that the header names'),
        }),
      )
    expect(await countOf(journal)).toBe(0)
    await intake.receive(githubDelivery({ body: comment, event: 'issue_comment' }), { restored: 'compact' })
    await intake.receive(githubDelivery({ body: comment, event: 'push' }))
    const entries = (await entriesOf(journal)).map(({ event, restored }) => [event, restored?.unproved])
    expect(entries).toEqual([
      ['issue_comment', undefined],
      ['push', undefined],
    ])
  })

  it('is marked if nothing proves its event, and a copy under another event does not take its place', async () => {
    const { journal, intake } = await setUp()
    const receipts = []
    for (const event of ['a', 'b', 'a'])
      receipts.push(await intake.receive(githubDelivery({ body: unknown, event }), { restored: 'compact' }))
    expect(receipts.map(({ n, duplicate }) => [n, duplicate])).toEqual([
      [1, false],
      [2, false],
      [1, true],
    ])
    const entries = (await entriesOf(journal)).map(({ event, restored }) => [event, restored?.unproved])
    expect(entries).toEqual([
      ['a', true],
      ['b', true],
    ])
  })

  it.each([
    ["a test delivery of Gitea's is new under another id after a minute", 'a1', [1, 1, 1, 2, 2]],
    ['a push never is', 'b2', [1, 1, 1, 1, 1]],
  ])('is known by its bytes: %s', async (_, before, expected) => {
    let now = 0
    const { intake } = await setUp({ provider: GITEA, clock: () => now })
    const body = JSON.stringify({ ref: 'refs/heads/main', before, after: 'a1', commits: [{ id: 'a1' }] })
    const numbers = []
    for (const [id, seconds] of [
      ['first', 0],
      ['second', 30],
      ['first', 200],
      ['third', 201],
      ['second', 231],
    ] as const) {
      now = seconds * 1000
      const { n } = await intake.receive(giteaDelivery({ body, event: 'push', id }), { restored: 'indented' })
      numbers.push(n)
    }
    expect(numbers).toEqual(expected)
  })

  it.each([undefined, 'raw'])(
    'has no payload in the text of a comment, whatever its Content-Type says (%s)',
    async (how) => {
      const { journal, intake } = await setUp()
      const request = githubDelivery({ body: comment, type: FORM, event: 'push' })
      await expect(intake.receive(request, { restored: how })).rejects.toEqual(badEvent)
      expect(await countOf(journal)).toBe(0)
    },
  )
})
