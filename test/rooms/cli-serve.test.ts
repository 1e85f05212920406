import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { RelayError } from '../../src/base/errors.js'
import type { Flags } from '../../src/cli/command.js'
import { LiveOutput } from '../../src/cli/commands/serve/events.js'
import { routeWarnings, watchSettings } from '../../src/cli/commands/serve/terminal.js'
import { createProgram } from '../../src/cli/main.js'
import { localTime } from '../../src/cli/output/time.js'
import { openSettings } from '../../src/cli/settings/read.js'
import type { TargetStatus } from '../../src/dispatch/dispatcher.js'
import { createRouting, type Route } from '../../src/dispatch/routes.js'
import type { Attempt, Forward } from '../../src/journal/types.js'
import type { HookDelivery, RepoHook } from '../../src/codehost/host.js'
import type { HookEvent } from '../../src/serve/hook-event.js'
import type { TunnelStatus } from '../../src/tunnel/tunnel.js'
import { attempt, delivery, failed, NOW, succeeded, waiting } from './journal-rig.js'
import { testShell } from './cli-shell.js'

const ROUTES = {
  forward: ['app=http://alice:secret@localhost:3000/hooks?key=secret'],
  exec: ['deploy=push=./deploy.sh'],
  ignore: ['ping'],
}
const [APP, DEPLOY] = createRouting(ROUTES).routes
const DOWN = { outcome: 'unreachable', status: null, error: 'connection refused' } as const

/** Live output, and what happens. */
function rig(options: Parameters<typeof testShell>[0] = {}) {
  const { shell, out, err } = testShell(options)
  const live = new LiveOutput(shell, createRouting(ROUTES))
  return {
    live,
    out,
    err,
    receive: (
      n: number,
      targets: readonly (Route | undefined)[],
      more: Parameters<typeof delivery>[1] = {},
    ): void => {
      const ids = targets.flatMap((route) => route?.id ?? [])
      live.onDelivery(delivery(`${n}`, more), { n, duplicate: false, targets: ids })
    },
    attempt: (n: number, route: Route | undefined, made: Partial<Attempt>, forward: Forward): void => {
      if (!route) throw new Error('unreachable: there is a route')
      const { body: _, ...entry } = delivery(`${n}`)
      const attempted = attempt(route.id, made)
      live.onAttempt({
        n,
        entry: { ...entry, n, duplicates: 0 },
        route,
        attempt: attempted,
        forward,
      })
    },
    target: (route: Route | undefined, state: TargetStatus['state'], queued: number): void => {
      const { id = '', label = '' } = route ?? {}
      const next = state === 'down' ? { nextProbeAt: Date.now() + 2000 } : {}
      live.onTarget({ id, label, state, queued, ...next })
    },
    /** Without the time of day. */
    lines: () =>
      err()
        .trimEnd()
        .replaceAll(/^\d\d:\d\d:\d\d {2}/gm, '')
        .split('\n'),
  }
}

