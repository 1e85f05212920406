import { copyFileSync, writeFileSync } from 'node:fs'
import { hostname } from 'node:os'
import path from 'node:path'
import { connect } from 'node:tls'
import { once } from 'node:events'
import { describe, expect, it } from 'vitest'
import { type Certificate, selfSigned, signedBy } from '../kit/certificate.js'
import { githubDelivery, post } from '../kit/delivery.js'
import { emptyFolder } from '../kit/folder.js'
import { exchange } from '../kit/http.js'
import { hub, joining } from '../kit/hub.js'
import { readMetrics } from '../kit/metrics.js'
import { describeWith } from '../kit/needs.js'
import { faulty, place } from '../kit/place.js'
import { fresh } from './fixture.js'

const CONNECTED = { type: 'tunnel', state: 'connected', roundTrip: 'ok' }

const here = fresh(() => place({ host: 'none' }))

describeWith('openssl', 'a hub with a certificate', () => {
  /** Files of a certificate that is renewed. */
  const files = (first: Certificate) => {
    const folder = emptyFolder()
    const [cert, key] = [path.join(folder, 'chain.pem'), path.join(folder, 'key.pem')]
    const use = (next: Pick<Certificate, 'cert' | 'key'>): void => {
      writeFileSync(cert, next.cert)
      writeFileSync(key, next.key)
    }
    use(first)
    return { use, flags: ['--tls-cert', cert, '--tls-key', key] }
  }
  const served = async (address: string): Promise<string> => {
    const { port, hostname } = new URL(address)
    const socket = connect({ port: Number(port), host: hostname, rejectUnauthorized: false })
    await once(socket, 'secureConnect')
    const { fingerprint256 } = socket.getPeerX509Certificate() ?? {}
    socket.destroy()
    return fingerprint256 ?? ''
  }

  it.each(['at SIGHUP', 'when its files change'])(
    'serves HTTPS, and a renewed certificate %s, while it runs on',
    async (when) => {
      const authority = selfSigned('authority.test')
      const [first, second] = [signedBy(authority, '127.0.0.1'), signedBy(authority, '127.0.0.1')]
      const { use, flags } = files(first)
      const limits = { certificateLook: when === 'at SIGHUP' ? 3_600_000 : 20 }
      await using server = await hub({ flags, seams: { limits } })
      expect(server.address).toMatch(/^https:/)
      const ca = path.join(emptyFolder(), 'ca.pem')
      copyFileSync(authority.file, ca)
      const env = { ...here.env, ...(await joining(server)), NODE_EXTRA_CA_CERTS: ca }
      const relay = await here.serveWith({ built: true, env }, '--tunnel')
      await relay.object(CONNECTED)
      const before = await served(server.address)
      use({ cert: second.cert, key: first.key })
      if (when === 'at SIGHUP') server.kill('SIGHUP')
      await server.says('the certificate before is used on, since the new one cannot be: ')
      expect(await served(server.address)).toBe(before)
      use(second)
      if (when === 'at SIGHUP') server.kill('SIGHUP')
      await server.says('the certificate was read again')
      const after = await served(server.address)
      expect(after).not.toBe(before)
      // The workstation comes again by TLS with the second.
      await relay.stop()
      const again = await here.serveWith({ built: true, env }, '--tunnel')
      await again.object(CONNECTED)
    },
  )
})

