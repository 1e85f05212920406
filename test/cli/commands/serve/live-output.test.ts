import { describe, expect, it } from 'vitest'
import { createLiveOutput } from '../../../../src/old/commands/serve/live-output.js'
import type { Line } from '../../../../src/old/output/line.js'
import { createOutput } from '../../../../src/old/output/output.js'
import type { AttemptEvent } from '../../../../src/dispatch/dispatcher.js'
import { createRouting } from '../../../../src/dispatch/routes.js'
import type { Attempt, Forward } from '../../../../src/journal/types.js'
import { testContext } from '../../../helpers/context.js'
import { attempt, delivery, failed, succeeded, waiting } from '../../../journal/rig.js'
import { plain } from '../../rig.js'

const ROUTES = {
  forward: ['app=http://localhost:3000/hooks'],
  exec: ['deploy=push=./deploy.sh'],
  ignore: ['ping'],
}
const [APP, DEPLOY] = createRouting(ROUTES).routes
const DOWN = { outcome: 'unreachable', status: null, error: 'connection refused' } as const

/** Live output, and the lines that it shows. `isReachable`: lines can still change. */
function rig({ isReachable = true } = {}) {
  const blocks: (() => readonly Line[])[] = []
  const { context } = testContext()
  const live = createLiveOutput(createOutput(context), {
    json: false,
    routes: createRouting(ROUTES),
    feed: {
      add(draw) {
        const drawn = isReachable
          ? () => draw(Infinity)
          : (
              (lines) => () =>
                lines
            )(draw(Infinity))
        blocks.push(drawn)
        return { redraw: () => isReachable }
      },
    },
  })
  return {
    live,
    receive: (
      n: number,
      targets: readonly (typeof APP)[],
      more: Parameters<typeof delivery>[1] = {},
    ): void => {
      const ids = targets.map((route) => route?.id ?? '')
      live.onDelivery?.(delivery(`${n}`, more), { n, duplicate: false, targets: ids })
    },
    attempt: (n: number, route: typeof APP, made: Partial<Attempt>, forward: Forward): void => {
      if (!route) throw new Error('unreachable: there is a route')
      const { body: _, ...entry } = delivery(`${n}`)
      const event: AttemptEvent = {
        n,
        entry: { ...entry, n, duplicates: 0 },
        route,
        attempt: attempt(route.id, made),
        forward,
      }
      live.onAttempt?.(event)
    },
    target: (route: typeof APP, state: 'up' | 'down' | 'gone' | 'elsewhere', queued: number): void => {
      const { id = '', label = '' } = route ?? {}
      live.onTarget?.({
        id,
        label,
        state,
        queued,
        ...(state === 'down' && { nextProbeAt: Date.now() + 2000 }),
      })
    },
    /** Without the time of targets' lines, which is now. */
    lines: () =>
      blocks.flatMap((draw) =>
        draw().map((line) => plain(line).replace(/^(?!03:43)\d\d:\d\d:\d\d/, 'HH:MM:SS')),
      ),
  }
}

