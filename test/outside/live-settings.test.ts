import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, it } from 'vitest'
import { githubDelivery, post, stripeDelivery } from '../kit/delivery.js'
import { describeWith } from '../kit/needs.js'
import { type Place, place, type Serving } from '../kit/place.js'
import { receiver, valuesOf } from '../kit/receiver.js'
import { smee } from '../kit/smee.js'
import { bare } from './example.js'

const [FIRST, SECOND, THIRD] = ['whsec_first', 'whsec_second', 'whsec_third']

let events = 0
/** Sends a new event as Stripe does, and returns the status of the answer. */
async function pay(relay: Serving, secret: string, name = 'stripe'): Promise<number> {
  const request = stripeDelivery({ secret, id: `evt_${++events}` })
  return (await post(`${relay.address}/webhook/${name}`, request)).status
}

const push = async (relay: Serving, secret: string): Promise<number> =>
  (await post(`${relay.address}/webhook`, githubDelivery({ secret, id: `push-${++events}` }))).status

const write = (here: Place, file: string, text: string): void =>
  writeFileSync(path.join(here.cwd, file), text)
const project = (here: Place, settings: object): void => write(here, 'relay.json', JSON.stringify(settings))

/** How a change of the settings files comes to a running relay. */
const WAYS: readonly (readonly [string, (relay: Serving) => void])[] = [
  ['an edit of relay.json', () => {}],
  ['SIGHUP', (relay) => relay.kill('SIGHUP')],
]

describe('what changes while relay serve runs works at once', () => {
  it('a source by relay source add, its next secret, and source remove', async () => {
    await using here = await bare()
    await using relay = await here.serve()
    expect(await pay(relay, FIRST)).toBe(404)
    const add = (secret: string) => here.runWith({ stdin: secret }, 'source', 'add', 'stripe')
    expect((await add(FIRST)).err).toContain(
      `Stored the secret of stripe. The address to enter at the sender: ${relay.address}/webhook/stripe\nProcess ${relay.pid} takes its deliveries from now on\n`,
    )
    expect(await relay.object({ type: 'settings' })).toMatchObject({
      state: 'reloaded',
      sources: [{ name: 'stripe', scheme: 'stripe', address: `${relay.address}/webhook/stripe` }],
      changed: ['stripe'],
      removed: [],
      restart: [],
    })
    await relay.says(`source stripe: ${relay.address}/webhook/stripe`)
    expect([await pay(relay, FIRST), await pay(relay, SECOND)]).toEqual([200, 401])
    await add(SECOND)
    expect([await pay(relay, FIRST), await pay(relay, SECOND)]).toEqual([200, 200])
    await add(THIRD)
    expect([await pay(relay, FIRST), await pay(relay, SECOND), await pay(relay, THIRD)]).toEqual([
      401, 200, 200,
    ])
    expect((await here.run('source', 'remove', 'stripe')).err).toBe(
      `Removed stripe and its secret\nProcess ${relay.pid} refuses its deliveries from now on\n`,
    )
    expect(await pay(relay, THIRD)).toBe(404)
  })

  it.each(WAYS)('routes, sources and secrets by %s', async (_, reload) => {
    await using target = await receiver()
    await using here = await bare({ env: { RELAY_WEBHOOK_SECRET: '' } })
    const env = (lines: Record<string, string>): void =>
      write(
        here,
        '.env',
        Object.entries(lines)
          .map(([name, value]) => `${name}=${value}\n`)
          .join(''),
      )
    env({ RELAY_WEBHOOK_SECRET: FIRST })
    await using relay = await here.serve()
    expect([await push(relay, FIRST), await pay(relay, FIRST)]).toEqual([200, 404])

    const settings = { forward: [`push=${target.url}`], sources: ['stripe'] }
    const secrets = { RELAY_SOURCE_STRIPE_SECRET: FIRST, RELAY_WEBHOOK_SECRET: SECOND }
    env({ ...secrets, RELAY_WEBHOOK_SECRET_PREVIOUS: FIRST })
    project(here, settings)
    reload(relay)
    await relay.says('Reloaded the settings: 1 routes, 1 source, another webhook secret')
    expect([await push(relay, FIRST), await push(relay, SECOND), await push(relay, THIRD)]).toEqual([
      200, 200, 401,
    ])
    expect(await pay(relay, FIRST)).toBe(200)
    await target.has(2)
  })
})

