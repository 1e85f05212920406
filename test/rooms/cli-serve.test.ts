import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { RelayError } from '../../src/base/errors.js'
import type { Flags } from '../../src/cli/command.js'
import { Secret } from '../../src/base/secret.js'
import type { RouteSettings } from '../../src/base/settings.js'
import { EventItems } from '../../src/cli/commands/serve/event-items.js'
import { LiveOutput } from '../../src/cli/commands/serve/events.js'
import type { ServeItem } from '../../src/cli/commands/serve/items.js'
import { itemObject } from '../../src/cli/commands/serve/objects.js'
import type { Reloaded } from '../../src/events/status.js'
import { routeWarnings, watchSettings } from '../../src/cli/commands/serve/terminal.js'
import { loadCommands } from '../../src/cli/commands/index.js'
import { createProgram } from '../../src/cli/main.js'
import { localTime } from '../../src/cli/output/time.js'
import { openSettings } from '../../src/cli/settings/read.js'
import type { TargetStatus } from '../../src/dispatch/target.js'
import type { Route } from '../../src/dispatch/routes.js'
import { Routing } from '../../src/dispatch/routing.js'
import type { Attempt, Delivery, Forward, Receipt } from '../../src/journal/types.js'
import type { HookDelivery, RepoHook } from '../../src/codehost/host.js'
import type { HookEvent } from '../../src/events/hook-event.js'
import type { TunnelStatus } from '../../src/instance/protocol.js'
import { attempt, delivery, failed, NOW, succeeded, waiting } from './journal-rig.js'
import { testShell } from './cli-shell.js'

afterEach(() => void vi.useRealTimers())

const ROUTES = {
  forward: ['app=http://alice:secret@localhost:3000/hooks?key=secret'],
  exec: ['deploy=push=./deploy.sh'],
  ignore: ['ping'],
}
const [APP, DEPLOY] = new Routing(ROUTES).routes
const MOVED_ROUTES = { ...ROUTES, forward: ['http://localhost:3000/hooks'], exec: [] }
const MOVED = new Routing(MOVED_ROUTES)
const SECRETS = { current: new Secret('s') }
const RELOADED: Reloaded = { routes: 1, sources: [], changed: [], removed: [], restart: [], warnings: [] }
const DOWN = { outcome: 'unreachable', status: null, error: 'connection refused' } as const

const linesOf = (text: string): string[] => text.trimEnd().split('\n')

/** Lines and objects of what happens. */
function rig(options: Parameters<typeof testShell>[0] = {}) {
  const { shell, out, err } = testShell(options)
  const live = new LiveOutput(shell.out)
  const print = (item: ServeItem): void => {
    const object = itemObject(item)
    if (object) shell.out.object(object)
    live.print(item)
  }
  const events = new EventItems(print, new Routing(ROUTES))
  const receiveAs = (made: Delivery, receipt: Receipt): void =>
    events.onEvent({ type: 'delivery', delivery: made, receipt })
  const onTunnel = (tunnel: TunnelStatus): void => events.onEvent({ type: 'tunnel', tunnel })
  const onHook = (hook: HookEvent): void => events.onEvent({ type: 'hook', hook })
  const move = (routes: RouteSettings): void =>
    events.onEvent({ type: 'settings', settings: { routes, webhookSecrets: SECRETS }, reloaded: RELOADED })
  const receive = (
    n: number,
    routes: readonly (Route | undefined)[],
    { ignoredBy, ...more }: Parameters<typeof delivery>[1] & { readonly ignoredBy?: string } = {},
  ): void => {
    const targets = routes.flatMap((route) => route?.id ?? [])
    receiveAs(delivery(`${n}`, more), { n, duplicate: false, targets, ...(ignoredBy && { ignoredBy }) })
  }
  const repeat = (id: string, n: number): void => receiveAs(delivery(id), { n, duplicate: true, targets: [] })
  const tried = (n: number, route: Route | undefined, made: Partial<Attempt>, forward: Forward): void => {
    if (!route) throw new Error('unreachable: there is a route')
    const { body: _, ...entry } = delivery(`${n}`)
    const tries = { entry: { ...entry, n, duplicates: 0 }, attempt: attempt(route.id, made) }
    events.onEvent({ type: 'attempt', attempt: { n, route, forward, ...tries } })
  }
  const target = (route: Route | undefined, state: TargetStatus['state'], queued: number): void => {
    const { id = '', label = '' } = route ?? {}
    const next = state === 'down' ? { nextProbeAt: Date.now() + 2000, why: 'connection refused' } : {}
    events.onEvent({ type: 'target', target: { id, label, state, queued, ...next } })
  }
  /** Without the time of day. */
  const lines = (): string[] => linesOf(err()).map((line) => line.replace(/^\d\d:\d\d:\d\d {2}/, ''))
  const objects = (): { type: string }[] => linesOf(out()).map((line) => JSON.parse(line))
  return { onTunnel, onHook, move, err, receive, repeat, tried, target, lines, objects }
}