describe('the lines of relay serve', () => {
  it('are one when a delivery arrives, and one for each attempt, with what a command printed below it', () => {
    const { receive, attempt: tried, lines } = rig()
    receive(1, [APP, DEPLOY])
    receive(2, [APP], { number: null, ref: 'refs/heads/main' })
    tried(1, APP, { status: 202 }, succeeded)
    tried(2, APP, { outcome: 'retry', status: 503 }, waiting)
    tried(1, DEPLOY, { status: 0, answer: Buffer.from('50%\r100%\n\u001b[31mdone\u001b[0m\n') }, succeeded)
    tried(2, APP, { outcome: 'refused', status: 404 }, { ...failed, reason: 'answered 404' })
    expect(lines()).toEqual([
      '#1  push  octo/demo#7',
      '#2  push  octo/demo  main',
      '#1  → app ✓ 202 38ms',
      '#2  → app ↻ 503 waiting',
      '#1  → deploy ✓ 38ms',
      '          deploy │ 100%',
      '          deploy │ done',
      '#2  → app ✗ 404 38ms',
    ])
  })

  it('show eight lines of output, and how many there are', () => {
    const { attempt: tried, lines } = rig()
    const answer = Buffer.from('x\n'.repeat(10))
    tried(1, DEPLOY, { status: 1, answer }, { ...failed, reason: 'exit code 1' })
    expect(lines().slice(1)).toEqual([
      ...Array.from({ length: 8 }, () => '          deploy │ x'),
      '          deploy │ … 2 more lines',
    ])
  })

  it('say why a delivery goes to no target, or not yet', () => {
    const { live, receive, target, lines } = rig()
    live.onDelivery(delivery('1', { event: 'ping' }), {
      n: 1,
      duplicate: false,
      targets: [],
      ignoredBy: 'ping',
    })
    receive(2, [], { event: 'fork' })
    live.onDelivery(delivery('3'), { n: 1, duplicate: true, targets: [] })
    receive(4, [APP], { headers: [['X-Relay-Edited', '2']] })
    target(APP, 'down', 1)
    target(DEPLOY, 'elsewhere', 0)
    receive(5, [APP])
    receive(6, [DEPLOY])
    expect(lines()).toEqual([
      '#1  ping  octo/demo#7  ignored by ping',
      '#2  fork  octo/demo#7  no route',
      '#1  push  octo/demo#7  duplicate, delivery 3',
      '#4  push  octo/demo#7  edited copy of #2',
      'app is down: 1 waiting, next try in 2s',
      '#5  push  octo/demo#7  waits for app',
      '#6  push  octo/demo#7  forwarded by another relay',
    ])
  })

  it('say when a target goes down, not each probe, and when it is back with what waited', () => {
    const { receive, attempt: tried, target, lines } = rig()
    receive(1, [APP])
    tried(1, APP, DOWN, waiting)
    target(APP, 'down', 1)
    tried(1, APP, DOWN, waiting)
    tried(1, APP, DOWN, waiting)
    target(APP, 'up', 2)
    tried(1, APP, {}, succeeded)
    target(APP, 'down', 1)
    tried(1, APP, { outcome: 'retry', status: 503 }, waiting)
    target(APP, 'up', 1)
    expect(lines()).toEqual([
      '#1  push  octo/demo#7',
      '#1  → app ◦ down',
      'app is down: connection refused; 1 waiting, next try in 2s',
      'app is back: forwarding 3 deliveries that waited',
      '#1  → app ✓ 200 38ms',
      'app is down: 1 waiting, next try in 2s',
      '#1  → app ↻ 503 waiting',
      'app is back: forwarding 1 delivery that waited',
    ])
  })

  it('name a target in full that is not configured any more, and targets again when the routes change', () => {
    const { live, attempt: tried, target, lines } = rig()
    target(DEPLOY, 'gone', 2)
    target(DEPLOY, 'up', 0)
    live.setRoutes(createRouting({ ...ROUTES, forward: ['http://localhost:3000/hooks'] }))
    tried(1, createRouting({ ...ROUTES, forward: ['http://localhost:3000/hooks'] }).routes[0], {}, succeeded)
    expect(lines()).toEqual([
      'deploy is no longer configured (push=exec:./deploy.sh): 2 waiting, 24 h at most',
      'deploy is back',
      '#1  → localhost:3000 ✓ 200 38ms',
    ])
  })

  it('are none under --quiet but problems of hooks, and objects of --json all the same', () => {
    const { receive, live, out, err } = rig({ quiet: true, json: true })
    const error = new RelayError('forbidden', 'no access')
    receive(1, [APP])
    live.onHook({ repo: 'octo/demo', state: 'removed', url: 'https://smee.test/a' })
    live.onHook({ repo: 'octo/demo', state: 'left', error })
    expect(err()).toMatch(/^[\d:]+ {2}warning: the hook of octo\/demo could not be removed: no access\./)
    const objects = out().trimEnd().split('\n')
    expect(objects.map((line) => JSON.parse(line).type)).toEqual(['delivery', 'hook', 'hook'])
  })

  afterEach(() => void vi.useRealTimers())

  it('count duplicates that anybody can send, but for the first', () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
    const { live, lines } = rig()
    for (const id of ['a', 'b', 'c']) live.onDelivery(delivery(id), { n: 7, duplicate: true, targets: [] })
    vi.advanceTimersByTime(1000)
    expect(lines()).toEqual([
      '#7  push  octo/demo#7  duplicate, delivery a',
      'a duplicate … and 2 more like it in the last second',
    ])
  })
})

