import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, it } from 'vitest'
import { canary } from '../kit/canary.js'
import { post, stripeDelivery } from '../kit/delivery.js'
import { contentsOf, emptyFolder, type Env } from '../kit/folder.js'
import { describeWith } from '../kit/needs.js'
import { Pane } from '../kit/pane.js'
import { type Place, type Serving } from '../kit/place.js'
import { commandLines } from '../kit/processes.js'
import { fails, prints, type Ran } from '../kit/run.js'
import { bare } from './example.js'
import { json } from './fixture.js'

const SECRET = 'whsec_canaryOfStripe'
const NEXT = 'whsec_canary-of-the-next'
/** Some of the schemes. */
const SCHEMES = [
  'stripe',
  'slack',
  'gitlab',
  'woocommerce',
  'hmac',
  'token',
  'basic',
  'none',
  'github',
  'gitea',
]

/** Sends an event as Stripe does, and returns the status of the answer. */
async function pay(relay: Serving, secret: string, name = 'stripe', id = 'evt_1'): Promise<number> {
  const request = stripeDelivery({ secret, id })
  return (await post(`${relay.address}/webhook/${name}`, request)).status
}

/** Sends what nothing proves. */
async function knock(relay: Serving, headers: Record<string, string> = {}): Promise<number> {
  const all = Object.entries({ 'Content-Type': 'text/plain', ...headers })
  return (await post(`${relay.address}/webhook/door`, { headers: all, body: Buffer.from('knock') })).status
}

const add = (here: Place, source: string, secret: string, env: Env = {}): Promise<Ran> =>
  here.runWith({ stdin: secret, env }, 'source', 'add', source)

/** The settings of the project, in the working folder. */
function project(here: Place, settings: object): void {
  writeFileSync(path.join(here.cwd, 'relay.json'), JSON.stringify(settings))
}

describe('relay source add', () => {
  it('stores a secret, and relay serve receives without a flag', async () => {
    await using here = await bare()
    const added = await add(here, 'stripe', `${SECRET}\n`)
    expect(added).toEqual({
      code: 0,
      out: '',
      err: 'Stored the secret of stripe. The address to enter at the sender: http://127.0.0.1:8787/webhook/stripe\nOnly this machine reaches that. relay serve --tunnel prints an address for the internet\n',
    })
    const relay = await here.serve()
    expect(await pay(relay, SECRET)).toBe(200)
    expect(await pay(relay, NEXT)).toBe(401)
    expect(await pay(relay, SECRET, 'billing')).toBe(404)
  })

  it('keeps the secret before it as the previous one, until the next', async () => {
    await using here = await bare()
    await add(here, 'billing=stripe', SECRET)
    const replaced = await add(here, 'billing', NEXT)
    expect(replaced.err).toContain(
      'The secret before it is accepted too, until another replaces this one. relay source remove billing removes both\n',
    )
    // The same one again is no rotation.
    await add(here, 'billing', NEXT)
    const relay = await here.serve()
    const statuses = [await pay(relay, SECRET, 'billing'), await pay(relay, NEXT, 'billing', 'evt_2')]
    expect(statuses).toEqual([200, 200])
    const last = await add(here, 'billing', 'whsec_canary-of-the-last')
    expect(last.err).toContain(`Process ${relay.pid} takes its deliveries from now on`)
    expect([await pay(relay, SECRET, 'billing'), await pay(relay, NEXT, 'billing', 'evt_3')]).toEqual([
      401, 200,
    ])
  })

  it('has relay serve receive what was added while it runs, and says what to do for one of this shell alone', async () => {
    await using here = await bare()
    await using relay = await here.serve('--source', 'open=none')
    const own = { RELAY_SOURCES: 'own=stripe', RELAY_SOURCE_OWN_SECRET: SECRET }
    const sent = await here.runWith({ env: own }, 'trigger', 'invoice.paid', '--source', 'own')
    expect({ code: sent.code, err: sent.err }).toEqual({
      code: 3,
      err: `error: 1 of 1 answers were not as expected. relay serve runs without the source own. Restart relay serve (process ${relay.pid}) from here: its own settings do not name the source\n`,
    })
    expect((await here.run('trigger', '--source', 'open', '--body', 'package.json')).err).not.toMatch(
      /restart/i,
    )
    await add(here, 'stripe', SECRET)
    expect((await here.run('trigger', 'invoice.paid', '--source', 'stripe')).code).toBe(0)
  })

  it.each<[string, string, string | RegExp]>([
    ['stripe', '', 'Standard input has no secret'],
    ['stripe', ' \n', 'Standard input has no secret'],
    ['stripe', 'a\nb\n', 'Standard input is not one secret: it has several lines or control characters'],
    ['stripe', 'x'.repeat(5000), 'Standard input is longer than any secret (4 KiB)'],
    ['github', 'x', "<scheme>: github is a code host's name: write --source hub=github"],
    [
      'strpe',
      'x',
      `<scheme>: must be a scheme, or name=scheme (did you mean stripe?). relay source add lists the schemes`,
    ],
    ['whsec_x', 'x', `<scheme>: must be a scheme, or name=scheme. relay source add lists the schemes`],
    [
      'door=none',
      'x',
      'Nothing proves deliveries of the scheme none, so there is no secret to store. Start relay serve --source door=none',
    ],
  ])('refuses %s with the secret %j', async (source, secret, message) => {
    await using here = await bare()
    expect(await add(here, source, secret)).toEqual(fails(2, String(message)))
    expect(contentsOf(here.home)).toBe('')
  })

  it.each([
    ['stripe', 'sk_live_canary'],
    ['standard', 'v1,whsec_canary'],
    ['slack', '"canary"'],
  ])('stores for %s what is probably another secret, with a warning: %s', async (source, secret) => {
    await using here = await bare()
    const { code, err } = await add(here, source, secret)
    expect(code).toBe(0)
    expect(err).toContain('warning: what was stored is probably not the secret that signs deliveries')
    expect(err).not.toContain('canary')
    expect((await add(here, source, SECRET)).err).not.toContain('warning')
  })

  it('stores for standard what is not base64, with a warning', async () => {
    await using here = await bare()
    const { code, err } = await add(here, 'clerk=standard', 'whsec_canary not base64!!')
    expect(code).toBe(0)
    expect(err).toContain('warning: what was stored is not base64')
    expect(err).not.toContain('canary')
  })

  it('stores nothing for a relay whose data is in memory', async () => {
    await using here = await bare({ env: { RELAY_STORE: 'memory' } })
    const why = '--store memory would lose the secret as soon as this command ends'
    expect(await add(here, 'stripe', SECRET)).toEqual(fails(2, why))
    const relay = await here.serveWith({ env: { RELAY_SOURCE_STRIPE_SECRET: SECRET } }, '--source', 'stripe')
    expect(await pay(relay, SECRET)).toBe(200)
    expect((await add(here, 'stripe', SECRET)).err).toContain('so no other process can read its sources')
  })
})

