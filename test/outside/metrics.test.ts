import { readFileSync } from 'node:fs'
import path from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { githubDelivery, post } from '../kit/delivery.js'
import { emptyFolder } from '../kit/folder.js'
import { exchange, requestText } from '../kit/http.js'
import { fill } from '../kit/journal.js'
import { readMetrics } from '../kit/metrics.js'
import { faulty, place, type Serving } from '../kit/place.js'
import { closedPort } from '../kit/ports.js'
import { receiver } from '../kit/receiver.js'
import { smee } from '../kit/smee.js'
import { fresh } from './fixture.js'

const LIST_LOADED = path.resolve('test/kit/loaded.mjs')

/** Of a test's own. */
const here = fresh(() => place({ host: 'none' }))

describe('GET /metrics', () => {
  it('counts deliveries by result, forwards by target and status, and shows what waits', async () => {
    const storage = faulty()
    const answers = [200, 410]
    await using target = await receiver(async () => {
      await pause(30)
      return answers.shift() ?? 200
    })
    const down = await closedPort()
    const app = ['--forward', `app=${target.url}`]
    const unreachable = ['--forward', `push=http://localhost:${down}/secret?key=secret`]
    const flags = ['--metrics', '--max-body', '100', ...app, ...unreachable]
    const relay = await here.serveWith({ seams: { storage } }, ...flags)
    const send = async (options = {}) => (await relay.deliver(options)).status
    for (const id of ['first', 'first']) expect(await send({ id, event: 'ping' })).toBe(200)
    await target.has(1)
    expect(await send({ id: 'second' })).toBe(200)
    await target.has(2)
    const unsigned = { set: { 'X-Hub-Signature-256': undefined } }
    const refused = [{ secret: 'another' }, unsigned, { body: '{' }, { body: 'x'.repeat(101) }]
    const statuses: number[] = []
    for (const options of refused) statuses.push(await send(options))
    expect(statuses).toEqual([401, 401, 400, 413])
    expect((await post(`${relay.address}/hooks`, githubDelivery())).status).toBe(404)
    storage.now('fails')
    expect(await send()).toBe(503)
    storage.now('works')

    // What waits is read again only after a moment.
    const ended = async () => {
      const { relay_forwards_total: forwards, relay_queue_deliveries: queues } = await readMetrics(
        relay.address,
      )
      return { ...forwards?.values, waiting: queues?.values['target=app'] }
    }
    const unnamed = `localhost:${down}`
    await expect.poll(ended).toEqual({
      'target=app status=succeeded': 1,
      'target=app status=failed': 1,
      [`target=${unnamed} status=succeeded`]: 0,
      [`target=${unnamed} status=failed`]: 0,
      waiting: 0,
    })
    const metrics = await readMetrics(relay.address)
    const atLeast = (least: number) => expect.toSatisfy((value: number) => value >= least)
    const counter = (values: object) => ({ type: 'COUNTER', values })
    const gauge = (values: object) => ({ type: 'GAUGE', values })
    expect(metrics).toMatchObject({
      relay_attempt_duration_seconds_bucket: {
        values: { 'le=600 target=app': 2, 'le=+Inf target=app': 2 },
      },
      nodejs_eventloop_lag_p99_seconds: { type: 'GAUGE' },
      process_resident_memory_bytes: { values: { '': atLeast(1_000_000) } },
    })
    const reasons = 'no_signature invalid_signature invalid_event too_large wrong_path'.split(' ')
    const exact = {
      relay_deliveries_total: counter({
        'result=stored via=http': 2,
        'result=duplicate via=http': 1,
        'result=unavailable via=http': 1,
      }),
      relay_deliveries_refused_total: counter(
        Object.fromEntries(reasons.map((reason) => [`reason=${reason}`, 1])),
      ),
      relay_queue_deliveries: gauge({ 'target=app': 0, [`target=${unnamed}`]: 1 }),
      relay_ready: gauge({ '': 1 }),
      relay_tunnel_connected: gauge({}),
    }
    for (const [name, metric] of Object.entries(exact)) expect([name, metrics[name]]).toEqual([name, metric])
    // Two of 30 ms, and no thousand times as much.
    const seconds = expect.toSatisfy((sum: number) => sum >= 0.05 && sum < 30)
    const age = expect.toSatisfy((age: number) => age > 0 && age < 600)
    const values = {
      relay_queue_oldest_seconds: { 'target=app': 0, [`target=${unnamed}`]: age },
      relay_attempt_duration_seconds_count: { 'target=app': 2, [`target=${unnamed}`]: atLeast(1) },
      relay_attempt_duration_seconds_sum: { 'target=app': seconds, [`target=${unnamed}`]: atLeast(0) },
      // With the one that could not be stored.
      relay_storage_duration_seconds_count: { 'operation=store': 4, 'operation=record': atLeast(3) },
    }
    for (const [name, all] of Object.entries(values))
      expect([name, metrics[name]?.values]).toEqual([name, all])
    expect(await (await fetch(`${relay.address}/metrics`)).text()).not.toContain('secret')
  })

  it('shows whether the tunnel is connected, and counts what comes through it', async () => {
    await using channel = await smee()
    const relay = await here.serve('--metrics', '--tunnel', channel.channel)
    const tunnel = async () => (await readMetrics(relay.address))['relay_tunnel_connected']?.values['']
    await expect.poll(tunnel).toBe(1)
    await post(channel.channel, githubDelivery({ body: '{"ref":"refs/heads/main","commits":[]}' }))
    const deliveries = async () => (await readMetrics(relay.address))['relay_deliveries_total']?.values
    const stored = { 'result=stored via=tunnel': 1, 'result=stored via=http': 0 }
    await expect.poll(deliveries).toMatchObject(stored)
    await channel[Symbol.asyncDispose]()
    await expect.poll(tunnel).toBe(0)
  })

  it('is there where it is set, by flag or variable; prom-client is loaded then, and only then', async () => {
    const run = async (flags: readonly string[], env: Readonly<Record<string, string>>) => {
      const LOADED = path.join(emptyFolder(), 'loaded')
      await using target = await receiver()
      await using here = await place({ host: 'none', env: { LOADED, ...env } })
      const options = { built: true, env: { NODE_OPTIONS: `--import ${LIST_LOADED}` } }
      const relay = await here.serveWith(options, '--forward', `app=${target.url}`, ...flags)
      expect((await relay.deliver()).status).toBe(200)
      await relay.object({ type: 'attempt' })
      const { status } = await fetch(`${relay.address}/metrics`)
      const metrics = status === 200 ? await readMetrics(relay.address) : {}
      expect(await relay.stop()).toMatchObject({ code: 0 })
      const isLoaded = /node_modules\/prom-client\//.test(readFileSync(LOADED, 'utf8'))
      return { status, isLoaded, stored: metrics['relay_deliveries_total']?.values['result=stored via=http'] }
    }
    const on = { status: 200, isLoaded: true, stored: 1 }
    const off = { status: 404, isLoaded: false, stored: undefined }
    const runs = [run(['--metrics'], {}), run([], { RELAY_METRICS: 'on' }), run([], {})]
    runs.push(run([], { RELAY_METRICS: 'off' }))
    expect(await Promise.all(runs)).toEqual([on, on, off, off])
  })
})