describe('a change that cannot be used', () => {
  it.each([
    ['a file that is no JSON', '{', 'not JSON'],
    ['a route that is malformed', '{ "forward": "nowhere" }', 'nowhere'],
    [
      'a source without a secret',
      '{ "sources": ["slack"], "ignore": ["push"] }',
      'There is no secret for slack',
    ],
  ])('changes nothing: %s', async (_, text, why) => {
    await using here = await bare()
    await here.runWith({ stdin: FIRST }, 'source', 'add', 'stripe')
    await using relay = await here.serve('--log-format', 'text')
    write(here, 'relay.json', text)
    await relay.says('warning: the routes are unchanged: ')
    expect(relay.err).toContain(why)
    expect(await relay.object({ type: 'settings' })).toMatchObject({ state: 'unchanged', code: 'settings' })
    expect(await pay(relay, FIRST)).toBe(200)
  })

  it('needs a restart, with the command: what is no route, source or secret', async () => {
    await using here = await bare()
    await using relay = await here.serve()
    project(here, { concurrency: 4 })
    const file = path.join(here.cwd, 'relay.json')
    await relay.says(
      `concurrency in ${file} changed, and a running relay cannot use it. Restart relay serve (process ${relay.pid})`,
    )
    expect(await relay.object({ type: 'settings' })).toMatchObject({
      restart: [expect.stringContaining('Restart')],
    })
  })
})

describe('with a tunnel', () => {
  it('a source that is added gets a channel of its own, whose address the command prints', async () => {
    await using server = await smee()
    await using here = await bare()
    await using relay = await here.serve('--tunnel', new URL(server.channel).origin)
    const added = await here.runWith({ stdin: FIRST }, 'source', 'add', 'stripe', '--json')
    const { address }: { readonly address: string } = JSON.parse(added.out)
    expect(address).toMatch(new URL(server.channel).origin)
    await relay.says(`source stripe: ${address}`)
    await relay.says(`tunnel of stripe works`)
    await here.run('source', 'remove', 'stripe')
    await relay.says('source stripe: removed')
  })
})

describeWith('postgres', 'several relays of a profile', () => {
  it('all receive from a source that is added, and none once it is removed', async () => {
    await using here = await place({ host: 'none', store: 'postgres' })
    const relays = [await here.serve(), await here.serve()]
    await here.runWith({ stdin: FIRST }, 'source', 'add', 'stripe')
    for (const relay of relays) await expect.poll(() => pay(relay, FIRST), { timeout: 10_000 }).toBe(200)
    await here.run('source', 'remove', 'stripe')
    for (const relay of relays) await expect.poll(() => pay(relay, FIRST), { timeout: 10_000 }).toBe(404)
  })

  it('all forward along a stored route, with its options, also once the others have ended', async () => {
    await using here = await place({ host: 'none', store: 'postgres' })
    await using target = await receiver()
    const [first, second] = [await here.serve(), await here.serve()]
    const options = ['--ordered', '--timeout', '90s', '--header', 'X-Key: $CI_KEY', '--where', 'zen!=no']
    const added = await here.runWith(
      { env: { CI_KEY: 'of one shell' } },
      'routes',
      'add',
      `app=${target.url}`,
      ...options,
    )
    expect(added.code).toBe(0)
    let sent = 0
    const ids = () => target.received.flatMap((each) => valuesOf(each, 'X-GitHub-Delivery'))
    const send = async (relay: Serving, of: string): Promise<boolean> => {
      expect((await relay.deliver({ id: `${of}-${(sent += 1)}` })).status).toBe(200)
      return ids().some((id) => id.startsWith(of))
    }
    await expect.poll(() => send(first, 'first'), { timeout: 10_000 }).toBe(true)
    await expect.poll(() => send(second, 'second'), { timeout: 10_000 }).toBe(true)
    const { out } = await here.run('routes', '--json')
    expect(JSON.parse(out)).toMatchObject({ options: ['timeout 90s', 'ordered', 'header X-Key'] })
    await first.stop()
    await expect.poll(() => send(second, 'alone'), { timeout: 20_000 }).toBe(true)
    expect(new Set(target.received.flatMap((each) => valuesOf(each, 'X-Key')))).toEqual(
      new Set(['of one shell']),
    )
  })
})
