import { writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import path from 'node:path'
import { describe, expect, it } from 'vitest'
import { place, type Serving } from '../kit/place.js'
import { listening } from '../kit/ports.js'
import { receiver, type Reply } from '../kit/receiver.js'
import { fresh } from './fixture.js'

/** A minute of retries, and a probe each second, in a fraction of that. */
const LIMITS = { retries: [10, 10, 10, 10], probe: 20, http: 20_000 }

/** What `relay serve` says of attempts and targets, without times. */
const linesOf = ({ err }: Serving): string[] =>
  err
    .split('\n')
    .map((line) => line.replace(/^\d\d:\d\d:\d\d {2}/, '').replace(/ (?:[\d.]+s|\d+ms)\b/g, ' TIME'))
    .filter((line) => /→|\bis (?:down|back|no longer)\b/.test(line))

const here = fresh(() => place({ host: 'none' }))

describe('a target that is down, of relay serve', () => {
  /** Connections that end with their answer, so that none is used again. */
  const last = (status: number): Reply => ({ status, headers: { Connection: 'close' } })
  const DOWN = ['#1  → app ◦ down', 'app is down: connection refused; 1 waiting, next try in TIME']
  const ok = (n: number): string => `#${n}  → app ✓ 200 TIME`

  it.each<[what: string, answers: readonly Reply[], lines: readonly string[]]>([
    ['at once', [last(200), last(200)], ['app is back: forwarding 2 deliveries that waited', ok(1), ok(2)]],
    [
      'not while it only asks to be tried again',
      [last(503), last(503), last(200), last(200)],
      [
        '#1  → app ↻ 503 again at once',
        '#2  → app ↻ 503 again at once',
        'app is back: forwarding 2 deliveries that waited',
        ok(1),
        ok(2),
      ],
    ],
    [
      'once while it goes up and down',
      [1, 2, 3, 4, 5, 6].flatMap((n) => (n === 1 ? last(200) : ['reset', last(200)])),
      [
        'app is back: forwarding 6 deliveries that waited',
        ok(1),
        '#2  → app ◦ down',
        'app is down: connection closed before an answer; 5 waiting, next try in TIME',
        ok(2),
        ok(3),
        ok(4),
        ok(5),
        'app is back: forwarding 1 delivery that waited',
        ok(6),
      ],
    ],
  ])('is back: %s', async (_, answers, lines) => {
    await using target = await receiver()
    target.answers(...answers)
    await target.down()
    // One at a time, so that the lines have one order.
    here.configure({ routes: [{ name: 'app', forward: target.url, concurrency: 1 }] })
    const relay = await here.serveWith({ seams: { limits: LIMITS } })
    const count = answers.filter((answer) => typeof answer === 'object' && answer.status === 200).length
    for (let n = 1; n <= count; n++) await relay.deliver({ id: `${n}` })
    await relay.object({ type: 'target', state: 'down' })
    await target.up()
    await relay.object({ type: 'attempt', n: count, state: 'succeeded' })
    await relay.stop()
    expect(linesOf(relay)).toEqual([...DOWN, ...lines])
  })

  it('closes a connection that was used before: it is sent again, and is not down', async () => {
    await using target = await receiver()
    target.answers(200, 'reset')
    const relay = await here.serve('--forward', `app=${target.url}`)
    for (const id of ['1', '2']) await relay.deliver({ id })
    await relay.object({ type: 'attempt', n: 2, state: 'succeeded' })
    await relay.stop()
    expect(linesOf(relay)).toEqual([ok(1), '#2  → app ↻ connection closed again at once', ok(2)])
  })
})

it.each([
  ['never', 0, ': set https:// in the address if the server expects TLS'],
  ['before', 1, ''],
])('a target that hangs up and has %s answered: perhaps it expects TLS', async (_, count, hint) => {
  let left = count
  const server = createServer((request, response) => {
    if (left-- > 0) response.writeHead(200, { Connection: 'close' }).end()
    else request.resume().once('end', () => request.socket.destroy())
  })
  const target = await listening(server)
  const relay = await here.serve('--forward', `app=http://127.0.0.1:${target.port}`)
  for (const id of ['1', '2']) await relay.deliver({ id })
  const { waitsFor } = await relay.object({ type: 'target', state: 'down' })
  expect(waitsFor).toBe(`down: connection closed before an answer${hint}`)
  await target.down()
})

it('a delivery that waits at one of several targets names it', async () => {
  await using app = await receiver(503)
  await using other = await receiver()
  here.configure({
    routes: [
      { name: 'app', forward: app.url, ordered: true },
      { name: 'other', forward: other.url },
    ],
  })
  const relay = await here.serveWith({ seams: { limits: { retries: [60_000] } } })
  await relay.deliver({ id: '1', event: 'push' })
  await relay.object({ type: 'attempt', n: 1, name: 'app' })
  await relay.deliver({ id: '2', event: 'push' })
  await relay.says(/#2.*behind/)
  expect(relay.err).toMatch(/#2 {2}push {2}waits at app behind #1, tried again in \d+s$/m)
})

it.each([
  ['kill -9 $$', '✗ killed TIME, ended by SIGKILL', 'killed'],
  ['kill $$', '✗ killed TIME, ended by SIGTERM', 'killed'],
  ['exit 3', '✗ exit 3 TIME', 'exit 3'],
])('a command, %s: says how it has ended', async (command, line, word) => {
  const relay = await here.serve('--exec', `deploy=*=${command}`)
  await relay.deliver()
  await relay.object({ type: 'attempt', n: 1 })
  await relay.stop()
  expect(linesOf(relay)).toEqual([`#1  → deploy ${line}`])
  expect((await here.run('log')).out).toContain(` ${word} `)
  expect((await here.run('show', '1')).out).toContain(`  ${word} `)
})

it('a target that is no longer configured keeps its name, at the change and at later starts', async () => {
  const settings = (routes: object): void =>
    writeFileSync(path.join(here.cwd, 'relay.json'), JSON.stringify(routes))
  await using target = await receiver()
  await target.down()
  settings({ forward: [`app=push=${target.url}`] })
  const relay = await here.serve()
  await relay.deliver({ event: 'push' })
  await relay.object({ type: 'target', state: 'down' })
  settings({})
  expect(await relay.object({ type: 'target', state: 'gone' })).toMatchObject({ name: 'app' })
  const gone = `app is no longer configured (push=${target.url}): 1 waiting, 24 h at most`
  await expect.poll(() => linesOf(relay).at(-1)).toBe(gone)
  const listed = `0          0       1        not configured  app push=${target.url}\n`
  expect((await here.run('routes')).out).toContain(listed)
  await relay.stop()
  const later = await here.serve()
  await later.object({ type: 'target', state: 'gone' })
  await expect.poll(() => linesOf(later)).toEqual([gone])
  expect((await here.run('routes')).out).toContain(listed)
  expect((await here.run('skip', '1')).code).toBe(0)
  await later.object({ type: 'skipped' })
  await expect.poll(() => linesOf(later)).toEqual([gone, '#1  → app ✗ skipped'])
})
