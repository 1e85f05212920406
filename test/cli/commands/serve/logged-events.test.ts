import { describe, expect, it } from 'vitest'
import { RelayError } from '../../../../src/base/errors.js'
import { createLiveOutput } from '../../../../src/old/commands/serve/live-output.js'
import { createOutput } from '../../../../src/old/output/output.js'
import { createRouting } from '../../../../src/dispatch/routes.js'
import { testContext } from '../../../helpers/context.js'
import { attempt, delivery, failed, NOW, succeeded } from '../../../journal/rig.js'

const routes = createRouting({
  forward: ['app=http://alice:secret@localhost:3000/hooks?key=secret'],
  exec: [],
  ignore: ['ping'],
})
const [APP] = routes.routes
const URL = 'https://smee.example/abc'
const TUNNEL = {
  state: 'connected',
  url: URL,
  since: NOW,
  why: null,
  attempt: 0,
  retryAt: null,
  roundTrip: null,
} as const

/** The objects on standard error for what `print` announces. */
function logged(print: (live: ReturnType<typeof createLiveOutput>) => void, quiet = false) {
  const { context, out, err } = testContext()
  const feed = { add: () => expect.fail('a line is drawn') }
  print(createLiveOutput(createOutput(context, { jsonLog: true, quiet }), { json: false, routes, feed }))
  expect(out()).toBe('')
  expect(err()).not.toContain('secret')
  return err()
    .split('\n')
    .filter(Boolean)
    .map((line): Record<string, unknown> => JSON.parse(line))
}

function attempted(live: ReturnType<typeof createLiveOutput>, more: object, forward = succeeded): void {
  if (!APP) throw new Error('unreachable: there is a route')
  const { body: _, ...entry } = delivery('one')
  live.onAttempt?.({
    n: 1,
    entry: { ...entry, n: 1, duplicates: 0 },
    route: APP,
    attempt: attempt(APP.id, more),
    forward,
  })
}

const receipt = { n: 1, duplicate: false, targets: [APP?.id ?? ''] }
const LINE = { v: 1, time: expect.stringMatching(/Z$/), level: 'info' }
const SUBJECT = { n: 1, event: 'push', action: null, repo: 'octo/demo', number: 7, ref: null }
const LABEL = 'http://***@localhost:3000/hooks?…'

describe('what happens while relay serves, as JSON messages', () => {
  it('is one line when a delivery arrives', () => {
    const fields = { provider: 'github', delivery: 'one', verifiedBy: 'current', restored: null }
    const rest = { unproved: false, editedFrom: null, duplicate: false, ignoredBy: null }
    expect(logged((live) => live.onDelivery?.(delivery('one'), receipt))).toEqual([
      { ...LINE, message: '#1 push octo/demo#7', type: 'delivery', ...SUBJECT, ...fields, ...rest },
    ])
    expect(
      logged((live) => live.onDelivery?.(delivery('one'), { n: 1, duplicate: true, targets: [] })),
    ).toMatchObject([{ message: '#1 push octo/demo#7: duplicate, delivery one', duplicate: true }])
    const pushed = delivery('one', { number: null, ref: 'refs/heads/main' })
    expect(logged((live) => live.onDelivery?.(pushed, receipt))).toMatchObject([
      { message: '#1 push octo/demo main' },
    ])
  })

  it('is one line for each attempt', () => {
    const fields = { type: 'attempt', ...SUBJECT, target: LABEL, name: 'app', delivery: 'one', retryAt: null }
    const refused = { outcome: 'refused', status: 410, ms: 5 } as const
    expect(
      logged((live) => {
        attempted(live, {})
        attempted(live, refused, failed)
      }),
    ).toEqual([
      {
        ...LINE,
        message: '#1 push octo/demo#7 → app 200 38ms',
        ...fields,
        outcome: 'succeeded',
        status: 200,
        ms: 38,
        error: null,
        state: 'succeeded',
        reason: null,
      },
      {
        ...LINE,
        level: 'warn',
        message: '#1 push octo/demo#7 → app 410 5ms',
        ...fields,
        ...refused,
        error: null,
        state: 'failed',
        reason: failed.reason,
      },
    ])
  })

  it('is one line for each change of a target, the tunnel and a hook', () => {
    const target = { id: APP?.id ?? '', label: APP?.label ?? '', queued: 3 }
    const error = new RelayError('forbidden', 'no access')
    const lines = logged((live) => {
      live.onTarget?.({ ...target, state: 'down', since: NOW, nextProbeAt: NOW + 1000 })
      live.onTarget?.({ ...target, state: 'up' })
      live.onTunnel?.(TUNNEL)
      live.onTunnel?.({ ...TUNNEL, state: 'waiting', why: 'it was silent', attempt: 1, retryAt: NOW })
      live.onHook?.({ repo: 'octo/demo', state: 'removed', url: URL })
      live.onHook?.({ repo: 'octo/demo', state: 'left', error })
    })
    const down = {
      state: 'down',
      queued: 3,
      since: '2023-11-14T22:13:20.000Z',
      nextTryAt: '2023-11-14T22:13:21.000Z',
    }
    expect(lines).toMatchObject([
      { level: 'warn', message: 'app is down', type: 'target', target: LABEL, name: 'app', ...down },
      { level: 'info', message: 'app is up', type: 'target', state: 'up', since: null, nextTryAt: null },
      { level: 'info', message: `tunnel connected: payload URL ${URL}`, type: 'tunnel', state: 'connected' },
      {
        level: 'warn',
        message: 'tunnel is down: it was silent; reconnecting',
        type: 'tunnel',
        state: 'waiting',
      },
      {
        level: 'info',
        message: 'hook of octo/demo removed',
        type: 'hook',
        repo: 'octo/demo',
        state: 'removed',
      },
      { level: 'warn', message: expect.stringContaining('no access'), type: 'hook', error: 'no access' },
    ])
  })

  it('is only what the user must know under --quiet', () => {
    const error = new RelayError('forbidden', 'no access')
    const lines = logged((live) => {
      live.onDelivery?.(delivery('one'), receipt)
      attempted(live, {})
      live.onTunnel?.(TUNNEL)
      live.onHook?.({ repo: 'octo/demo', state: 'removed', url: URL })
      live.onHook?.({ repo: 'octo/demo', state: 'left', error })
    }, true)
    expect(lines).toMatchObject([{ type: 'hook', state: 'left' }])
  })
})