const CHANNEL = 'https://smee.io/Kf3v'
const CONNECTED: TunnelStatus = {
  state: 'connected',
  url: CHANNEL,
  since: NOW,
  why: null,
  attempt: 0,
  retryAt: null,
  roundTrip: null,
}
const LOST = { state: 'waiting', why: 'no traffic for 65 s', attempt: 3, retryAt: NOW + 4100 } as const

/** The last line and the last object of what happens. */
function reported(happen: (live: LiveOutput) => void): { text: string; object: unknown } {
  const { live, lines, out } = rig({ json: true })
  happen(live)
  return { text: lines().at(-1) ?? '', object: JSON.parse(out().trimEnd().split('\n').at(-1) ?? '') }
}

describe('a tunnel', () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ['Date'], now: NOW }))
  afterEach(() => void vi.useRealTimers())
  const silent = { roundTrip: 'nothing came back within 10 s' }

  it.each<[string, Partial<TunnelStatus>, TunnelStatus | undefined]>([
    [`tunnel connected: payload URL ${CHANNEL}`, {}, undefined],
    [`tunnel connected: payload URL ${CHANNEL}`, { roundTrip: 'ok' }, { ...CONNECTED, ...LOST }],
    ['tunnel works: a test message came back byte for byte', { roundTrip: 'ok' }, CONNECTED],
    ['tunnel does not work: a test message was lost: nothing came back within 10 s', silent, CONNECTED],
    ['tunnel is down: no traffic for 65 s; attempt 3 in 4s', LOST, CONNECTED],
    ['tunnel is down: no traffic for 65 s; reconnecting', { ...LOST, retryAt: NOW }, CONNECTED],
    [
      `tunnel is down: the server answers 301: it is at \\u{1b}[2J; attempt 1 in 1s; payload URL ${CHANNEL}`,
      { ...LOST, why: 'the server answers 301: it is at \u001b[2J', attempt: 1, retryAt: NOW + 1000 },
      undefined,
    ],
  ])('%s', (text, change, before) => {
    const { text: last } = reported(({ onTunnel }) => {
      if (before) onTunnel(before)
      onTunnel({ ...CONNECTED, ...change })
    })
    expect(last).toBe(text)
  })

  it('is reported less often, the longer it is down, and not while it connects', () => {
    const reported = (change: Partial<TunnelStatus>): number => {
      const { live, lines } = rig()
      live.onTunnel({ ...CONNECTED, state: 'connecting', url: null })
      for (let number = 1; number <= 40; number++)
        live.onTunnel({ ...CONNECTED, ...LOST, attempt: number, ...change })
      return lines().length
    }
    // Attempts 1 to 8, 10, 20, 30 and 40.
    expect(reported({})).toBe(12)
  })

  it('is an object for a program', () => {
    const { object } = reported(({ onTunnel }) => onTunnel({ ...CONNECTED, ...LOST, roundTrip: 'ok' }))
    expect(object).toEqual({
      v: 1,
      type: 'tunnel',
      state: 'waiting',
      url: CHANNEL,
      since: new Date(NOW).toISOString(),
      why: 'no traffic for 65 s',
      attempt: 3,
      retryAt: new Date(NOW + 4100).toISOString(),
      roundTrip: 'ok',
    })
  })
})

