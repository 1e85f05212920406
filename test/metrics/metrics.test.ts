import { describe, expect, it } from 'vitest'
import { openDatabase } from '../../src/store/open.js'
import { breakable } from '../helpers/breakable.js'
import { exchange, requestText } from '../helpers/http.js'
import { readMetrics } from '../helpers/metrics.js'
import { githubDelivery, post } from '../helpers/delivery.js'
import { closedPort } from '../helpers/scripted-server.js'
import { startSmee } from '../helpers/smee-server.js'
import { startTarget } from '../helpers/target.js'
import { openRig } from '../inspector/rig.js'
import { RecordingLog } from '../oauth/rig.js'

describe('GET /metrics', () => {
  it('counts deliveries by result, forwards by target and status, and shows what waits', async () => {
    await using inner = await openDatabase({ kind: 'memory', folder: '' })
    const database = breakable(inner)
    await using target = await startTarget()
    target.answers(200, 410)
    const down = await closedPort()
    const routes = {
      forward: [`app=${target.url}`, `push=http://localhost:${down}/secret?key=secret`],
      exec: [],
      ignore: [],
    }
    await using rig = await openRig({ metrics: true, maxBody: 100, routes }, { database })
    const send = async (options = {}) => (await post(`${rig.url}/webhook`, githubDelivery(options))).status
    expect(await send({ id: 'first', event: 'ping' })).toBe(200)
    expect(await send({ id: 'first', event: 'ping' })).toBe(200)
    await target.has(1)
    expect(await send({ id: 'second' })).toBe(200)
    await target.has(2)
    expect(await send({ secret: 'another' })).toBe(401)
    expect(await send({ set: { 'X-Hub-Signature-256': undefined } })).toBe(401)
    expect(await send({ body: '{' })).toBe(400)
    expect(await send({ body: 'x'.repeat(101) })).toBe(413)
    expect((await post(`${rig.url}/hooks`, githubDelivery())).status).toBe(404)
    database.now('fails')
    expect(await send()).toBe(503)
    database.now('works')

    const ended = async () => (await readMetrics(rig.url))['relay_forwards_total']?.values
    const unnamed = `localhost:${down}`
    await expect.poll(ended).toEqual({
      'target=app status=succeeded': 1,
      'target=app status=failed': 1,
      [`target=${unnamed} status=succeeded`]: 0,
      [`target=${unnamed} status=failed`]: 0,
    })
    const metrics = await readMetrics(rig.url)
    expect(metrics['relay_deliveries_total']).toEqual({
      type: 'COUNTER',
      values: {
        'result=stored via=http': 2,
        'result=duplicate via=http': 1,
        'result=unavailable via=http': 1,
      },
    })
    expect(metrics['relay_deliveries_refused_total']).toEqual({
      type: 'COUNTER',
      values: {
        'reason=no_signature': 1,
        'reason=invalid_signature': 1,
        'reason=invalid_event': 1,
        'reason=too_large': 1,
        'reason=wrong_path': 1,
      },
    })
    expect(metrics['relay_queue_deliveries']).toEqual({
      type: 'GAUGE',
      values: { 'target=app': 0, [`target=${unnamed}`]: 1 },
    })
    expect(metrics['relay_queue_oldest_seconds']?.values).toEqual({
      'target=app': 0,
      [`target=${unnamed}`]: expect.toSatisfy((age: number) => age > 0 && age < 600),
    })
    expect(metrics['relay_attempt_duration_seconds_count']?.values).toEqual({
      'target=app': 2,
      [`target=${unnamed}`]: expect.toSatisfy((count: number) => count > 0),
    })
    expect(metrics['relay_attempt_duration_seconds_bucket']?.values).toMatchObject({
      'le=600 target=app': 2,
      'le=+Inf target=app': 2,
    })
    expect(metrics['relay_storage_duration_seconds_count']?.values).toEqual({
      // With the one that could not be stored.
      'operation=store': 4,
      'operation=record': expect.toSatisfy((count: number) => count >= 3),
    })
    expect(metrics['relay_ready']).toEqual({ type: 'GAUGE', values: { '': 1 } })
    expect(metrics['relay_tunnel_connected']).toEqual({ type: 'GAUGE', values: {} })
    expect(metrics['nodejs_eventloop_lag_p99_seconds']?.type).toBe('GAUGE')
    expect(metrics['process_resident_memory_bytes']?.values['']).toBeGreaterThan(1_000_000)
    expect(await (await fetch(`${rig.url}/metrics`)).text()).not.toContain('secret')
  })

  it('shows whether the tunnel is connected, and counts what comes through it', async () => {
    await using smee = await startSmee()
    await using rig = await openRig({ metrics: true, tunnel: smee.channel })
    const tunnel = async () => (await readMetrics(rig.url))['relay_tunnel_connected']?.values['']
    await expect.poll(tunnel).toBe(1)
    await post(smee.channel, githubDelivery({ body: '{"ref":"refs/heads/main","commits":[]}' }))
    const deliveries = async () => (await readMetrics(rig.url))['relay_deliveries_total']?.values
    await expect
      .poll(deliveries)
      .toMatchObject({ 'result=stored via=tunnel': 1, 'result=stored via=http': 0 })
    await smee[Symbol.asyncDispose]()
    await expect.poll(tunnel).toBe(0)
  })

  it('reads the queues once for all that ask at a time; without them, it answers all the rest in time', async () => {
    await using inner = await openDatabase({ kind: 'memory', folder: '' })
    let mode: 'works' | 'hangs' | 'fails' = 'works'
    let reads = 0
    const query: typeof inner.sql.query = async (sql, values) => {
      if (!sql.includes("status = 'waiting' GROUP BY")) return inner.sql.query(sql, values)
      reads++
      if (mode === 'hangs') await new Promise(() => {})
      return inner.sql.query(mode === 'fails' ? 'not sql' : sql, values)
    }
    const log = new RecordingLog()
    const database = { ...inner, sql: { ...inner.sql, query } }
    const routes = { forward: [`app=${await closedPort()}`], exec: [], ignore: [] }
    await using working = await openRig({ metrics: true, routes }, { database })
    const all = await Promise.all(Array.from({ length: 20 }, () => readMetrics(working.url)))
    expect(reads).toBe(1)
    expect(all.map((one) => one['relay_queue_deliveries']?.values)).toEqual(
      all.map(() => ({ 'target=app': 0 })),
    )
    await working[Symbol.asyncDispose]()
    for (mode of ['fails', 'hangs'] as const) {
      await using rig = await openRig({ metrics: true, routes }, { database, log })
      const metrics = await readMetrics(rig.url)
      expect(metrics['relay_queue_deliveries']?.values).toEqual({})
      expect(metrics['relay_queue_oldest_seconds']?.values).toEqual({})
      expect(metrics['relay_ready']?.values).toEqual({ '': 1 })
    }
    expect(log.lines.filter((line) => line.includes('/metrics'))).toEqual([
      expect.stringMatching(/^warn \/metrics has no queues: The database /),
      'warn /metrics has no queues: Timed out',
    ])
  })

  it('says that deliveries cannot be taken while storage fails', async () => {
    await using inner = await openDatabase({ kind: 'memory', folder: '' })
    const database = breakable(inner)
    await using rig = await openRig({ metrics: true }, { database })
    database.now('fails')
    const ready = async () => (await readMetrics(rig.url))['relay_ready']?.values
    await expect.poll(ready).toEqual({ '': 0 })
  })
})