describe('the secret of a source', () => {
  it('is that of its variable, of the file that this names, else that of the profile', async () => {
    await using here = await bare()
    const file = path.join(emptyFolder(), 'secret')
    writeFileSync(file, `${NEXT}\n`)
    await add(here, 'my-shop=stripe', SECRET)
    const variable = 'RELAY_SOURCE_MY_SHOP_SECRET'
    const origin = async (env: Env): Promise<unknown> =>
      (await json(here.runWith({ env }, 'source', 'list', '--json'))).secret
    expect(await origin({})).toBe('profile')
    expect(await origin({ [`${variable}_FILE`]: file })).toBe(`${variable}_FILE`)
    expect(await origin({ [variable]: NEXT })).toBe(variable)
    writeFileSync(path.join(here.cwd, '.env'), `${variable}=${NEXT}\n`)
    expect(await origin({})).toBe(`${variable} in .env`)
    const env = { [`${variable}_FILE`]: file, [`${variable}_PREVIOUS`]: 'whsec_canary-before' }
    const relay = await here.serveWith({ env })
    const statuses = [
      await pay(relay, NEXT, 'my-shop', 'a'),
      await pay(relay, 'whsec_canary-before', 'my-shop', 'b'),
      await pay(relay, SECRET, 'my-shop', 'c'),
    ]
    expect(statuses).toEqual([200, 200, 401])
    const stored = await add(here, 'my-shop', 'whsec_canary-of-another', { [variable]: NEXT })
    expect(stored.err).toContain(`${variable} is set, and counts instead`)
  })

  it('is missing: relay serve ends with 2, says what to run, and makes no profile', async () => {
    await using here = await bare()
    const { code, err } = await here.run('serve', '--source', 'stripe', '--source', 'my-shop=shopify')
    expect({ code, err }).toEqual({
      code: 2,
      err: 'error: There is no secret for stripe, my-shop. Store it with relay source add stripe, relay source add my-shop=shopify, or set RELAY_SOURCE_STRIPE_SECRET, RELAY_SOURCE_MY_SHOP_SECRET\n',
    })
    expect(contentsOf(here.home)).toBe('')
    await add(here, 'stripe', SECRET)
    expect((await here.run('serve', '--port', '0', '--source', 'a=slack')).code).toBe(2)
  })

  it('is in no log line, answer, process list or file that others read', async () => {
    await using here = await bare({ env: { RELAY_DEBUG: '1' } })
    const watch = canary()
    watch.secret('current', NEXT)
    watch.secret('previous', SECRET)
    watch.heard(await add(here, 'stripe', SECRET))
    watch.heard(await add(here, 'stripe', NEXT))
    const relay = await here.serveWith({ built: true }, '--verbose', '--exec', 'stripe/*=env')
    expect([await pay(relay, NEXT), await pay(relay, 'wrong')]).toEqual([200, 401])
    await relay.object({ type: 'attempt', n: 1 })
    watch.text('processes', commandLines())
    for (const argv of [
      ['source', 'list'],
      ['source', 'list', '--json'],
      ['config'],
      ['config', '--json'],
      ['doctor', '--json'],
      ['show', '1', '--json'],
      ['log', '--refused', '--json'],
      ['source', 'remove', 'stripe', '--json'],
    ])
      watch.heard(await here.run(...argv, '--verbose'))
    watch.heard(await relay.stop())
    watch.text('instance', contentsOf(path.join(here.home), /^relay\.db/) || 'none')
    watch.check(['current', 'previous'])
  })

  it('is not in the environment of the commands that relay runs, which have the source', async () => {
    await using here = await bare()
    const file = path.join(emptyFolder(), 'secret')
    writeFileSync(file, SECRET)
    const env = {
      RELAY_SOURCE_STRIPE_SECRET: SECRET,
      RELAY_SOURCE_STRIPE_SECRET_PREVIOUS: NEXT,
      RELAY_SOURCE_SLACK_SECRET_FILE: file,
    }
    const relay = await here.serveWith({ env }, '--source', 'stripe', '--exec', 'stripe/*=env')
    expect(await pay(relay, SECRET)).toBe(200)
    await relay.object({ type: 'attempt', n: 1 })
    const { attempts } = await json(here.run('show', '1', '--json'))
    expect(attempts[0].answer).toContain('RELAY_SOURCE=stripe\n')
    expect(attempts[0].answer).not.toMatch(/_SECRET|canary/)
  })

  it('is there as little as any other secret of relay, and what names a file with one', async () => {
    await using here = await bare()
    const { settings } = await json(here.run('config', '--json'))
    // Secrets are shown as set or not.
    const secret = Object.keys(settings).filter((name) => typeof settings[name].set === 'boolean')
    expect(secret).toContain('storePassword')
    const variables = secret.map((name) =>
      name === 'storePassword' ? 'PGPASSWORD' : `RELAY_${name.replaceAll(/[A-Z]/g, '_$&').toUpperCase()}`,
    )
    const canary = Buffer.from('canary-'.padEnd(32, 'x')).toString('base64')
    const invitation = `relay-hub-${'canary-'.padEnd(43, 'x')}`
    const folder = emptyFolder()
    const valueOf = (variable: string): string => (variable === 'RELAY_HUB_TOKEN' ? invitation : canary)
    const fileOf = (variable: string): string => {
      writeFileSync(path.join(folder, variable), valueOf(variable))
      return path.join(folder, variable)
    }
    const all = (end: string, write: (variable: string) => string) =>
      Object.fromEntries(variables.map((name) => [name + end, write(name)]))
    for (const secrets of [all('', valueOf), { ...all('', () => ''), ...all('_FILE', fileOf) }]) {
      const env = {
        ...secrets,
        RELAY_CLIENT_ID: 'id',
        PGPASSFILE: fileOf('PGPASSFILE'),
        RELAY_SOURCE_STRIPE_SECRET: SECRET,
      }
      await using relay = await here.serveWith({ env }, '--source', 'stripe', '--exec', 'stripe/*=env')
      expect(await pay(relay, SECRET)).toBe(200)
      const { n } = await relay.object({ type: 'attempt' })
      const { attempts } = await json(here.run('show', String(n), '--json'))
      expect(attempts[0].answer).toContain('RELAY_CLIENT_ID=id\n')
      const lines: string[] = attempts[0].answer.split('\n')
      expect(
        lines.filter((line) => [canary, invitation, folder].some((each) => line.includes(each))),
      ).toEqual([])
      await relay.stop()
      await here.run('reset', '--yes')
    }
  })
})

