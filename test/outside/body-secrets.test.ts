import { createHmac } from 'node:crypto'
import { expect, it } from 'vitest'
import { post } from '../kit/delivery.js'
import { openInspector } from '../kit/inspector.js'
import { codingAgent } from '../kit/mcp.js'
import { place } from '../kit/place.js'
import { receiver } from '../kit/receiver.js'

const SECRET = 'pass-c0de-9f2b'
const TOKEN = 'XXYYZZlegacy0token'

interface Case {
  readonly scheme: string
  readonly type?: string
  readonly body: string
  /** What nobody is shown. */
  readonly hidden: string
  readonly sign?: (body: string) => readonly (readonly [string, string])[]
  /** True if the hidden text proves the delivery, so that relay writes it again. */
  readonly isProof: boolean
}

const slack = (body: string): readonly (readonly [string, string])[] => {
  const now = String(Math.floor(Date.now() / 1000))
  const made = createHmac('sha256', SECRET).update(`v0:${now}:${body}`).digest('hex')
  return [
    ['X-Slack-Request-Timestamp', now],
    ['X-Slack-Signature', `v0=${made}`],
  ]
}
const FORM = 'application/x-www-form-urlencoded'

const CASES: readonly Case[] = [
  {
    scheme: 'figma',
    body: `{"event_type": "PING", "passcode":"${SECRET}", "webhook_id":"22", "big":12345678901234567890}`,
    hidden: SECRET,
    isProof: true,
  },
  {
    scheme: 'microsoft-graph',
    body: `{"value":[{"changeType":"created","clientState":"${SECRET}"},{"changeType":"updated","clientState":"${SECRET}"}]}`,
    hidden: SECRET,
    isProof: true,
  },
  {
    scheme: 'token at=$.key',
    body: `kind=a&key=${SECRET}&x=a%2fb`,
    type: FORM,
    hidden: SECRET,
    isProof: true,
  },
  {
    scheme: 'slack',
    body: `{"token":"${TOKEN}","type":"event_callback","event":{"type":"message"},"event_id":"Ev1"}`,
    hidden: TOKEN,
    sign: slack,
    isProof: false,
  },
  {
    scheme: 'slack',
    type: FORM,
    body: `token=${TOKEN}&command=%2Fdeploy&text=a%20b&trigger_id=1.2`,
    hidden: TOKEN,
    sign: slack,
    isProof: false,
  },
  {
    scheme: 'slack',
    type: FORM,
    body: `payload=${encodeURIComponent(`{"type":"block_actions","token":"${TOKEN}","trigger_id":"3.4"}`)}`,
    hidden: TOKEN,
    sign: slack,
    isProof: false,
  },
]

it.each(CASES)('a secret in the body is forwarded and not shown: $scheme $body', async (each) => {
  const { scheme, type = 'application/json', body, hidden, sign, isProof } = each
  await using here = await place({ host: 'none', env: { RELAY_SOURCE_SHOP_SECRET: SECRET } })
  await using target = await receiver()
  const relay = await here.serve('--source', `shop=${scheme}`, '--forward', `shop/*=${target.url}`)
  const headers: [string, string][] = [['Content-Type', type]]
  for (const [name, value] of sign?.(body) ?? []) headers.push([name, value])
  expect((await post(`${relay.address}/webhook/shop`, { headers, body: Buffer.from(body) })).status).toBe(200)
  await target.has(1)
  expect(target.received.map((got) => String(got.body))).toEqual([body])

  const opened = await openInspector(here, relay)
  const page = await (await opened.get('deliveries/1/body')).text()
  const shown = [
    (await here.run('show', 'last')).out,
    (await here.run('show', 'last', '--json')).out,
    (await here.run('wait', '*', '--since', '1h', '--json')).out,
    JSON.stringify(await opened.json('deliveries/1')),
    page,
  ]
  for (const text of shown) expect(text).not.toContain(hidden)
  expect(decodeURIComponent(page).replace(/\(hidden\)/g, hidden)).toBe(decodeURIComponent(body))
  expect((await here.run('show', 'last', '--reveal')).out).toContain(hidden)
  expect((await here.run('show', 'last', '--body')).out).toBe(body)

  // What proves the delivery is written again; another token is signed with the body.
  const files = [
    (await here.run('export', 'last')).out,
    await (await opened.get('deliveries/1/fixture')).text(),
  ]
  for (const file of files) {
    expect(file.includes(hidden)).toBe(!isProof)
    const ran = await here.runWith({ stdin: file }, 'replay', '-', '--to', `${target.url}/again`)
    expect([ran.code, String(target.received.at(-1)?.body)]).toEqual([0, body])
  }
  expect((await (await opened.get('deliveries/1/curl')).text()).includes(hidden)).toBe(!isProof)

  if (type === FORM) return
  const copy = { from: 1, event: 'message', body: page.replace('{', '{"more":1,') }
  expect((await opened.send('send', copy)).status).toBe(200)
  await target.has(4)
  const sent = String(target.received.at(-1)?.body)
  expect(JSON.parse(sent)).toMatchObject({ more: 1 })
  expect(sent.split(hidden).length).toBe(body.split(hidden).length)
})

it('a refused request does not show it either, nor does an agent see it', async () => {
  await using here = await place({ host: 'none', env: { RELAY_SOURCE_FIGMA_SECRET: SECRET } })
  const relay = await here.serve('--source', 'figma')
  const send = async (passcode: string): Promise<number> => {
    const body = Buffer.from(JSON.stringify({ event_type: 'PING', passcode, webhook_id: 'w-7' }))
    return (await post(`${relay.address}/webhook/figma`, { headers: [], body })).status
  }
  expect([await send(SECRET), await send('0ther-passcode')]).toEqual([200, 401])
  const opened = await openInspector(here, relay)
  const refused = [
    (await here.run('show', 'refused:1')).out,
    (await here.run('show', 'refused:1', '--json')).out,
    JSON.stringify(await opened.json('refused/1')),
  ]
  for (const text of refused) {
    expect(text).toContain('w-7')
    expect(text).not.toContain('0ther-passcode')
  }
  await using agent = await codingAgent(here)
  const seen = JSON.stringify(await agent.call('show_delivery', { entry: '1' }))
  expect(seen).toContain('w-7')
  expect(seen).not.toContain(SECRET)
})