describe('the label of a target', () => {
  /** The labels of the queues, in their order, with how much waits in each. */
  async function queues({ address }: Serving): Promise<Record<string, number>> {
    const values = (await readMetrics(address))['relay_queue_deliveries']?.values ?? {}
    const named = Object.entries(values).map(([label, count]) => [label.replace(/^target=/, ''), count])
    return Object.fromEntries(named)
  }

  it('is a short name, its own, and shows nothing of paths, queries, passwords and arguments', async () => {
    const port = await closedPort()
    const host = `127.0.0.1:${port}`
    const forwards = [
      `app=http://${host}/hooks`,
      `http://alice:secret@${host}/T000/secret?key=secret`,
      `push=http://${host}/other`,
      'https://[::1]:8443/',
      'app=http://127.0.0.1:4000/',
    ]
    const commands = [
      '*=TOKEN=secret ./bin/deploy.sh --key secret',
      '*=KEY=secret',
      '$(cat secret) run',
      './bin/deploy.sh other',
    ]
    const forward = forwards.flatMap((each) => ['--forward', each])
    const exec = commands.flatMap((each) => ['--exec', each])
    const labels = `app ${host} ${host}-2 [::1]:8443 app-2 deploy.sh command command-2 deploy.sh-2`
    const shown = await queues(await here.serve('--metrics', ...forward, ...exec))
    expect(Object.keys(shown)).toEqual(labels.split(' '))
  })

  it('stays when its target is no longer configured', async () => {
    const port = await closedPort()
    const targets = [
      `*=http://127.0.0.1:${port}/`,
      'push=exec:./old.sh secret',
      '*=https://example.com/secret',
    ]
    const forwards = Object.fromEntries(targets.map((target) => [target, {}]))
    await fill(here, [{ id: 'waits', receivedAt: Date.now(), forwards }])
    here.configure({ forward: [`app=http://127.0.0.1:${port}/`] })
    const relay = await here.serve('--metrics')
    const waits = { app: 1, 'old.sh': 1, 'example.com': 1 }
    expect(await queues(relay)).toEqual(waits)
    here.configure({})
    await relay.says('Reloaded the settings')
    expect(await queues(relay)).toEqual(waits)
  })

  it('is one of at most 100, and one for all others', async () => {
    const targets = Array.from({ length: 150 }, (_, i) => [`*=http://127.0.0.1:${i + 1}/`, {}] as const)
    const now = Date.now()
    await fill(here, [
      { id: 'old', receivedAt: now - 3_600_000, forwards: Object.fromEntries(targets.slice(0, 120)) },
      { id: 'waits', receivedAt: now, forwards: Object.fromEntries(targets.slice(120)) },
    ])
    const relay = await here.serve('--metrics')
    const counts = await queues(relay)
    const oldest = (await readMetrics(relay.address))['relay_queue_oldest_seconds']?.values['target=others']
    expect(oldest).toBeGreaterThan(3599)
    expect(Object.keys(counts)).toHaveLength(101)
    expect(counts).toMatchObject({ others: 50 })
  })
})