describe('the line of a delivery', () => {
  it('shows which targets another relay forwards to, and is complete without them', () => {
    const { receive, attempt: tried, target, lines } = rig()
    target(APP, 'elsewhere', 0)
    receive(1, [APP, DEPLOY])
    receive(2, [APP])
    tried(1, DEPLOY, { status: 0, answer: Buffer.of() }, succeeded)
    // Its queue has passed to this relay meanwhile.
    target(APP, 'up', 2)
    tried(1, APP, { status: 202 }, succeeded)
    receive(3, [APP])
    expect(lines()).toEqual([
      '03:43:20  #1   push                 octo/demo#7    app ◦ elsewhere  deploy ✓ 38ms',
      '03:43:20  #2   push                 octo/demo#7    app ◦ elsewhere',
      '03:43:20  #1   push                 octo/demo#7    app ✓ 202 38ms',
      '03:43:20  #3   push                 octo/demo#7    app ◦ waiting',
    ])
  })

  it('has every target, and below it what a command printed', () => {
    const { receive, attempt: tried, lines } = rig()
    receive(1, [APP, DEPLOY])
    expect(lines()).toEqual([
      '03:43:20  #1   push                 octo/demo#7    app ◦ waiting  deploy ◦ waiting',
    ])
    tried(1, APP, { status: 202 }, succeeded)
    tried(1, DEPLOY, { status: 0, answer: Buffer.from('50%\r100%\n\u001b[31mdone\u001b[0m\n') }, succeeded)
    expect(lines()).toEqual([
      '03:43:20  #1   push                 octo/demo#7    app ✓ 202 38ms  deploy ✓ 38ms',
      '          deploy │ 100%',
      '          deploy │ done',
    ])
  })

  it('shows eight lines of output, and how many there are', () => {
    const { receive, attempt: tried, lines } = rig()
    receive(1, [DEPLOY])
    tried(
      1,
      DEPLOY,
      { status: 1, answer: Buffer.from('x\n'.repeat(10)) },
      { ...failed, reason: 'exit code 1' },
    )
    expect(lines().slice(1)).toEqual([
      ...Array.from({ length: 8 }, () => '          deploy │ x'),
      '          deploy │ … 2 more lines',
    ])
  })

  it('says why it goes to no target', () => {
    const { live, receive, lines } = rig()
    live.onDelivery(delivery('1', { event: 'ping' }), {
      n: 1,
      duplicate: false,
      targets: [],
      ignoredBy: 'ping',
    })
    receive(2, [], { event: 'fork' })
    live.onDelivery(delivery('3'), { n: 1, duplicate: true, targets: [] })
    expect(lines().map((line) => line.slice(51))).toEqual([
      'ignored by ping',
      'no route',
      'duplicate, delivery 3',
    ])
  })

  it('is an object under --json, with the rule that ignored the delivery, and nothing else under --quiet', () => {
    const { context, out } = testContext()
    const output = createOutput(context, { quiet: true })
    const feed = {
      add(): never {
        throw new Error('no line is shown under --quiet')
      },
    }
    const live = createLiveOutput(output, { json: true, routes: createRouting(ROUTES), feed })
    live.onDelivery(delivery('1'), { n: 1, duplicate: false, targets: [], ignoredBy: 'ping' })
    live.onDelivery(delivery('2'), { n: 2, duplicate: false, targets: [] })
    const objects = out().trimEnd().split('\n')
    expect(objects.map((line) => JSON.parse(line).ignoredBy)).toEqual(['ping', null])
  })

  it('is followed by one for each target that ends later, when it cannot change any more', () => {
    const { receive, attempt: tried, lines } = rig({ isReachable: false })
    receive(1, [APP, DEPLOY])
    tried(1, APP, { outcome: 'retry', status: 500 }, waiting)
    tried(1, APP, { status: 200 }, succeeded)
    tried(1, DEPLOY, { status: 0, answer: Buffer.of() }, succeeded)
    const start = '03:43:20  #1   push                 octo/demo#7    '
    expect(lines()).toEqual([
      `${start}app ◦ waiting  deploy ◦ waiting`,
      `${start}app ✓ 200 38ms`,
      `${start}deploy ✓ 38ms`,
    ])
  })
})

describe('a target that goes down', () => {
  it('has one line, and another when it is back, with how many were forwarded', () => {
    const { receive, attempt: tried, target, lines } = rig({ isReachable: false })
    receive(1, [APP])
    tried(1, APP, DOWN, waiting)
    target(APP, 'down', 1)
    receive(2, [APP])
    receive(3, [APP])
    tried(1, APP, DOWN, waiting)
    target(APP, 'up', 2)
    tried(1, APP, {}, succeeded)
    tried(2, APP, { outcome: 'refused', status: 404 }, { ...failed, reason: 'answered 404' })
    tried(3, APP, {}, succeeded)
    const place = 'push                 octo/demo#7    '
    expect(lines()).toEqual([
      `03:43:20  #1   ${place}app ◦ waiting`,
      'HH:MM:SS  app is down: connection refused; 1 waiting, next try in 2s',
      `03:43:20  #2   ${place}app ◦ down`,
      `03:43:20  #3   ${place}app ◦ down`,
      'HH:MM:SS  app is back: forwarded 0 of 3 that waited',
      `03:43:20  #2   ${place}app ✗ 404 38ms`,
      'HH:MM:SS  app is back: forwarded 2 deliveries that waited, 1 failed',
    ])
  })

  it('counts what waited when it asks for a retry first', () => {
    const { attempt: tried, target, lines } = rig()
    target(APP, 'down', 1)
    tried(1, APP, { outcome: 'retry', status: 503 }, waiting)
    target(APP, 'up', 1)
    tried(1, APP, {}, succeeded)
    expect(lines()).toEqual([
      'HH:MM:SS  app is down: 1 waiting, next try in 2s',
      'HH:MM:SS  app is back: forwarded 1 delivery that waited',
    ])
  })

  it('is named in full when it is not configured any more', () => {
    const { target, lines } = rig()
    target(DEPLOY, 'gone', 2)
    target(DEPLOY, 'up', 0)
    expect(lines()).toEqual([
      'HH:MM:SS  deploy is no longer configured (push=exec:./deploy.sh): 2 waiting, 24 h at most',
      'HH:MM:SS  deploy is back',
    ])
  })
})

it('names targets again when the routes change', () => {
  const { live, receive, lines } = rig()
  live.setRoutes(createRouting({ ...ROUTES, forward: ['http://localhost:3000/hooks'] }))
  receive(1, [APP])
  expect(lines()[0]).toContain('localhost:3000 ◦ waiting')
})