describe('the lines of relay serve', () => {
  it('show below an attempt what a command printed, eight lines of it, and how many there are', () => {
    const { tried, lines } = rig()
    tried(1, DEPLOY, { status: 0, answer: Buffer.from('50%\r100%\n\u001b[31mdone\u001b[0m\n') }, succeeded)
    const answer = Buffer.from('x\n'.repeat(10))
    tried(2, DEPLOY, { outcome: 'refused', status: 1, answer }, { ...failed, reason: 'exit code 1' })
    expect(lines()).toEqual([
      '#1  → deploy ✓ 38ms',
      '          deploy │ 100%',
      '          deploy │ done',
      '#2  → deploy ✗ exit 1 38ms',
      ...Array.from({ length: 8 }, () => '          deploy │ x'),
      '          deploy │ … 2 more lines',
    ])
  })

  it('say why a delivery goes to no target, or not yet', () => {
    const { receive, repeat, target, lines } = rig()
    receive(1, [], { event: 'ping', ignoredBy: 'ping' })
    receive(2, [], { event: 'fork', number: null, ref: 'refs/heads/main' })
    repeat('3', 1)
    receive(4, [APP], { headers: [['X-Relay-Edited', '2']] })
    target(APP, 'down', 1)
    target(DEPLOY, 'elsewhere', 0)
    receive(5, [APP])
    receive(6, [DEPLOY])
    expect(lines()).toEqual([
      '#1  ping  octo/demo#7  ignored by ping',
      '#2  fork  octo/demo  main  no route',
      '#1  push  octo/demo#7  duplicate, delivery 3',
      '#4  push  octo/demo#7  edited copy of #2',
      'app is down: connection refused; 1 waiting, next try in 2s',
      '#5  push  octo/demo#7  waits for app',
      '#6  push  octo/demo#7  forwarded by another relay',
    ])
  })

  it('say when a target goes down, not each probe, and when it is back with what waited', () => {
    const { receive, tried, target, lines } = rig()
    tried(1, APP, DOWN, waiting)
    target(APP, 'down', 1)
    tried(1, APP, DOWN, waiting)
    target(APP, 'up', 2)
    tried(1, APP, {}, succeeded)
    target(APP, 'down', 1)
    tried(1, APP, { outcome: 'retry', status: 503 }, waiting)
    receive(2, [APP])
    target(APP, 'up', 0)
    expect(lines()).toEqual([
      '#1  → app ◦ down',
      'app is down: connection refused; 1 waiting, next try in 2s',
      'app is back: forwarding 3 deliveries that waited',
      '#1  → app ✓ 200 38ms',
      'app is down: connection refused; 1 waiting, next try in 2s',
      '#1  → app ↻ 503 waiting',
      '#2  push  octo/demo#7',
      'app is back: forwarding 1 delivery that waited',
    ])
  })

  it('name a target in full that is not configured any more, and targets again when the routes change', () => {
    const { move, tried, target, lines } = rig()
    target(DEPLOY, 'gone', 2)
    target(DEPLOY, 'up', 0)
    move(MOVED_ROUTES)
    tried(1, MOVED.routes[0], {}, succeeded)
    expect(lines()).toEqual([
      'deploy is no longer configured (push=exec:./deploy.sh): 2 waiting, 24 h at most',
      'deploy is back',
      'Reloaded the settings: 1 routes; any other change needs a restart',
      '#1  → localhost:3000 ✓ 200 38ms',
    ])
  })

  it('are none under --quiet but problems of hooks, and objects of --json all the same', () => {
    const { receive, onHook, objects, err } = rig({ quiet: true, json: true })
    const error = new RelayError('forbidden', 'no access')
    receive(1, [APP])
    onHook({ repo: 'octo/demo', state: 'removed', url: 'https://smee.test/a' })
    onHook({ repo: 'octo/demo', state: 'left', error })
    expect(err()).toMatch(/^[\d:]+ {2}warning: the hook of octo\/demo could not be removed: no access\./)
    expect(objects().map(({ type }) => type)).toEqual(['delivery', 'hook', 'hook'])
    const other = rig({ quiet: true, jsonLog: true })
    other.onHook({ repo: 'octo/demo', state: 'left', error })
    expect(JSON.parse(other.err())).toMatchObject({ level: 'warn', type: 'hook' })
  })

  it('count duplicates that anybody can send, but for the first', () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
    const { repeat, lines } = rig()
    for (const id of ['a', 'b', 'c']) repeat(id, 7)
    vi.advanceTimersByTime(1000)
    expect(lines()).toEqual([
      '#7  push  octo/demo#7  duplicate, delivery a',
      'a duplicate … and 2 more like it in the last second',
    ])
  })
})