describeWith('tmux', 'relay source add in a terminal', () => {
  it('reads the secret from a prompt that does not show it', async () => {
    await using here = await bare()
    const size = { width: 160, height: 30 }
    await using pane = new Pane('relay source add stripe; echo "exit $?"', { ...size, env: here.env })
    await pane.shows(/Secret of stripe \(not shown\):/)
    pane.press(SECRET, 'Enter')
    await pane.shows(/exit 0/)
    expect(pane.text()).not.toContain('canary')
    expect(await here.run('source', 'list', '--reveal', 'stripe')).toEqual(prints(`${SECRET}\n`))
  })

  it('asks for a sender, searches by a part of its name, and says where its secret is', async () => {
    await using here = await bare()
    const size = { width: 160, height: 130 }
    await using pane = new Pane('relay source add; echo "exit $?"', { ...size, env: here.env })
    await pane.shows(/airtable +Airtable\n[^]*zoom +Zoom\n.*Sender \(a part of its name searches\):/)
    pane.press('pay', 'Enter')
    await pane.shows(/: pay\npaypal +PayPal\npaystack +Paystack\nrazorpay +Razorpay\n/)
    pane.press('no such', 'Enter')
    await pane.shows(/No sender has "no such" in its name/)
    pane.press('WhatsApp', 'Enter')
    await pane.shows(/The secret of meta is the app secret[^]*https:[^]*Secret of meta \(not shown\):/)
    pane.press(SECRET, 'Enter')
    await pane.shows(/exit 0/)
    expect(pane.text()).not.toContain('canary')
    expect(await here.run('source', 'list', '--reveal', 'meta')).toEqual(prints(`${SECRET}\n`))
  })

  it('lists the senders without a terminal, and stores nothing', async () => {
    await using here = await bare()
    const { code, out, err } = await here.run('source', 'add')
    expect([code, err]).toEqual([0, ''])
    expect(out).toMatch(/^stripe +Stripe$/m)
    const listed = (await here.run('source', 'add', '--json')).out.trim().split('\n')
    expect(listed.length).toBeGreaterThan(60)
    expect(listed.map((line) => JSON.parse(line))).toContainEqual({
      v: 1,
      type: 'sender',
      name: 'zoom',
      title: 'Zoom',
      secret: "the app's secret token (marketplace.zoom.us, the app, Access)",
      page: 'https://developers.zoom.us/docs/api/webhooks/#verify-webhook-events',
    })
    expect(contentsOf(here.home)).toBe('')
  })

  it('says which senders have a part of a name, and takes a key that is the secret', async () => {
    await using here = await bare()
    expect(await add(here, 'whatsapp', 'x')).toMatchObject({
      code: 2,
      err: expect.stringContaining('(did you mean meta?)'),
    })
    const added = await add(here, 'paystack', 'sk_live_canary')
    expect(added).toMatchObject({ code: 0, err: expect.not.stringContaining('probably') })
  })
})