describe('who may read /metrics', () => {
  const ask = (url: string, method: string, headers: Record<string, string> = {}) =>
    exchange(Number(new URL(url).port), requestText(method, '/metrics', headers))
  const FORBIDDEN = { status: 403, body: '{"error":"Forbidden host"}' }

  it('is who names this machine, or a name that is set for it, whatever else the service answers to', async () => {
    await using rig = await openRig({
      metrics: true,
      allowedHosts: ['relay.example'],
      publicUrl: 'https://public.example',
      inspectHosts: ['metrics.example'],
    })
    for (const Host of ['127.0.0.1', 'localhost', '[::1]:8787', 'metrics.example:8787'])
      expect(await ask(rig.url, 'GET', { Host })).toMatchObject({ status: 200 })
    for (const Host of ['relay.example', 'public.example', 'evil.example', '10.0.0.1'])
      expect(await ask(rig.url, 'GET', { Host })).toMatchObject(FORBIDDEN)
    expect(await ask(rig.url, 'GET', { 'X-Forwarded-Host': 'public.example' })).toMatchObject(FORBIDDEN)
    expect(await ask(rig.url, 'GET', { 'X-Forwarded-Host': 'metrics.example' })).toMatchObject({
      status: 200,
    })
  })

  it('only reads', async () => {
    await using rig = await openRig({ metrics: true })
    expect(await ask(rig.url, 'HEAD')).toMatchObject({ status: 200, body: '' })
    for (const method of ['POST', 'PUT', 'DELETE', 'OPTIONS'])
      expect(await ask(rig.url, method)).toMatchObject({
        status: 405,
        headers: { allow: 'GET, HEAD' },
        body: '{"error":"Method not allowed"}',
      })
  })

  it('is nobody while they are off', async () => {
    await using rig = await openRig()
    expect(await ask(rig.url, 'GET')).toMatchObject({ status: 404, body: '{"error":"Not found"}' })
    expect(await ask(rig.url, 'POST')).toMatchObject({ status: 404 })
  })
})