const CHANNEL = 'https://smee.io/Kf3v'
const CONNECTED: TunnelStatus = {
  source: 'github',
  state: 'connected',
  url: CHANNEL,
  since: NOW,
  why: null,
  attempt: 0,
  retryAt: null,
  roundTrip: null,
}
const LOST = { state: 'waiting', why: 'no traffic for 65 s', attempt: 3, retryAt: NOW + 4100 } as const
const MOVES = { ...LOST, why: 'it is at \u001b[2J', attempt: 1, retryAt: NOW + 1000 }

/** The last line and the last object of what happens. */
function reported(happen: (made: Pick<ReturnType<typeof rig>, 'onTunnel' | 'onHook'>) => void) {
  vi.useFakeTimers({ toFake: ['Date'], now: NOW })
  const { lines, objects, ...made } = rig({ json: true })
  happen(made)
  return { text: lines().at(-1), object: objects().at(-1) }
}

describe('a tunnel', () => {
  it.each<[string, Partial<TunnelStatus>, TunnelStatus | undefined]>([
    [`tunnel connected: payload URL ${CHANNEL}`, { roundTrip: 'ok' }, { ...CONNECTED, ...LOST }],
    [
      'tunnel does not work: a test message was lost: nothing came back within 10 s',
      { roundTrip: 'nothing came back within 10 s' },
      CONNECTED,
    ],
    ['tunnel is down: no traffic for 65 s; attempt 3 in 4s', LOST, CONNECTED],
    ['tunnel is down: no traffic for 65 s; reconnecting', { ...LOST, retryAt: NOW }, CONNECTED],
    [
      'tunnel of billing does not work: a test message was lost: x',
      { source: 'billing', roundTrip: 'x' },
      { ...CONNECTED, source: 'billing' },
    ],
    // The state of another source's is another.
    [
      `tunnel of billing connected: payload URL ${CHANNEL}`,
      { source: 'billing', roundTrip: 'ok' },
      CONNECTED,
    ],
    [`tunnel is down: it is at \\u{1b}[2J; attempt 1 in 1s; payload URL ${CHANNEL}`, MOVES, undefined],
  ])('%s', (text, change, before) => {
    const { text: last } = reported(({ onTunnel }) => {
      if (before) onTunnel(before)
      onTunnel({ ...CONNECTED, ...change })
    })
    expect(last).toBe(text)
  })

  it('is reported less often, the longer it is down, and not while it connects', () => {
    vi.useFakeTimers({ toFake: ['Date'], now: NOW })
    const { onTunnel, lines } = rig()
    onTunnel({ ...CONNECTED, state: 'connecting', url: null })
    for (let attempt = 1; attempt <= 1000; attempt++) {
      onTunnel({ ...CONNECTED, ...LOST, attempt })
      vi.advanceTimersByTime(2000)
    }
    // The first eight, and one in ten minutes.
    expect(lines()).toHaveLength(8 + 3)
  })

  it('is an object for a program', () => {
    const { object } = reported(({ onTunnel }) => onTunnel({ ...CONNECTED, ...LOST, roundTrip: 'ok' }))
    const times = { since: new Date(NOW).toISOString(), retryAt: new Date(NOW + 4100).toISOString() }
    expect(object).toEqual({
      v: 1,
      type: 'tunnel',
      source: 'github',
      url: CHANNEL,
      ...LOST,
      ...times,
      roundTrip: 'ok',
    })
  })
})

