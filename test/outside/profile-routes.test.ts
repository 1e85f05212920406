import { describe, expect, it } from 'vitest'
import { place } from '../kit/place.js'
import { receiver, valuesOf } from '../kit/receiver.js'
import { fails, prints } from '../kit/run.js'
import { bare, objects } from './example.js'
import { fresh } from './fixture.js'

const target = fresh(() => receiver())
const here = fresh(() => place({ host: 'none' }))

const routes = async () => objects((await here.run('routes', '--json')).out)

describe('a route of the profile', () => {
  it('is used at once and after a restart, listed with where it is from, and gone when it is removed', async () => {
    const relay = await here.serve('--forward', 'issues=http://127.0.0.1:9/never')
    const route = `app=push=${target.url}/hooks?token=hidden`
    const added = await here.run('routes', 'add', route)
    const label = `push=${target.url}/hooks?…`
    expect({ ...added, err: added.err.replace(/\d+/, 'N') }).toEqual({
      code: 0,
      out: `Stored the route ${label}\n`,
      err: 'Process N forwards along it from now on\n',
    })
    await relay.deliver({ id: 'one' })
    await relay.object({ type: 'attempt', n: 1 })
    const listed = { v: 1, type: 'route', target: label, match: 'push', name: 'app', from: 'profile' }
    expect((await routes()).slice(1)).toEqual([expect.objectContaining({ ...listed, succeeded: 1 })])
    expect((await here.run('routes')).out).toContain(`app ${label} (of the profile)`)
    await relay.stop()
    expect(await routes()).toEqual([expect.objectContaining({ ...listed, state: 'idle' })])

    const again = await here.serve()
    await again.deliver({ id: 'two' })
    await target.has(2)
    expect((await here.run('routes', 'remove', 'app')).out).toBe(`Removed the route ${label}\n`)
    expect(await routes()).toEqual([])
    await again.deliver({ id: 'three' })
    await again.object({ type: 'delivery', n: 3 })
    expect(target.received).toHaveLength(2)
  })

  it('replaces the one of its name, and gives way to that of the settings', async () => {
    await here.run('routes', 'add', `app=push=${target.url}/old`)
    await here.run('routes', 'add', `app=push=${target.url}/new`)
    const relay = await here.serve()
    expect((await routes()).map(({ target: label }) => label)).toEqual([`push=${target.url}/new`])
    await relay.stop()
    await here.serve('--forward', `app=issues=${target.url}/set`)
    expect((await routes()).map(({ target: label, from }) => [label, from])).toEqual([
      [`issues=${target.url}/set`, undefined],
    ])
    // Another shell does not know the flags of the relay that runs.
    const { out, err } = await here.run('routes', 'add', `app=push=${target.url}/again`)
    expect([out, err.replace(/\d+/, 'N')]).toEqual([
      `Stored the route push=${target.url}/again\n`,
      'warning: the settings of process N have a route of that name or target, which counts instead\n',
    ])
  })

  it('has conditions, a time limit, headers and strict order, at once and after a restart', async () => {
    const answers = [500, 200, 200]
    await using slow = await receiver(() => ({ status: answers.shift() ?? 200 }))
    const env = { CI_KEY: 'a$b' }
    let relay = await here.serve()
    const flags = [
      '--where',
      'ref ~ ^refs/heads/',
      '--where',
      '@repo==octo/demo',
      '--timeout',
      '2m',
      '--ordered',
    ]
    const headers = ['--header', 'X-Key: Bearer ${CI_KEY}', '--header', 'X-Plain:$$1']
    const route = `app=push[ref!=refs/heads/dev]=${slow.url}`
    expect((await here.runWith({ env }, 'routes', 'add', route, ...flags, ...headers)).code).toBe(0)
    const listed = {
      match: 'push[ref!=refs/heads/dev][ref ~ ^refs/heads/][@repo==octo/demo]',
      from: 'profile',
    }
    const options = ['timeout 2m', 'ordered', 'header X-Key', 'header X-Plain']
    expect(await routes()).toEqual([expect.objectContaining({ ...listed, options })])
    const send = async (id: string, ref: string): Promise<void> => {
      const body = JSON.stringify({ ref, repository: { full_name: 'octo/demo' } })
      expect((await relay.deliver({ id, body })).status).toBe(200)
    }
    await send('dev', 'refs/heads/dev')
    await send('first', 'refs/heads/main')
    await send('second', 'refs/heads/main')
    await slow.has(3)
    const ids = () => slow.received.map((each) => valuesOf(each, 'X-GitHub-Delivery')[0])
    expect(ids()).toEqual(['first', 'first', 'second'])
    await relay.stop()
    relay = await here.serve()
    await send('third', 'refs/heads/main')
    await slow.has(4)
    expect(slow.received.map((each) => [valuesOf(each, 'X-Key'), valuesOf(each, 'X-Plain')])).toEqual(
      Array.from({ length: 4 }, () => [['Bearer a$b'], ['$1']]),
    )
    expect(relay.err + (await here.run('routes')).out).not.toContain('a$b')
  })

  it.each([
    [['--timeout', 'soon'], '--timeout: must be a duration such as 90s or 10m, up to 24d, or none'],
    [['--header', 'no colon'], '--header: must be a name, a colon and a value: "X-Key: 1"'],
    [['--header', 'X-Key: $UNSET_KEY'], '--header: the value of "X-Key" names UNSET_KEY, which is not set'],
    [
      ['--header', 'X-Key: $RELAY_WEBHOOK_SECRET'],
      '--header: the value of "X-Key" names RELAY_WEBHOOK_SECRET, a secret of relay, which goes to no target',
    ],
    [['--header', 'X-Key: a', '--header', 'x-key: b'], '--header: "x-key" is there twice'],
    [
      ['--header', 'Host: x'],
      'The headers of the route: "Host" is a header of the connection, or of relay itself',
    ],
    [['--where', 'ref'], '--where ref: expected ==, != or ~ at the end'],
  ])('is refused with %j', async (flags, why) => {
    expect(await here.run('routes', 'add', '3000', ...flags)).toEqual(fails(2, why))
    expect(await routes()).toEqual([])
  })

  it.each([
    ['push=./deploy.sh', "Invalid route: 'push=./deploy.sh' names no http:// or https:// address"],
    ['push=exec:./deploy.sh', 'Invalid route: '],
    ['no_such[=3000', 'The condition [=3000 has no ] at its end'],
  ])('is refused: %s', async (route, why) => {
    const { code, err } = await here.run('routes', 'add', route)
    expect([code, err]).toEqual([2, expect.stringContaining(why)])
    await here.serve()
    expect(await routes()).toEqual([])
  })

  it('is not stored beside one of the settings, nor in a memory that ends, and one that is not there is not removed', async () => {
    here.configure({ forward: [`app=${target.url}/set`] })
    const taken = 'The settings have a route called app already'
    expect((await here.run('routes', 'add', `app=push=${target.url}`)).err).toContain(taken)
    expect((await here.run('routes', 'add', `${target.url}/set`)).err).toContain(
      'The settings have a route to',
    )
    expect(await here.run('routes', 'remove', 'nobody')).toEqual(
      fails(2, 'The profile stores no route nobody. relay routes shows those that are of the profile'),
    )
    await using memory = await bare({ env: { RELAY_STORE: 'memory' } })
    expect(await memory.run('routes', 'add', '3000')).toEqual(
      fails(2, '--store memory would lose the route as soon as this command ends'),
    )
  })

  it('is stored where nothing runs, in words that say so', async () => {
    await using alone = await bare()
    expect(await alone.run('routes', 'add', '3000')).toEqual(
      prints('Stored the route http://localhost:3000\n'),
    )
    const shown = await alone.run('routes')
    expect(shown.out).toContain('http://localhost:3000 (of the profile)')
  })
})