const hook: RepoHook = {
  id: 7,
  url: CHANNEL,
  active: true,
  contentType: 'json',
  events: ['*'],
  hasSecret: true,
  lastResponse: undefined,
}
const ready = { hook, created: true, repaired: [], permanent: false, found: false }
const missed: HookDelivery = {
  id: '3842091948768772096',
  guid: 'a1',
  event: 'issues',
  action: 'opened',
  deliveredAt: Date.UTC(2026, 10, 23, 7),
  statusCode: 502,
  status: 'failed to connect to host',
}
const error = new RelayError('provider_failed', 'GitHub failed (502)')
const failedAt = { error: 'GitHub failed (502)' }
const repo = 'octo/demo'
const made = { id: 7, url: CHANNEL, created: true, repaired: [], found: false, permanent: false }

describe('what happens to a hook', () => {
  it.each<[HookEvent, string, Record<string, unknown>, 'info' | 'warn']>([
    [{ repo, state: 'ready', hook: ready }, `hook of ${repo} created: ${CHANNEL}`, made, 'info'],
    [
      {
        repo,
        state: 'ready',
        hook: { ...ready, created: false, repaired: ['it was inactive', 'it sent form'] },
      },
      `hook of ${repo} repaired (it was inactive, it sent form): ${CHANNEL}`,
      { ...made, created: false, repaired: ['it was inactive', 'it sent form'] },
      'info',
    ],
    [
      { repo, state: 'failed', error, retries: true },
      `no hook of ${repo} yet: GitHub failed (502)`,
      { ...failedAt, retries: true },
      'warn',
    ],
    [
      { repo, state: 'failed', error, retries: false },
      `no hook of ${repo}: GitHub failed (502)`,
      { ...failedAt, retries: false },
      'warn',
    ],
    [{ repo, state: 'missing', count: 40 }, `catching up with ${repo}: 40 missing`, { missing: 40 }, 'info'],
    [
      { repo, state: 'caught up', result: { missing: 0, arrived: 0, failed: [] } },
      `caught up with ${repo}: nothing was missing`,
      { missing: 0, arrived: 0, failed: [] },
      'info',
    ],
    [
      {
        repo,
        state: 'caught up',
        result: { missing: 2, arrived: 1, failed: [{ delivery: missed, why: 'it failed again' }] },
      },
      `caught up with ${repo}: 2 missing, 1 arrived, 1 could not be had (issues.opened of ${localTime(missed.deliveredAt)}: it failed again). relay doctor checks the hook; relay catch-up asks again`,
      {
        missing: 2,
        arrived: 1,
        failed: [
          {
            id: missed.id,
            guid: 'a1',
            event: 'issues',
            action: 'opened',
            deliveredAt: '2026-11-23T07:00:00.000Z',
            why: 'it failed again',
          },
        ],
      },
      'warn',
    ],
    [
      { repo, state: 'not caught up', error, retries: true },
      `could not catch up with ${repo} yet: GitHub failed (502)`,
      { ...failedAt, retries: true },
      'warn',
    ],
    [{ repo, state: 'removed', url: CHANNEL }, `hook of ${repo} removed`, { url: CHANNEL }, 'info'],
    [
      { repo, state: 'left', error },
      `the hook of ${repo} could not be removed: GitHub failed (502). The next serve --hook uses it again, and relay hook remove ${repo} removes it`,
      failedAt,
      'warn',
    ],
  ])('%j', (event, text, object, level) => {
    const common = { v: 1, type: 'hook', repo, state: event.state }
    expect(reported(({ onHook }) => onHook(event))).toEqual({
      text: level === 'warn' ? `warning: ${text}` : text,
      object: { ...common, ...object },
    })
  })
})

