import { DatabaseSync } from '@photostructure/sqlite'
import { cpSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, it } from 'vitest'
import { emptyFolder } from '../kit/folder.js'
import { hub, joining } from '../kit/hub.js'
import { fetched, idsIn, load, wrong } from '../kit/hub-load.js'
import { describeWith } from '../kit/needs.js'
import { place } from '../kit/place.js'

const CONNECTED = { type: 'tunnel', state: 'connected', roundTrip: 'ok' }
const BUILT = { built: true }

describe('what a hub has answered 200 is in a journal of its channel, once and in order', () => {
  it('where two workstations have one key, and take turns under load', async () => {
    await using server = await hub(BUILT)
    await using here = await place({ host: 'none' })
    const env = { ...here.env, ...(await joining(server)) }
    const start = () => here.serveWith({ ...BUILT, env }, '--tunnel')
    const first = await start()
    const { url } = await first.object(CONNECTED)
    await first.stop()
    const copy = emptyFolder()
    cpSync(here.home, copy, { recursive: true })
    await using other = await place({ host: 'none', env: { RELAY_HOME: copy } })
    const sending = load(String(url), { every: 20 })
    let running = await start()
    const ran = [here]
    for (let round = 0; round < 6; round++) {
      await running.object(CONNECTED)
      const next = await (round % 2 ? start() : other.serveWith(BUILT, '--tunnel', server.address))
      await next.says('another workstation receives from this channel: ')
      await sending.more(20)
      expect(next.out).not.toContain('"type":"delivery"')
      await running.stop()
      running = next
      ran.push(round % 2 ? here : other)
    }
    await running.objects({ type: 'delivery' }, 20)
    const answered = await sending.stop()
    await fetched(server)
    await running.stop()
    const [mine, others] = await Promise.all([idsIn(here), idsIn(other)])
    // In the order in which the hub gave them: the two have one journal between them.
    expect(mine.length + others.length).toBe(new Set([...mine, ...others]).size)
    const all = new Set([...mine, ...others])
    expect(answered.flat().filter((id) => !all.has(id))).toEqual([])
    for (const ids of [mine, others]) {
      const has = new Set(ids)
      expect(
        wrong(
          ids,
          answered.map((of) => of.filter((id) => has.has(id))),
        ),
      ).toEqual([])
    }
  })

  it('where the key is withdrawn under load, and another one given', async () => {
    await using server = await hub(BUILT)
    await using here = await place({ host: 'none' })
    const env = { ...here.env, ...(await joining(server)) }
    let relay = await here.serveWith({ ...BUILT, env }, '--tunnel')
    const { url } = await relay.object(CONNECTED)
    const channel = String(url).split('/')[3] ?? ''
    const sending = load(String(url))
    for (let round = 0; round < 3; round++) {
      await sending.more(40)
      expect((await server.operate('revoke', channel)).code).toBe(0)
      await relay.says("tunnel is down: the hub's operator has withdrawn the key of this channel")
      await relay.stop()
      const RELAY_HUB_TOKEN = (await server.operate('renew', channel)).out.trim()
      relay = await here.serveWith({ ...BUILT, env: { ...env, RELAY_HUB_TOKEN } }, '--tunnel')
      expect((await relay.object(CONNECTED))['url']).toBe(url)
    }
    await sending.more(40)
    const answered = await sending.stop()
    await fetched(server)
    await relay.stop()
    expect(wrong(await idsIn(here), answered)).toEqual([])
    expect([...sending.statuses]).toEqual([200, 404])
  })
})

describeWith('keyring', 'the key of a channel', () => {
  it.each(['file', 'keychain'] as const)('is where the tokens of the profile are: %s', async (store) => {
    await using server = await hub(BUILT)
    await using here = await place({ host: 'none', store })
    const env = { ...here.env, ...(await joining(server)) }
    const relay = await here.serveWith({ ...BUILT, env }, '--tunnel')
    const { url } = await relay.object(CONNECTED)
    await relay.stop()
    using data = new DatabaseSync(path.join(here.home, 'default', 'relay.db'), { readOnly: true })
    const [row] = data.prepare("SELECT value FROM kv WHERE key LIKE 'tunnel-hub-key:%'").all()
    const isPlain = /^"[\w-]{43}"$/.test(String(row?.['value']))
    expect(isPlain).toBe(store === 'file')
    // Read from there at the next start.
    const again = await here.serveWith(BUILT, '--tunnel', server.address)
    expect((await again.object(CONNECTED))['url']).toBe(url)
  })
})