describe('the encrypted store', () => {
  it('holds the secret encrypted, and every relay reads it', async () => {
    await using here = await bare({ store: 'postgres' })
    const added = await add(here, 'stripe', SECRET)
    expect(added).toMatchObject({ code: 0, err: expect.stringContaining('Stored') })
    const relay = await here.serve()
    expect(await pay(relay, SECRET)).toBe(200)
    expect((await json(here.run('source', 'list', '--json'))).secret).toBe('profile')
  })
})

describe('relay source list', () => {
  it('shows name, scheme, address, secret, last delivery and last refusal', async () => {
    await using here = await bare()
    project(here, { sources: ['shop=hmac header=X-Shop  prefix=sha256='] })
    await add(here, 'stripe', SECRET)
    const env = { RELAY_SOURCE_SHOP_SECRET: NEXT }
    const list = (...more: string[]): Promise<Ran> => here.runWith({ env }, 'source', 'list', ...more)
    const shop = ['shop', 'hmac header=X-Shop prefix=sha256=', 'http://127.0.0.1:8787/webhook/shop']
    const stripe = ['stripe', 'stripe', 'http://127.0.0.1:8787/webhook/stripe']
    const cells = (ran: Ran): string[][] =>
      ran.out.split('\n').map((line) => line.split(/ {2,}/).map((cell) => cell.replace(/ \d\d:.*| ago/, '')))
    expect(cells(await list())).toEqual([
      ['name', 'scheme', 'address', 'secret', 'last delivery', 'last refusal'],
      [...shop, 'RELAY_SOURCE_SHOP_SECRET', '-', '-'],
      [...stripe, 'profile', '-', '-'],
      [''],
    ])
    const relay = await here.serveWith({ env })
    expect([await pay(relay, SECRET), await pay(relay, NEXT)]).toEqual([200, 401])
    const objects = (await list('--json')).out
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
    expect(objects).toEqual([
      {
        v: 1,
        type: 'source',
        name: 'shop',
        scheme: 'hmac header=X-Shop prefix=sha256=',
        address: `${relay.address}/webhook/shop`,
        secret: 'RELAY_SOURCE_SHOP_SECRET',
        previous: false,
        lastDelivery: null,
        lastRefusal: null,
      },
      {
        v: 1,
        type: 'source',
        name: 'stripe',
        scheme: 'stripe',
        address: `${relay.address}/webhook/stripe`,
        secret: 'profile',
        previous: false,
        lastDelivery: { n: 1, event: 'invoice.paid', time: expect.any(String) },
        lastRefusal: { id: 1, reason: expect.any(String), time: expect.any(String) },
      },
    ])
    expect((await list()).out).toMatch(/profile +#1 \S.* refused:1 /)
    const columns = await here.runWith(
      { env, terminal: { columns: 80 } },
      'source',
      'list',
      '--color',
      'never',
    )
    expect(columns.out.replaceAll(/\d\d:\d\d:\d\d/g, 'T')).toBe(
      [
        `shop    ${relay.address}/webhook/shop`,
        `        ${shop[1]}, secret: RELAY_SOURCE_SHOP_SECRET`,
        `stripe  ${relay.address}/webhook/stripe`,
        '        stripe, secret: profile, last #1 T, refused:1 T',
        '',
      ].join('\n'),
    )
    await add(here, 'slack', 'canary')
    expect((await list()).err).toBe('')
  })

  it('shows a secret with --reveal alone', async () => {
    await using here = await bare()
    expect((await here.run('source', 'list')).err).toBe(
      'There are no sources. relay source add <scheme> adds one\n',
    )
    await add(here, 'stripe', SECRET)
    expect(await here.run('source', 'list', '--reveal', 'stripe')).toEqual(prints(`${SECRET}\n`))
    expect(await json(here.run('source', 'list', '--reveal', 'stripe', '--json'))).toMatchObject({
      name: 'stripe',
      value: SECRET,
    })
    expect(await here.run('source', 'list', '--reveal', 'strip')).toEqual(
      fails(
        2,
        'There is no source of that name (did you mean stripe?). There are: stripe. relay source add <scheme> adds one',
      ),
    )
  })
})

describe('relay source remove', () => {
  it('removes the source with both secrets', async () => {
    await using here = await bare()
    await add(here, 'stripe', SECRET)
    await add(here, 'stripe', NEXT)
    const relay = await here.serve()
    const removed = await here.run('source', 'remove', 'stripe')
    expect(removed.err).toBe(
      `Removed stripe and its secret\nProcess ${relay.pid} refuses its deliveries from now on\n`,
    )
    expect(await pay(relay, NEXT)).toBe(404)
    await relay.stop()
    expect(await here.run('source', 'remove', 'stripe')).toEqual(
      fails(2, 'There is no source of that name. There are none yet. relay source add <scheme> adds one'),
    )
    expect(await pay(await here.serve(), NEXT)).toBe(404)
  })

  it('says what else sets it', async () => {
    await using here = await bare({ env: { RELAY_SOURCES: 'stripe\nhub=github' } })
    await add(here, 'stripe', SECRET)
    expect((await here.run('source', 'remove', 'stripe')).err).toContain(
      'stripe is still set by RELAY_SOURCES\n',
    )
    expect(await here.run('source', 'remove', 'stripe')).toEqual(
      fails(2, 'The profile has nothing of stripe, which is set by RELAY_SOURCES'),
    )
  })
})

describe('sources in the settings', () => {
  it.each<[string, string]>([
    ['github=stripe', "github is a code host's name: write --source hub=stripe"],
    ['Shop=stripe', 'the name of a source is 1–32 letters a–z, digits or "-", and begins with a letter'],
    ['shop=', `must be a scheme, or name=scheme. relay source add lists the schemes`],
    [
      'stripe whsec_canary',
      'The scheme stripe takes no parts but id=digest, on-duplicate= and, if it signs its address, url=',
    ],
    [
      'a=hmac header=X signed={time}.{body}',
      'The scheme hmac needs signed= with a text of {timestamp}, {id}, {body}, {body-sha256}, {method}, {url}, {path}, {query}, {fields}, {headers}, and members and parameters such as {$.amount.value} and {?id}',
    ],
    ['none', 'nothing proves deliveries of the scheme none. Give the source a name, as in door=none'],
    ['a=hmac', 'The scheme hmac needs the name of the header, as header=X-Signature'],
    [
      'a=hmac header=X secret=canary',
      "The scheme hmac has no part 'secret=…': write header=, at=, each=, prefix=, separator=, encoding=, algorithm=, key=, format=, keys=, claim=, body-claim=, iss=, aud=, key-hash=, key-name=, signed=, headers=, digest=, fields=, url=, event=, id=, time=, unit=, tolerance=, on-duplicate=, handshake=",
    ],
  ])('are refused: %s', async (text, why) => {
    await using here = await bare()
    expect(await here.run('serve', '--source', text)).toEqual(fails(2, `--source: ${why}`))
  })

  it('have different names', async () => {
    await using here = await bare({ env: { RELAY_SOURCES: 'a=stripe\na=slack' } })
    expect((await here.run('serve')).err).toBe(
      'error: RELAY_SOURCES: two sources are called a. Give one another name: --source other=scheme\n',
    )
  })

  it('win over what the profile has of the same name', async () => {
    await using here = await bare()
    await add(here, 'shop=shopify', SECRET)
    await add(here, 'other=slack', NEXT)
    const relay = await here.serve('--source', 'shop=stripe')
    expect(await pay(relay, SECRET, 'shop')).toBe(200)
    // Another terminal, elsewhere, sees what the running one has.
    const list = await here.runWith({ cwd: emptyFolder() }, 'source', 'list', '--json')
    const schemes = list.out
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line).scheme)
    expect(schemes).toEqual(['stripe', 'slack'])
  })
})

