import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { beforeAll, afterAll, describe, expect, it } from 'vitest'
import { type Header, post } from '../kit/delivery.js'
import { fails, type Ran } from '../kit/run.js'
import { type Place, place, type Serving } from '../kit/place.js'
import { type Received, receiver } from '../kit/receiver.js'
import { isProved, SENDERS, SENDERS_ENV, STDIN, type Sender } from './source-senders.js'

const HOUR = 3_600_000
/** What a connection adds, and what is never stored. */
const OWN = /^(?:host|connection|content-length|x-token|x-gitlab-token)$/i

interface Shown {
  readonly n: number
  readonly headers: readonly { readonly name: string; readonly value: string }[]
  readonly body: string
  readonly [field: string]: unknown
}

const linesOf = ({ headers }: Received): (readonly [string, string])[] =>
  headers.filter(([name]) => !OWN.test(name))
const parsed = (out: string): Shown[] =>
  out.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line)]))

let here: Place
let serving: Serving

beforeAll(async () => {
  here = await place({ host: 'none', env: SENDERS_ENV })
  serving = await here.serve()
})
afterAll(() => here[Symbol.asyncDispose]())

/** Runs `relay trigger` for a sender. */
function trigger({ name, trigger: argv }: Sender, ...flags: string[]): Promise<Ran> {
  return here.runWith({ stdin: STDIN }, 'trigger', '--source', name, ...argv, ...flags)
}

/** Has relay take a made-up delivery of a sender, and returns what `relay show` has of it. */
async function take(sender: Sender): Promise<Shown> {
  expect(await trigger(sender)).toMatchObject({ code: 0, err: expect.stringMatching(/1 sent\n$/) })
  const [shown] = parsed((await here.run('show', 'last', '--json', '--reveal')).out)
  if (!shown) throw new Error('there is no entry')
  return shown
}

/** What `relay log --refused --source` lists. */
async function refusedOf(name: string): Promise<Shown[]> {
  return parsed((await here.run('log', '--refused', '--source', name, '--json')).out)
}

/** Posts a request again, with other headers where they are given. */
async function postAgain(
  address: string,
  name: string,
  { headers, body }: Pick<Received, 'headers' | 'body'>,
) {
  const lines = headers.filter(([line]) => !/^(?:host|connection|content-length)$/i.test(line))
  return (await post(`${address}/webhook/${name}`, { headers: lines, body })).status
}