describe('a warning about routes', () => {
  const ORIGINS = {
    forward: { kind: 'flag', text: '--forward' },
  } as const
  const warnings = (routes: { forward?: string[]; exec?: string[]; ignore?: string[] }): string[] =>
    routeWarnings({ forward: [], exec: [], ignore: [], ...routes }, 'github', ORIGINS)

  it('is for an event that the code host never sends', () => {
    expect(warnings({ forward: ['pul_request=3000'], ignore: ['check_rum', '*'] })).toEqual([
      '--forward: github sends no event pul_request (did you mean pull_request?)',
      'ignore: github sends no event check_rum (did you mean check_run?)',
    ])
  })

  it.each([
    [
      ['3000', 'http://localhost:3000'],
      'http://localhost:3000 is there twice, and gets each delivery once. Remove one',
    ],
    [
      ['3000', 'push=3000'],
      'deliveries that fit both push and * go twice to http://localhost:3000. Remove one of the routes',
    ],
    [
      ['push=3000', 'push.*=3000'],
      'deliveries that fit both push.* and push go twice to http://localhost:3000. Remove one of the routes',
    ],
  ])('is for %j', (forward, why) => {
    expect(warnings({ forward })).toEqual([`--forward: ${why}`])
  })

  it('is not for different targets or events', () => {
    expect(warnings({ forward: ['3000', '3001', 'push=3002', 'issues=3002'] })).toEqual([])
  })
})

/** What `--tunnel` comes to, with the user's own file. */
async function tunnelOf(
  args: readonly string[],
  env: Record<string, string> = {},
  file: object = {},
): Promise<string | undefined> {
  const { shell } = testShell({ env })
  writeFileSync(path.join(shell.configFolder, 'config.json'), JSON.stringify(file))
  let flags: Flags = {}
  await createProgram(shell, async (_, given) => void (flags = given)).parseAsync(['serve', ...args], {
    from: 'user',
  })
  return openSettings(shell, flags).read().values.tunnel
}

describe('serve --tunnel', () => {
  it.each([
    [[], undefined],
    [['--tunnel'], 'https://smee.io'],
    [['--tunnel', '--sandbox'], 'https://smee.io'],
    [['--tunnel', 'https://smee.io/Kf3v/'], 'https://smee.io/Kf3v'],
    [['--tunnel=https://smee.example.com'], 'https://smee.example.com'],
    [['--tunnel', 'http://localhost:3000'], 'http://localhost:3000'],
  ])('%j', async (args, tunnel) => {
    expect(await tunnelOf(args)).toBe(tunnel)
  })

  it('without a URL uses the channel of the environment or the user, and wins only over none', async () => {
    const own = { RELAY_TUNNEL: 'http://127.0.0.1:3000/a' }
    expect(await tunnelOf(['--tunnel', '--metrics'], own)).toBe(own.RELAY_TUNNEL)
    expect(await tunnelOf(['--tunnel', 'new'], own)).toBe('new')
    const file = { tunnel: 'https://smee.example.com/b', profiles: { work: { tunnel: 'https://smee.io/c' } } }
    expect(await tunnelOf(['--tunnel'], {}, file)).toBe('https://smee.example.com/b')
    expect(await tunnelOf(['--tunnel'], { RELAY_PROFILE: 'work' }, file)).toBe('https://smee.io/c')
    expect(await tunnelOf(['--tunnel'], own, file)).toBe(own.RELAY_TUNNEL)
    const other = { profiles: { work: file.profiles.work } }
    expect(await tunnelOf(['--tunnel'], {}, other)).toBe('https://smee.io')
  })

  it('is encrypted, unless the server is on this machine', async () => {
    for (const server of ['smee.io', '192.168.0.2:3000', 'localhost.example'])
      await expect(tunnelOf(['--tunnel', `http://${server}/a`])).rejects.toThrow(
        '--tunnel: must be https, unless it is on this machine',
      )
    await expect(tunnelOf(['--tunnel', 'smee.io/a'])).rejects.toThrow('--tunnel: must be an absolute')
  })
})

describe('settings', () => {
  it('that change before relay serves are read again once it does', async () => {
    const { shell } = testShell()
    const file = path.join(shell.cwd, 'relay.json')
    const reloaded = { early: 0, late: 0 }
    using late = watchSettings(shell)
    using early = watchSettings(shell)
    early.start(() => reloaded.early++)
    writeFileSync(file, '{}')
    await expect.poll(() => reloaded).toEqual({ early: 1, late: 0 })
    late.start(() => reloaded.late++)
    await expect.poll(() => reloaded).toEqual({ early: 1, late: 1 })
    writeFileSync(file, '{ }')
    await expect.poll(() => reloaded).toEqual({ early: 2, late: 2 })
  })
})