describe("a source of a project's file", () => {
  it('does not get the secret that the profile has for another scheme', async () => {
    await using here = await bare()
    await add(here, 'shop=stripe', SECRET)
    project(here, { sources: ['shop=token header=X-Token'] })
    const refused = await here.run('serve', '--port', '0')
    expect(refused).toMatchObject({ code: 2, err: expect.stringContaining('There is no secret for shop.') })
    project(here, { sources: ['shop=stripe'] })
    expect(await pay(await here.serve(), SECRET, 'shop')).toBe(200)
  })

  it('gets none under the name of a sender whose scheme it is not', async () => {
    await using here = await bare()
    project(here, { sources: ['stripe=token header=X-Token'] })
    const added = await add(here, 'stripe', SECRET)
    expect(added).toMatchObject({
      code: 2,
      err: expect.stringContaining('uses the name stripe for another scheme, token header=X-Token. Give'),
    })
    expect(contentsOf(here.home)).not.toContain(SECRET)
  })

  it('gets a secret by its name alone', async () => {
    await using here = await bare()
    project(here, { sources: ['shop=stripe'] })
    await add(here, 'shop', SECRET)
    expect(await pay(await here.serve(), SECRET, 'shop')).toBe(200)
  })
})

describe('a source that nothing proves', () => {
  it('is received from on a loopback address, by its own routes, with a warning', async () => {
    await using here = await bare()
    const relay = await here.serve('--source', 'door=none', '--exec', 'door/*=cat', '--exec', '*=false')
    expect(await knock(relay)).toBe(200)
    await relay.object({ type: 'attempt', n: 1 })
    const { attempts } = await json(here.run('show', '1', '--json'))
    expect(attempts).toMatchObject([{ answer: 'knock' }])
    const { err } = await relay.stop()
    expect(err).toContain(`  sources      door  ${relay.address}/webhook/door  unverified\n`)
    expect(err).toContain(
      '/webhook/door takes deliveries that nothing proves, from any program that reaches relay\n',
    )
  })

  it('is not received from by way of a web page', async () => {
    await using here = await bare()
    const relay = await here.serve('--source', 'door=none')
    expect(await knock(relay, { Origin: 'https://example.com' })).toBe(403)
    expect((await here.run('log')).code).toBe(6)
  })

  it.each([
    ['--host', '0.0.0.0'],
    ['--public-url', 'https://relay.example.com'],
  ])('needs --allow-unsigned with %s %s', async (...flags) => {
    await using here = await bare()
    expect(await here.run('serve', '--source', 'door=none', '--port', '0', ...flags)).toEqual(
      fails(
        2,
        `Nothing proves what the source door sends, and other machines can reach it at ${flags[1]?.replace('https://', '')}. Start without it, or allow that with --allow-unsigned`,
      ),
    )
    const relay = await here.serve(
      '--source',
      'door=none',
      '--allow-unsigned',
      '--public-url',
      'https://a.example',
    )
    expect(await knock(relay)).toBe(200)
  })

  it('is not set by the files of a project', async () => {
    await using here = await bare()
    project(here, { sources: ['stripe', 'door=none'] })
    const { code, err } = await here.run('serve')
    expect(code).toBe(2)
    expect(err).toContain(
      'a project cannot have a source that nothing proves (none): set it with --source or RELAY_SOURCES in the environment',
    )
    here.configure({ sources: ['door=none'] })
    const relay = await here.serveWith({ cwd: emptyFolder() })
    expect(await knock(relay)).toBe(200)
  })
})