describe('GET /metrics of a hub', () => {
  it('counts what became of requests, and shows the channels, without an address, header or body', async () => {
    const storage = faulty()
    await using server = await hub({ flags: ['--metrics'], seams: { storage } })
    const bounds = ['--channel-max', '24KiB', '--channel-rate', '7', '--name', 'ada']
    const env = { ...here.env, RELAY_HUB_TOKEN: await server.invite(...bounds), RELAY_TUNNEL: server.address }
    const relay = await here.serveWith({ env }, '--tunnel', '--max-body', '100000')
    const url = String((await relay.object(CONNECTED))['url'])
    expect((await post(url, githubDelivery())).status).toBe(200)
    await relay.object({ type: 'delivery' })
    await relay.stop()
    const canary = { body: `"canary${'x'.repeat(9000)}"`, set: { 'X-Canary': 'canary' } }
    const statuses = []
    for (let i = 0; i < 2; i++) statuses.push((await post(url, githubDelivery(canary))).status)
    statuses.push((await post(url, githubDelivery({ body: 'x'.repeat(100_001) }))).status)
    storage.now('fails')
    statuses.push((await post(url, githubDelivery())).status)
    storage.now('works')
    statuses.push((await post(url.replace(/.{8}\/github$/, 'xxxxxxxx/github'), githubDelivery())).status)
    for (let i = 0; i < 3; i++) statuses.push((await post(url, githubDelivery(canary))).status)
    expect(statuses).toEqual([200, 200, 413, 503, 404, 507, 429, 429])
    const shown = async () => {
      const families = await readMetrics(server.address)
      return Object.fromEntries(
        Object.entries(families).flatMap(([name, { values }]) =>
          name.startsWith('relay_hub_') && name !== 'relay_hub_oldest_seconds' ? [[name, values]] : [],
        ),
      )
    }
    await expect.poll(shown).toEqual({
      relay_hub_requests_total: {
        'result=stored': 4,
        'result=unknown': 1,
        'result=rate_limited': 2,
        'result=full': 1,
        'result=too_large': 1,
        'result=unavailable': 1,
        'result=failed': 0,
      },
      // The request that the workstation sends to itself, and the delivery.
      relay_hub_fetched_total: { '': 2 },
      relay_hub_channels: { 'state=connected': 0, 'state=not_connected': 1, 'state=withdrawn': 0 },
      relay_hub_waiting_requests: { 'channel=ada': 2 },
    })
    const text = await (await fetch(`${server.address}/metrics`)).text()
    for (const secret of ['canary', url.split('/')[3]]) expect(text).not.toContain(secret)
    // As the inspector's: for this machine alone.
    const { port } = new URL(server.address)
    const asked = `GET /metrics HTTP/1.1\r\nHost: hub.example.com\r\nConnection: close\r\n\r\n`
    expect((await exchange(Number(port), asked)).status).toBe(403)
  })

  it('is not there unless it is set', async () => {
    await using server = await hub()
    expect((await fetch(`${server.address}/metrics`)).status).toBe(404)
  })
})

describe('relay hub list', () => {
  it('shows whether a workstation is connected, which, and whose key is withdrawn', async () => {
    await using server = await hub()
    const state = async (): Promise<unknown> => {
      const { out } = await server.operate('list')
      return out.split('\n').find((line) => line.startsWith('ada ')) ?? ''
    }
    const env = { ...here.env, RELAY_HUB_TOKEN: await server.invite('--name', 'ada') }
    const relay = await here.serveWith({ env }, '--tunnel', server.address)
    await relay.object(CONNECTED)
    expect(await state()).toContain(`connected: ${hostname()}`)
    await relay.stop()
    expect(await state()).toContain('not connected')
    expect((await server.operate('revoke', 'ada')).code).toBe(0)
    expect(await state()).toContain('key withdrawn')
  })
})

describe('the messages of a hub', () => {
  it('are JSON with --log-format json, a line each', async () => {
    await using server = await hub({ flags: ['--log-format', 'json'] })
    await server.stop()
    const lines = server.err
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
    expect(lines[0]).toMatchObject({ level: 'info', url: server.address, profile: 'hub' })
    await using broken = await hub({ flags: ['--log-format', 'json'] })
    const { err } = await broken.operate('--log-format', 'json', '--port', 'x')
    expect(JSON.parse(err)).toMatchObject({ level: 'error' })
  })
})

describe('relay doctor at a workstation whose hub refuses it', () => {
  const server = fresh(() => hub())
  const tunnel = async () => {
    const { out } = await here.run('doctor', '--json')
    const { checks } = JSON.parse(out)
    return checks.find(({ check }: { check: string }) => check === 'tunnel')
  }
  const use = (command: string): string =>
    `ask the hub's operator for relay hub ${command}, set RELAY_HUB_TOKEN to the invitation that it prints, and restart relay`

  it('says that the key is withdrawn, and what to ask for', async () => {
    const env = { ...here.env, ...(await joining(server)) }
    const relay = await here.serveWith({ env }, '--tunnel')
    const channel = String((await relay.object(CONNECTED))['url']).split('/')[3] ?? ''
    await server.operate('revoke', channel)
    await relay.object({ type: 'tunnel', state: 'waiting', fix: use('renew') })
    await expect.poll(tunnel).toMatchObject({
      state: 'fail',
      text: expect.stringContaining("the hub's operator has withdrawn the key of this channel"),
      fix: use('renew'),
    })
  })

  it('says that there is no channel yet, and what to ask for', async () => {
    const other = { RELAY_HUB_TOKEN: `relay-hub-${'x'.repeat(43)}`, RELAY_TUNNEL: server.address }
    await using elsewhere = await place({ host: 'none', env: other })
    const refused = await elsewhere.serve('--tunnel')
    const status = await refused.object({ type: 'tunnel', state: 'waiting' })
    expect(status).toMatchObject({ fix: use('invite'), url: null })
  })
})