describe('what happens to a hook', () => {
  const repo = 'octo/demo'
  const WHY = 'GitHub failed (502)'
  const error = new RelayError('provider_failed', WHY)
  const [retried, ended] = [
    { error, retries: true },
    { error, retries: false },
  ]
  const [again, never] = [
    { error: WHY, retries: true },
    { error: WHY, retries: false },
  ]
  const common = {
    active: true,
    contentType: 'json',
    events: ['*'],
    hasSecret: true,
    lastResponse: undefined,
  }
  const hook: RepoHook = { ...common, id: 7, url: CHANNEL }
  const repaired = ['it was inactive', 'it sent form']
  const state = { created: false, repaired, permanent: false, found: false }
  const missed = { id: '3842091948768772096', guid: 'a1', event: 'issues', action: 'opened' }
  const deliveredAt = Date.UTC(2026, 10, 23, 7)
  const entry: HookDelivery = { ...missed, deliveredAt, statusCode: 502, status: 'failed to connect to host' }
  const why = 'it failed again'
  const result = { missing: 2, arrived: 1, failed: [{ delivery: entry, why }] }

  const made = `hook of ${repo} repaired (it was inactive, it sent form): ${CHANNEL}`
  const had = `2 missing, 1 arrived, 1 could not be had (issues.opened of ${localTime(deliveredAt)}: ${why})`
  const next = `The next serve --hook uses it again, and relay hook remove ${repo} removes it`
  const failures = [{ ...missed, deliveredAt: '2026-11-23T07:00:00.000Z', why }]

  it.each<[HookEvent, string, Record<string, unknown>]>([
    [
      { repo, state: 'ready', hook: { ...state, hook, former: [], hasNewSecret: false } },
      made,
      { ...state, id: 7, url: CHANNEL },
    ],
    [{ repo, state: 'failed', ...retried }, `warning: no hook of ${repo} yet: ${WHY}`, again],
    [{ repo, state: 'failed', ...ended }, `warning: no hook of ${repo}: ${WHY}`, never],
    [{ repo, state: 'missing', count: 40 }, `catching up with ${repo}: 40 missing`, { missing: 40 }],
    [
      { repo, state: 'caught up', result },
      `warning: caught up with ${repo}: ${had}. relay doctor checks the hook; relay catch-up asks again`,
      { ...result, failed: failures },
    ],
    [
      { repo, state: 'not caught up', ...retried },
      `warning: could not catch up with ${repo} yet: ${WHY}`,
      again,
    ],
    [{ repo, state: 'removed', url: CHANNEL }, `hook of ${repo} removed`, { url: CHANNEL }],
    [
      { repo, state: 'left', error },
      `warning: the hook of ${repo} could not be removed: ${WHY}. ${next}`,
      { error: WHY },
    ],
  ])('%j', (event, text, fields) => {
    const object = { v: 1, type: 'hook', repo, state: event.state, ...fields }
    expect(reported(({ onHook }) => onHook(event))).toEqual({ text, object })
  })
})