describe('relay serve with sources', () => {
  it('shows each with its address', async () => {
    await using here = await bare()
    await add(here, 'stripe', SECRET)
    await add(here, 'gitlab', NEXT)
    const relay = await here.serveWith({}, '--public-url', 'https://relay.example.com')
    const sources = ['gitlab', 'stripe'].map((name) => ({
      name,
      scheme: name,
      address: `https://relay.example.com/webhook/${name}`,
    }))
    expect((await relay.stop()).err).toContain(
      '  sources      gitlab  https://relay.example.com/webhook/gitlab\n               stripe  https://relay.example.com/webhook/stripe\n',
    )
    const logged = here.start(
      'serve',
      '--port',
      '0',
      '--log-format',
      'json',
      '--public-url',
      'https://relay.example.com',
    )
    await logged.says('relay is running')
    const started = logged.err.split('\n').find((line) => line.includes('relay is running')) ?? ''
    expect(JSON.parse(started)).toMatchObject({ sources })
    await logged.stop()
    const config = await here.run('config')
    expect(config.out).toContain('\nsource gitlab          http://127.0.0.1:8787/webhook/gitlab  profile\n')
    expect((await json(here.run('config', '--json'))).sources).toEqual(
      ['gitlab', 'stripe'].map((name) => {
        const address = `http://127.0.0.1:8787/webhook/${name}`
        return { name, scheme: name, address, origin: 'profile', secret: 'profile' }
      }),
    )
  })

  it('warns of routes that name a source that is not there', async () => {
    await using here = await bare()
    await add(here, 'stripe', SECRET)
    const forward = ['--forward', 'stripe/no.such.event=3000', '--forward', 'strip/invoice.*=3000']
    const mistaken = ['--forward', 'stripe=http://127.0.0.1:3001', '--ignore', 'stripe']
    const relay = await here.serve(
      ...forward,
      '--exec',
      'github/pusg=true',
      '--ignore',
      'slack/*',
      ...mistaken,
    )
    const { err } = await relay.stop()
    expect(err.split('\n').filter((line) => line.startsWith('warning: '))).toEqual([
      'warning: --forward: strip/invoice.* is of the source strip, which relay does not receive from (did you mean stripe?). Add it with --source',
      'warning: --exec: github sends no event pusg (did you mean push?)',
      'warning: --ignore: slack/* is of the source slack, which relay does not receive from. Add it with --source',
      'warning: --ignore: for the events of the source stripe, write stripe/*',
      'warning: --forward: stripe is the name of a target that gets every event. For those of the source, write stripe/*=',
    ])
  })

  it('warns of a secret that readers of the folder have, where it runs commands', async () => {
    await using here = await bare()
    writeFileSync(path.join(here.cwd, '.env'), `RELAY_SOURCE_STRIPE_SECRET=${SECRET}\n`)
    const relay = await here.serve('--source', 'stripe', '--exec', 'stripe/*=true')
    expect((await relay.stop()).err).toContain(
      'anyone who can read RELAY_SOURCE_STRIPE_SECRET in .env can sign deliveries that run commands here',
    )
  })
})

