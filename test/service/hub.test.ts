import { execFile } from 'node:child_process'
import { createHmac } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'
import { parse } from 'yaml'
import { codeBlocks } from '../kit/code-blocks.js'
import { githubDelivery, post, SECRET, secretVariable } from '../kit/delivery.js'
import { emptyFolder } from '../kit/folder.js'
import { haproxy } from '../kit/haproxy.js'
import { hub, joining } from '../kit/hub.js'
import { entriesOf } from '../kit/journal.js'
import { describeWith } from '../kit/needs.js'
import { place } from '../kit/place.js'
import { database } from '../kit/postgres.js'
import { PROGRAM, start } from '../kit/run.js'

const CONNECTED = { type: 'tunnel', state: 'connected', roundTrip: 'ok' }

describeWith('postgres', 'two hubs on one database', () => {
  it('are one hub: what one takes goes to the workstation of the other, in order, and answers go back', async () => {
    await using data = await database()
    await using one = await hub({ env: data.env })
    await using two = await hub({ env: data.env })
    await using here = await place({ host: 'none' })
    const env = { ...here.env, ...(await joining(one)), [secretVariable('slack')]: SECRET }
    const relay = await here.serveWith({ env }, '--tunnel', '--source', 'slack')
    const url = String((await relay.object(CONNECTED))['url'])
    const elsewhere = url.replace(one.address, two.address)
    const ids = Array.from({ length: 40 }, (_, i) => `id-${i}`)
    for (const [i, id] of ids.entries())
      expect((await post(i % 2 === 0 ? url : elsewhere, githubDelivery({ id }))).status).toBe(200)
    const body = JSON.stringify({ type: 'url_verification', challenge: 'abc' })
    const time = String(Math.floor(Date.now() / 1000))
    const signature = `v0=${createHmac('sha256', SECRET).update(`v0:${time}:${body}`).digest('hex')}`
    const asked = await fetch(elsewhere.replace(/github$/, 'slack'), {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'x-slack-request-timestamp': time,
        'x-slack-signature': signature,
      },
      body,
    })
    expect(await asked.text()).toBe('{"challenge":"abc"}')
    await relay.objects({ type: 'delivery' }, 40)
    await relay.stop()
    expect((await entriesOf(here)).map(({ deliveryId }) => deliveryId)).toEqual(ids)
  })
})

describeWith('haproxy', 'hubs behind a load balancer', () => {
  it('lose nothing when one of them is killed', async () => {
    await using data = await database()
    const built = { built: true, env: data.env }
    await using one = await hub(built)
    await using two = await hub(built)
    await using balancer = await haproxy({
      ports: [one, two].map(({ address }) => Number(new URL(address).port)),
    })
    await using here = await place({ host: 'none' })
    const env = { ...here.env, ...(await joining(one)), RELAY_TUNNEL: balancer.url }
    const relay = await here.serveWith({ env }, '--tunnel')
    const url = String((await relay.object(CONNECTED))['url'])
    const ids: string[] = []
    const send = async (count: number): Promise<void> => {
      for (let i = 0; i < count; i++) {
        const id = `id-${ids.length}-${i}`
        if ((await post(url, githubDelivery({ id })).catch(() => undefined))?.status === 200) ids.push(id)
      }
    }
    await send(20)
    await one.stop('SIGKILL')
    await send(20)
    await relay.objects({ type: 'delivery' }, ids.length)
    await relay.stop()
    const stored = (await entriesOf(here)).map(({ deliveryId }) => deliveryId)
    expect(stored.filter((id) => ids.includes(id))).toEqual(ids)
    expect(new Set(stored).size).toBe(stored.length)
  })
})

describeWith('systemd-analyze', 'the unit of docs/hub.md', () => {
  it('is one that systemd accepts, with settings that relay knows', async () => {
    const unit = codeBlocks('docs/hub.md').get('relay-hub.service') ?? ''
    const [, line = ''] = /^ExecStart=\/usr\/bin\/relay (hub .*)$/m.exec(unit) ?? []
    const file = path.join(emptyFolder(), 'relay-hub.service')
    writeFileSync(file, unit.replace('/usr/bin/relay', PROGRAM))
    const { stdout, stderr } = await promisify(execFile)('systemd-analyze', ['verify', '--man=no', file])
    expect({ stdout, stderr }).toEqual({ stdout: '', stderr: '' })
    await using server = start([...line.split(' '), '--port', '0', '--json'], { built: true })
    expect((await fetch(`${await server.url()}/ready`)).status).toBe(200)
  })
})

describeWith('docker-compose', 'compose.hub.yaml', () => {
  it('is valid, writes to its volume alone, and is reached from its machine alone', async () => {
    const config = (env: NodeJS.ProcessEnv) =>
      promisify(execFile)('docker-compose', ['--file', 'compose.hub.yaml', 'config'], { env })
    const { PATH } = process.env
    const { stdout } = await config({ PATH, RELAY_PUBLIC_URL: 'https://hub.example.com' })
    expect(parse(stdout).services).toMatchObject({
      hub: {
        command: ['hub'],
        environment: { RELAY_PUBLIC_URL: 'https://hub.example.com' },
        ports: ['127.0.0.1:8787:8787/tcp'],
        init: true,
        read_only: true,
        cap_drop: ['ALL'],
        security_opt: ['no-new-privileges:true'],
      },
    })
    await expect(config({ PATH })).rejects.toThrow('set it to the address of the hub')
  })
})