const TWICE = 'go twice to http://localhost:3000. Remove one of the routes'

it.each<[{ forward: string[] }, string[]]>([
  [
    { forward: ['3000', 'http://localhost:3000'] },
    ['--forward: http://localhost:3000 is there twice, and gets each delivery once. Remove one'],
  ],
  [{ forward: ['3000', 'push=3000'] }, [`--forward: deliveries that fit both push and * ${TWICE}`]],
  [
    { forward: ['push=3000', 'push.*=3000'] },
    [`--forward: deliveries that fit both push.* and push ${TWICE}`],
  ],
  [{ forward: ['3000', '3001', 'push=3002', 'issues=3002'] }, []],
])('warns of the routes %j: %j', (routes, warnings) => {
  const origins = { forward: { kind: 'flag', text: '--forward' } } as const
  expect(
    routeWarnings(
      { ...routes, exec: [], ignore: [] },
      { provider: 'github', origins, sources: [], command: (line) => `relay ${line}` },
    ),
  ).toEqual(warnings)
})

describe('serve --tunnel', () => {
  const OWN = { RELAY_TUNNEL: 'http://127.0.0.1:3000/a' }
  const profiles = { work: { tunnel: 'https://smee.io/c' } }
  const FILE = { tunnel: 'https://smee.example.com/b', profiles }

  /** What it comes to, with the user's own file. */
  async function tunnelOf(line: string, env: Record<string, string> = {}, file: object = {}) {
    const { shell } = testShell({ env })
    writeFileSync(path.join(shell.configFolder, 'config.json'), JSON.stringify(file))
    let flags: Flags = {}
    const program = createProgram(
      shell,
      async (_, given) => void (flags = given),
      await loadCommands(['serve']),
    )
    await program.parseAsync(['serve', ...line.split(' ').filter(Boolean)], { from: 'user' })
    const settings = await openSettings(shell, flags)
    return (await settings.read()).values.tunnel
  }

  it.each<[string | undefined, line: string, env?: Record<string, string>, file?: object]>([
    [undefined, ''],
    ['https://smee.io', '--tunnel'],
    ['https://smee.io', '--tunnel --sandbox'],
    ['https://smee.io/Kf3v', '--tunnel https://smee.io/Kf3v/'],
    ['https://smee.example.com', '--tunnel=https://smee.example.com'],
    ['http://localhost:3000', '--tunnel http://localhost:3000'],
    [OWN.RELAY_TUNNEL, '--tunnel --metrics', OWN],
    ['new', '--tunnel new', OWN],
    [FILE.tunnel, '--tunnel', {}, FILE],
    [profiles.work.tunnel, '--tunnel', { RELAY_PROFILE: 'work' }, FILE],
    [OWN.RELAY_TUNNEL, '--tunnel', OWN, FILE],
    ['https://smee.io', '--tunnel', {}, { profiles }],
  ])('leads to %s: %j, %j, %j', async (tunnel, ...given) => {
    expect(await tunnelOf(...given)).toBe(tunnel)
  })

  it.each([
    ['http://smee.io/a', 'must be https, unless it is on this machine'],
    ['http://192.168.0.2:3000/a', 'must be https, unless it is on this machine'],
    ['http://localhost.example/a', 'must be https, unless it is on this machine'],
    ['smee.io/a', 'must be an absolute'],
  ])('is encrypted, unless the server is on this machine: %s', async (url, why) => {
    await expect(tunnelOf(`--tunnel ${url}`)).rejects.toThrow(`--tunnel: ${why}`)
  })
})

it('settings that change before relay serves are read again once it does', async () => {
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