describe('relay doctor', () => {
  const sourcesOf = async (here: Place, env: Env): Promise<unknown> => {
    const { out } = await here.runWith({ env }, 'doctor', '--json')
    return JSON.parse(out).checks.find(({ check }: { check: string }) => check === 'sources')
  }

  it('says of each source whether it has a secret', async () => {
    await using here = await bare()
    expect(await sourcesOf(here, {})).toBeUndefined()
    await add(here, 'stripe', SECRET)
    const env = { RELAY_SOURCES: 'slack\ndoor=none', RELAY_SOURCE_SLACK_SECRET: NEXT, RELAY_SOURCE: 'stripe' }
    expect(await sourcesOf(here, env)).toEqual({
      check: 'sources',
      state: 'ok',
      text: 'secret in RELAY_SOURCE_SLACK_SECRET: slack; nothing proves their deliveries: door; secret in profile: stripe',
    })
    expect(await sourcesOf(here, { RELAY_SOURCES: 'slack' })).toEqual({
      check: 'sources',
      state: 'fail',
      text: 'there is no secret for slack',
      fix: 'relay source add slack',
    })
    const { out } = await here.runWith({ env }, 'doctor', '--json')
    expect(out).not.toContain('is not read')
  })

  it('asks for no sign-in where deliveries come from sources alone', async () => {
    await using here = await bare({
      env: { RELAY_PROVIDER: 'gitea', RELAY_PROVIDER_URL: 'http://127.0.0.1:9' },
    })
    const signIn = async (...flags: string[]): Promise<unknown> => {
      const { out } = await here.run('doctor', '--json', ...flags)
      return JSON.parse(out).checks.find(({ check }: { check: string }) => check === 'sign-in')
    }
    await add(here, 'stripe', SECRET)
    expect(await signIn()).toEqual({
      check: 'sign-in',
      state: 'skip',
      text: expect.stringMatching(/is not signed in, which the sources do not need$/),
    })
    expect(await signIn('--user', 'bob')).toMatchObject({ state: 'fail' })
    await here.run('source', 'remove', 'stripe')
    expect(await signIn()).toMatchObject({ state: 'fail' })
  })
})