describe.each(SENDERS)('a delivery of $name ($scheme)', (sender) => {
  const { name, scheme, event, isTimed, isToken } = sender
  const verifiedBy = isProved(sender) ? 'current' : 'none'

  it('is taken, listed and shown with its source', async () => {
    const { n, delivery } = await take(sender)
    const about = { n, source: name, provider: name, scheme, event, action: null, delivery, verifiedBy }
    const listed = parsed((await here.run('log', '--source', name, '--json')).out)
    expect(listed.at(-1)).toMatchObject(about)
    expect(new Set(listed.map(({ source }) => source))).toEqual(new Set([name]))
    expect(await serving.object({ type: 'delivery', n })).toMatchObject(about)
    const { out } = await here.run('log', '--last', '1')
    expect(out).toMatch(new RegExp(`^#${n}  \\S+ \\S+  ${name}  ${event}  \\S`))
    expect(out.includes('unverified')).toBe(!isProved(sender))
    const page = (await here.run('show', 'last')).out
    expect(page.split('\n', 1)[0]).toMatch(new RegExp(`^#${n}  ${name}  ${event}  \\S`))
    const proof = isProved(sender) ? `with the current secret of ${name}` : 'not: its source proves nothing'
    expect(page).toContain(`\nverified    ${proof}\n`)
  })

  it('is replayed as it came, and an hour later signed again; then it is taken', async () => {
    const { n, headers, body } = await take(sender)
    const stored = headers.filter((line) => !OWN.test(line.name)).map((line) => [line.name, line.value])
    await using target = await receiver()
    const later = { seams: { clock: () => Date.now() + HOUR } }
    const argv = ['replay', String(n), '--to', target.url]
    const soon = await here.run(...argv, '--json')
    expect(parsed(soon.out)).toMatchObject([{ ok: true, signedAgain: false }])
    const { out } = await here.runWith(later, ...argv)
    expect(out).toMatch(isTimed ? /^ok   #\d+  200  \d+ms  signed again\n$/ : /^ok   #\d+  200  \d+ms\n$/)
    const recorded = await here.runWith(later, ...argv, '--keep-signature', '--json')
    expect(parsed(recorded.out)).toMatchObject([{ signedAgain: false }])
    const [first, again, last] = target.received
    if (!first || !again || !last) throw new Error('not all were sent')
    for (const same of isTimed ? [first, last] : [first, again, last])
      expect([linesOf(same), same.body.toString()]).toEqual([stored, body])
    expect(linesOf(again).map(([line]) => line)).toEqual(stored.map(([line]) => line))
    await using distant = await place({ host: 'none', env: SENDERS_ENV })
    const { address } = await distant.serveWith(later)
    expect(await postAgain(address, name, again)).toBe(200)
    const plain = { headers: linesOf(last), body: last.body }
    expect(await postAgain(address, name, plain)).toBe(isTimed || isToken ? 401 : 200)
  })

  it('is exported, and replayed and verified as a fixture', async () => {
    const { n, headers } = await take(sender)
    const file = path.join(here.cwd, `${name}.json`)
    expect((await here.run('export', String(n), '--out', file)).code).toBe(0)
    const fixture = JSON.parse((await here.run('export', String(n))).out)
    expect(fixture).toMatchObject({ provider: scheme.split(' ')[0], source: name, scheme, event })
    const names = headers.map((line) => line.name).filter((line) => !OWN.test(line))
    expect(Object.keys(fixture.headers)).toEqual(names)
    const { code, out } = await here.run('verify', String(n), file)
    expect([code, out.includes('a token alone')]).toEqual(isToken ? [5, true] : [0, false])
    expect((await here.run('replay', file)).code).toBe(0)
    expect((await here.run('wait', event, '--source', name)).code).toBe(0)
    expect((await here.run('wait', `${name}/*`)).code).toBe(0)
    expect((await here.run('replay', '--source', name, '--last', '1')).code).toBe(0)
  })
})

describe('relay verify refused:N', () => {
  it.each(SENDERS.filter(isProved))('explains one of $name with its secret', async (sender) => {
    const { name } = sender
    const before = await refusedOf(name)
    await using target = await receiver()
    await trigger(sender, '--to', target.url)
    const [sent] = target.received
    const headers = (sent?.headers ?? []).map(([line, value]): Header => [
      line,
      /token$/i.test(line) ? 'other' : value,
    ])
    const body = Buffer.concat([sent?.body ?? Buffer.of(), Buffer.from(' ')])
    expect(await postAgain(serving.address, name, { headers, body })).toBe(401)
    const refused = await refusedOf(name)
    expect(refused).toHaveLength(before.length + 1)
    expect(refused.at(-1)).toMatchObject({ source: name, status: 401 })
    const id = `refused:${String(refused.at(-1)?.['id'])}`
    const { out: page } = await here.run('show', id)
    expect(page).toContain(`\ncame        over HTTP to /webhook/${name}, answered 401\n`)
    const { code, out } = await here.run('verify', id, '--json')
    expect([code, JSON.parse(out)]).toMatchObject([5, { provider: name, valid: false }])
  })
})

describe('relay trigger --print', () => {
  it.each(SENDERS)('prints a fixture of $name without a secret', async (sender) => {
    const { scheme, name, secret, isToken } = sender
    const { code, out } = await trigger(sender, '--print')
    expect([code, JSON.parse(out)]).toMatchObject([0, { source: name, scheme }])
    expect(out.includes(secret)).toBe(secret === '')
    const { headers } = JSON.parse(out)
    expect('X-Token' in headers || 'X-Gitlab-Token' in headers).toBe(false)
    expect(Object.keys(headers).some((line) => /signature|hmac/i.test(line))).toBe(secret !== '' && !isToken)
  })
})

describe('relay trigger --body', () => {
  const body =
    '{ "n":1.50,\t"type" : "x","webhookTimestamp":1,"event_id":"Ev_1","id":"evt_1","big":12345678901234567890 }\n'
  it.each([
    ['stripe', [], /"id":"evt_[0-9a-f]{32}"/],
    ['slack', [], /"event_id":"Ev_[0-9a-f]{32}"/],
    ['linear', ['--event', 'x'], /"webhookTimestamp":\d{13}/],
    ['shopify', ['--event', 'a/b'], undefined],
    ['standard', [], undefined],
    ['open', [], undefined],
  ] as const)(
    'of %s has every byte of the file, but for a new id and the signed time in it',
    async (name, flags, change) => {
      await using target = await receiver()
      const argv = ['trigger', '--source', name, '--body', '-', '--to', target.url, ...flags]
      expect(await here.runWith({ stdin: body }, ...argv)).toMatchObject({ code: 0, err: '1 sent\n' })
      const sent = target.received[0]?.body.toString() ?? ''
      const key = /"\w+"/.exec(change?.source ?? '')?.[0] ?? '-'
      expect(sent).toMatch(change ?? body)
      expect(withoutValue(sent, key)).toBe(withoutValue(body, key))
    },
  )

  it('adds the event and the id to a body that lacks them, and says so', async () => {
    await using target = await receiver()
    const flags = [
      '--source',
      'pagerduty',
      '--event',
      'incident.triggered',
      '--body',
      '-',
      '--to',
      target.url,
    ]
    const { err } = await here.runWith({ stdin: '{"event":{"n":1}}' }, 'trigger', ...flags)
    expect(err).toBe('Added to the body, which lacked it: event.event_type, event.id\n1 sent\n')
    const event = { n: 1, event_type: 'incident.triggered', id: expect.stringMatching(/^[0-9a-f-]{36}$/) }
    expect(JSON.parse(target.received[0]?.body.toString() ?? '')).toEqual({ event })
  })

  it('sends a form, and prints a fixture', async () => {
    const form = 'command=%2Fdeploy&text=now&trigger_id=1.2'
    const argv = ['trigger', '--source', 'slack', '--body', '-', '--print']
    const fixture = JSON.parse((await here.runWith({ stdin: form }, ...argv, '--keep-id')).out)
    expect(fixture).toMatchObject({ source: 'slack', event: 'deploy', delivery: '1.2', body: form })
    expect(fixture.headers['Content-Type']).toBe('application/x-www-form-urlencoded')
    const fresh = JSON.parse((await here.runWith({ stdin: form }, ...argv)).out)
    expect(fresh.body).toMatch(/^command=%2Fdeploy&text=now&trigger_id=[0-9a-f-]{36}$/)
    expect(fresh.delivery).toBe(new URLSearchParams(fresh.body).get('trigger_id'))
  })
})

/** JSON text without the value of a member. */
function withoutValue(text: string, key: string): string {
  return text.replace(new RegExp(`(?<=${key}\\s*:)(?:"[^"]*"|\\d+)`), '')
}

describe('relay log on a narrow terminal', () => {
  it('marks what nothing proves, also where its targets do not fit', async () => {
    const open = SENDERS.find((each) => !isProved(each))
    if (!open) throw new Error('there is none')
    const { n } = await take(open)
    for (const columns of [120, 80, 60]) {
      const { out } = await here.runWith({ terminal: { columns } }, 'log', '--last', '1')
      expect(out.split('\n').find((line) => line.includes(`#${n} `))).toMatch(/open.*unverified/)
    }
  })
})

describe('a file that names another scheme for a source', () => {
  it.each(['github', 'stripe', 'shopify'])('gets no secret of %s sent', async (name) => {
    await using target = await receiver()
    const scheme = 'token header=X-Leak'
    const forged = {
      relay: 1,
      provider: name,
      source: name,
      scheme,
      event: 'x',
      delivery: 'x',
      headers: {},
      body: '{}',
    }
    writeFileSync(path.join(here.cwd, 'forged.json'), JSON.stringify(forged))
    expect((await here.run('replay', 'forged.json', '--to', target.url)).code).toBe(0)
    const lines = target.received[0]?.headers.map(([line, value]) => `${line}: ${value}`) ?? []
    expect(lines.join('\n')).not.toMatch(/X-Leak|It's a Secret/)
    expect(lines.join('\n')).toMatch(/signature|hmac/i)
  })
})

describe('what goes wrong', () => {
  it('an unknown source, one without a secret, and an event that is not the body’s', async () => {
    const { cwd } = here
    writeFileSync(path.join(cwd, 'paid.json'), '{"type":"invoice.paid"}')
    const names = SENDERS.map(({ name }) => name).join(', ')
    expect(await here.run('trigger', '--source', 'nobody', 'x')).toEqual(
      fails(2, `There is no source of that name. There are: ${names}. relay source add <scheme> adds one`),
    )
    const argv = ['trigger', '--source', 'stripe', '--body', 'paid.json', '--event', 'invoice.failed']
    expect(await here.run(...argv)).toEqual(
      fails(2, '--event is invoice.failed, but the body is of invoice.paid: change one of them'),
    )
    expect(await here.run('trigger', '--source', 'open', 'x')).toMatchObject({ code: 2 })
    expect(await here.run('trigger', 'a', '--event', 'b')).toEqual(
      fails(2, 'Two events are given: a, and --event b'),
    )
    await using alone = await place({ host: 'none', env: { RELAY_SOURCES: 'stripe' } })
    const lacking = await alone.run(
      'trigger',
      '--source',
      'stripe',
      'invoice.paid',
      '--to',
      'http://127.0.0.1:1',
    )
    expect(lacking).toMatchObject({ code: 2, err: expect.stringContaining('RELAY_SOURCE_STRIPE_SECRET') })
  })
})

describe('relay trigger --list --source', () => {
  it.each(SENDERS.filter(({ trigger }) => trigger.length === 1))(
    'names what $name sends',
    async ({ name, event }) => {
      const { out } = await here.run('trigger', '--list', '--source', name)
      expect(out.split('\n')).toContain(event)
    },
  )

  it.each(['hmac', 'open'])('says of %s, a scheme of one’s own, that there are no examples', async (name) => {
    expect(await here.run('trigger', '--list', '--source', name)).toEqual(
      fails(
        6,
        `There are no examples of ${name}. relay trigger --source ${name} --body <file> sends a body of your own`,
      ),
    )
    const { err } = await here.run('trigger', 'made', '--source', name)
    expect(err).toBe('error: There is no example of "made": --body sends a body of your own\n')
  })
})

describe('relay routes test', () => {
  it('says why what nothing proves takes no route that does not name its source', async () => {
    const open = SENDERS.find(({ name }) => name === 'open')
    if (!open) throw new Error('there is none')
    const { n } = await take(open)
    const test = (...flags: string[]) => here.run('routes', 'test', String(n), ...flags)
    const all = await test('--forward', 'http://127.0.0.1:1', '--forward', 'stripe/*=http://127.0.0.1:2')
    expect(all.out).toMatch(/^no  http:\/\/127\.0\.0\.1:1 +nothing proves it, and \* names no source\n/)
    expect(all.err).toBe(
      `#${n} open/made goes nowhere: nothing proves it, and no route that matches names its source\n`,
    )
    const named = await test('--forward', 'open/ma*=http://127.0.0.1:1', '--json')
    expect(JSON.parse(named.out)).toMatchObject({
      routes: [{ matched: true, why: 'open/made matches open/ma*' }],
    })
  })
})