describe('who may read /metrics', () => {
  const hosts = ['--allow-host', 'relay.example', '--inspect-host', 'metrics.example']
  const relay = fresh(() => here.serve('--metrics', ...hosts, '--public-url', 'https://public.example'))
  const ask = ({ port }: Serving, method: string, headers: Record<string, string> = {}) =>
    exchange(port, requestText(method, '/metrics', headers))
  const FORBIDDEN = { status: 403, body: '{"error":"Forbidden host"}' }

  it('is who names this machine, or a name that is set for it, whatever else the service answers to', async () => {
    for (const Host of ['127.0.0.1', 'localhost', '[::1]:8787', 'metrics.example:8787'])
      expect(await ask(relay, 'GET', { Host })).toMatchObject({ status: 200 })
    for (const Host of ['relay.example', 'public.example', 'evil.example', '10.0.0.1'])
      expect(await ask(relay, 'GET', { Host })).toMatchObject(FORBIDDEN)
    expect(await ask(relay, 'GET', { 'X-Forwarded-Host': 'public.example' })).toMatchObject(FORBIDDEN)
    expect(await ask(relay, 'GET', { 'X-Forwarded-Host': 'metrics.example' })).toMatchObject({ status: 200 })
  })

  it('only reads', async () => {
    expect(await ask(relay, 'HEAD')).toMatchObject({ status: 200, body: '' })
    const wrong = { status: 405, headers: { allow: 'GET, HEAD' }, body: '{"error":"Method not allowed"}' }
    for (const method of ['POST', 'PUT', 'DELETE', 'OPTIONS'])
      expect(await ask(relay, method)).toMatchObject(wrong)
  })
})