describe('relay log --source', () => {
  it('suggests the source that was meant', async () => {
    await using here = await bare()
    await add(here, 'stripe', SECRET)
    const relay = await here.serve()
    await pay(relay, SECRET)
    const suggestion = 'warning: --source: there is no source strpe (did you mean stripe?)\n'
    const misspelt = await here.run('log', '--source', 'strpe')
    expect(misspelt).toMatchObject({ code: 6, err: expect.stringContaining(suggestion) })
    expect((await here.run('log', '--source', 'stripe')).err).toBe('')
    const ofEvent = 'warning: there is no source strpe (did you mean stripe?)\n'
    expect((await here.run('log', '--event', 'strpe/*')).err).toContain(ofEvent)
    const ofHost = 'warning: --source: there is no source gitea\n'
    expect((await here.run('log', '--source', 'gitea')).err).toContain(ofHost)
    // It needs no secret, whose file may be a pipe, or another user's.
    const unreadable = { env: { RELAY_SOURCE_STRIPE_SECRET_FILE: path.join(here.home, 'none') } }
    expect(await here.runWith(unreadable, 'log', '--source', 'stripe')).toMatchObject({ code: 0, err: '' })
  })
})

describe('help', () => {
  it('says where the schemes are, and the variables of the secrets', async () => {
    await using here = await bare()
    const { out } = await here.run('source', '--help')
    expect(out.replaceAll(/\s+/g, ' ')).toContain('relay source add lists the senders that have a scheme')
    expect(out).toContain('RELAY_SOURCE_STRIPE_SECRET_PREVIOUS')
  })
})

describe('completion', () => {
  it('offers schemes for --source of serve, and the names of sources elsewhere', async () => {
    await using here = await bare()
    await add(here, 'shop=stripe', SECRET)
    const complete = async (...words: string[]): Promise<string[]> =>
      (await here.run('completion', 'bash', '--', ...words)).out.trim().split('\n')
    expect(await complete('serve', '--source', '')).toEqual(expect.arrayContaining(SCHEMES))
    expect(await complete('source', 'add', 'stri')).toEqual(['stripe'])
    expect(await complete('source', 'remove', '')).toEqual(['shop'])
    expect(await complete('source', 'list', '--reveal', '')).toEqual(['shop'])
    expect(await complete('trigger', '--source', 'gitlab', 'Pu')).toEqual([String.raw`Push\ Hook`])
    expect(await complete('trigger', '--source', 'shop', 'invoice.pai')).toEqual(['invoice.paid'])
    expect(await complete('trigger', 'shop/invoice.pai')).toEqual(['shop/invoice.paid'])
    expect(await complete('config', '--reveal', 'webhookSecretP')).toEqual(['webhookSecretPrevious'])
  })
})
