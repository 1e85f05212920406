import { existsSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, it } from 'vitest'
import { fill, fillAttempts, type Filled, linesOf } from '../kit/journal.js'
import { place } from '../kit/place.js'
import { receiver } from '../kit/receiver.js'
import { fails, prints } from '../kit/run.js'
import { bare, example, lines, numbersOf, URL_TARGET } from './example.js'
import { shared } from './fixture.js'

const LINES = [
  '#1  2023-11-15 03:43:20  pull_request.opened  octo/demo#7   -',
  '#2  2023-11-15 03:44:20  push                 octo/demo     → http://localhost:3000/hook 200 38ms  2 duplicates',
  '#3  2023-11-15 03:45:20  issues.closed        octo/demo#12  → http://localhost:3000/hook 404 12.3s failed',
  '#4  2023-11-15 03:46:20  push                 -             → http://localhost:3000/hook waiting, no relay runs',
  String.raw`#5  2023-11-15 03:47:20  x\u{1b}[2J           octo/other#7  1 of 3 failed: deploy.sh; 2 of 3 waiting: localhost:3000 (no relay runs), example.com (no relay runs)`,
]

const BRANCH = 'refs/heads/main'

describe('relay log', () => {
  const here = shared(example)

  it('lists the journal in columns, oldest first, in local time, and nothing that rewrites the terminal', async () => {
    expect(await here.run('log')).toEqual(prints(`${LINES.join('\n')}\n`))
  })

  it('names each of several targets as the settings do', async () => {
    await using here = await bare({ env: { RELAY_FORWARD: 'app=http://localhost:3000/hook' } })
    const deploy = { status: 'failed', reason: 'exit code 1', attempts: [] } as const
    await fill(here, [{ id: 'a', forwards: { [URL_TARGET]: {}, 'push=exec:./deploy.sh': deploy } }])
    const line = '#1  2023-11-15 03:43:20  push  octo/demo#7  '
    expect((await here.run('log')).out).toBe(
      `${line}1 of 2 failed: deploy.sh; 1 of 2 waiting: app (no relay runs)\n`,
    )
  })

  it('shows the branch or tag where there is one', async () => {
    await using here = await bare()
    await fill(here, [
      { id: 'a', number: null, ref: BRANCH },
      { id: 'b', number: null, event: 'create', ref: 'v1.0' },
      { id: 'c', number: null, repo: null, ref: 'refs/tags/\u202e1' },
      { id: 'd', number: null },
    ])
    expect((await here.run('log')).out.trimEnd().split('\n')).toEqual([
      '#1  2023-11-15 03:43:20  push    octo/demo  main  -',
      '#2  2023-11-15 03:43:20  create  octo/demo  v1.0  -',
      String.raw`#3  2023-11-15 03:43:20  push    \u{202e}1        -`,
      '#4  2023-11-15 03:43:20  push    octo/demo        -',
    ])
    expect((await linesOf(here)).map(({ ref }) => ref)).toEqual([BRANCH, 'v1.0', 'refs/tags/\u202e1', null])
  })

  it('distinguishes ignored deliveries from those that no route takes', async () => {
    await using here = await place({ host: 'none', env: { RELAY_EXEC: 'ping=true' } })
    const relay = await here.serve('--ignore', 'issues')
    for (const event of ['issues', 'push']) await relay.deliver({ event })
    const lines = (await here.run('log')).out.trimEnd().split('\n')
    expect(lines.map((line) => line.split('  ').at(-1))).toEqual(['ignored by issues', '-'])
    expect((await linesOf(here)).map(({ ignoredBy }) => ignoredBy)).toEqual(['issues', null])
    const { out } = await here.runWith({ terminal: {} }, 'log', '--color', 'never')
    const rows = out.split('\n').map((line) => line.split('  ').at(-1))
    expect(rows.slice(1, 3)).toEqual(['ignored by issues', 'no route'])
    expect((await here.run('show', '1')).out).toContain('\nforwarded to no target: ignored by issues\n')
    expect((await here.run('show', '2')).out).toContain(
      '\nforwarded to no target: no route matched it when it came\n',
    )
  })

  it('cuts no letter of why an entry has no target, however narrow the terminal is', async () => {
    await using here = await bare({ env: { RELAY_EXEC: 'ping=true' } })
    const long = { event: 'pull_request_review', action: 'submitted', repo: 'octo/demonstration' }
    await fill(here, [{ id: 'a', ...long }])
    for (const columns of [60, 40]) {
      const { out } = await here.runWith({ terminal: { columns } }, 'log', '--color', 'never')
      expect(out.split('\n')[1]).toMatch(/ no route$/)
    }
  })

  it('prints everything as JSON, in UTC, without the secrets of a target', async () => {
    const { code, out, err } = await here.run('log', '--json', '--last', '4')
    expect({ code, err }).toEqual({ code: 0, err: '' })
    expect(out.match(/canary/)).toBeNull()
    const [second, , , fifth] = out.split('\n').map((line): unknown => JSON.parse(line || 'null'))
    const target = {
      target: 'http://localhost:3000/hook',
      state: 'succeeded',
      reason: null,
      waitsFor: null,
      since: '2023-11-14T22:13:20.000Z',
      attempts: 1,
      outcome: 'succeeded',
      status: 200,
      ms: 38,
    }
    const of = {
      provider: 'github',
      source: 'github',
      scheme: 'github',
      delivery: 'b',
      event: 'push',
      action: null,
      repo: 'octo/demo',
    }
    const rest = {
      number: null,
      ref: null,
      query: null,
      duplicates: 2,
      ignoredBy: null,
      size: 7,
      targets: [target],
    }
    const proof = { verifiedBy: 'current', restored: null, unproved: false, editedFrom: null }
    const time = '2023-11-14T22:14:20.000Z'
    expect(second).toEqual({ v: 1, type: 'delivery', n: 2, time, ...of, ...rest, ...proof })
    const unanswered = { outcome: null, status: null, ms: null, attempts: 0 }
    const waiting = {
      ...target,
      ...unanswered,
      state: 'waiting',
      waitsFor: 'no relay runs',
      since: '2023-11-14T22:17:20.000Z',
    }
    const exit = { state: 'failed', reason: 'exit code 1', outcome: 'refused', status: 1 }
    expect(fifth).toMatchObject({
      n: 5,
      event: 'x\u001b[2J',
      ...proof,
      verifiedBy: 'previous',
      targets: [
        waiting,
        { ...target, ...exit, target: 'push=exec:./deploy.sh' },
        { ...waiting, target: 'issues=https://***@example.com/x?…' },
      ],
    })
  })

  it.each<[string, number[]]>([
    ['--event push', [2, 4]],
    ['--event pull_request.* --event issues.closed', [1, 3]],
    ['--repo Octo/Other', [5]],
    ['--since 2023-11-15T03:46:20', [4, 5]],
    ['--since 2023-11-14T22:15:20Z', [3, 4, 5]],
    ['--since 2023-11-15', [1, 2, 3, 4, 5]],
    ['--failed', [3, 5]],
    ['--failed --last 1', [5]],
    ['--last 2 --event push --repo octo/demo', [2]],
  ])('%s: %j', async (flags, numbers) => {
    const { code, out } = await here.run('log', '--json', ...flags.split(' '))
    expect({ code, numbers: numbersOf(out) }).toEqual({ code: 0, numbers })
  })

  it('--since shows what came last, also after the clock was set back', async () => {
    await using here = await bare()
    for (const minute of [-120, -5, -90, -80])
      await fill(here, [{ id: `${minute}`, receivedAt: Date.now() + minute * 60_000 }])
    expect((await linesOf(here, '--since', '10m')).map(({ n }) => n)).toEqual([2, 3, 4])
  })

  it('lists what came since a day, in the words of a person', async () => {
    await using here = await bare()
    const hour = 3_600_000
    const ages = [72 * hour, 2 * hour, 0]
    await fill(
      here,
      ages.map((age, i) => ({ id: `${i}`, receivedAt: Date.now() - age })),
    )
    const since = async (day: string) => numbersOf((await here.run('log', '--json', '--since', day)).out)
    expect([await since('yesterday'), await since('1h')]).toEqual([[2, 3], [3]])
  })

  it('has the names of the targets also once relay has stopped, or serves others', async () => {
    await using here = await place({ host: 'none' })
    await using target = await receiver()
    const log = async (): Promise<string> =>
      (await here.runWith({ terminal: { columns: 100 } }, 'log', '--color', 'never')).out
    const relay = await here.serve('--forward', `backend=push=${target.url}`)
    await relay.deliver()
    await relay.object({ type: 'attempt', n: 1 })
    await relay.stop()
    expect(await log()).toContain(' backend ✓ 200')
    await here.serve('--forward', `other=issues=${target.url}`)
    expect(await log()).toContain(' backend ✓ 200')
  })

  it.each([80, 60, 50, 40])(
    'has the word for the state of a target whole in %i columns, and so has routes',
    async (columns) => {
      await using here = await place({ host: 'none' })
      const dead = 'http://127.0.0.1:9/hooks/of/the/service'
      const relay = await here.serve(
        '--forward',
        `backend-service=${dead}`,
        '--exec',
        'deploy-staging=issues=exit 3',
      )
      await relay.deliver({ id: '1', event: 'pull_request_review_comment' })
      await relay.deliver({ id: '2', event: 'issues' })
      await relay.objects({ type: 'attempt' }, 2)
      const { out } = await here.runWith({ terminal: { columns } }, 'log', '--color', 'never')
      const [, first = '', ...second] = out.trimEnd().split('\n').slice(0, -1)
      expect(first).toMatch(/◦ down(?::|$)/)
      expect(second.join(' ').replaceAll(/ +/g, ' ')).toMatch(/◦ (?:down|waiting) .*✗ exit 3\b/)
      for (const line of [first, ...second]) expect(line.length).toBeLessThanOrEqual(columns)
      const routes = await here.runWith({ terminal: { columns } }, 'routes', '--color', 'never')
      expect(routes.out.replaceAll(/\s+/g, ' ')).toContain(' down: connection refused, next try ')
    },
  )

  it('shows the last 20, and any number on demand, in columns that fit', async () => {
    await using here = await bare()
    const filled = Array.from({ length: 1005 }, (_, i) => ({ id: `${i + 1}`, number: i + 1 }))
    await fill(here, filled)
    const last = await here.run('log')
    expect(last.out.split('\n').slice(0, -1)).toEqual(Array.from({ length: 20 }, (_, i) => line(i + 986, 5)))
    const all = (await here.run('log', '--last', '100000')).out.split('\n').slice(0, -1)
    expect(all).toHaveLength(1005)
    // The columns are as wide as a page of 1,000 lines needs, and from then on as what follows needs.
    expect(all.at(0)).toBe(line(1, 5))
    expect(await here.start('log', '--last', '100000').stop('SIGINT')).toMatchObject({ code: 130, out: '' })
  })

  it('ends with 6 when nothing matches, and when there is no journal, which it does not make', async () => {
    const none = fails(6, 'No delivery in the journal matches')
    expect(await here.run('log', '--event', 'ping')).toEqual(none)
    expect(await here.run('log', '--since', '1h')).toEqual(none)
    expect(await here.run('log', '--profile', 'other')).toEqual(
      fails(2, 'There is no profile other. There are: default. relay serve --profile other creates it'),
    )
    expect(existsSync(path.join(here.home, 'other'))).toBe(false)
    await using empty = await bare()
    const unmade = 'Profile default has no journal yet. relay serve creates it'
    expect(await empty.run('log')).toEqual(fails(6, unmade))
  })
})

describe('relay log --follow', () => {
  it('prints what another process appends, each once, and ends with 0 at Ctrl-C', async () => {
    await using here = await bare()
    const append = (id: number): Promise<void> =>
      fill(here, [{ id: `${id}`, event: id % 2 === 1 ? 'push' : 'ping' }])
    for (let id = 1; id <= 5; id++) await append(id)
    const log = here.start('log', '-f', '--event', 'push', '-n', '2', '--json')
    for (let id = 6; id <= 40; id++) await append(id)
    const odd = Array.from({ length: 20 }, (_, i) => 1 + 2 * i)
    // Where the list ended and following began is as it happened to be; there is neither a gap nor a repetition.
    const [first = '{}'] = await lines(log, 1)
    const numbers = odd.slice(odd.indexOf(JSON.parse(first).n))
    expect((await lines(log, numbers.length)).map((text): unknown => JSON.parse(text).n)).toEqual(numbers)
    expect(await log.stop('SIGINT')).toMatchObject({ code: 0, err: '' })
  })

  it('waits for a journal that is not there yet', async () => {
    await using here = await bare()
    const log = here.start('log', '--follow')
    await fill(here, [{ id: 'a' }])
    expect(await lines(log, 1)).toEqual(['#1  2023-11-15 03:43:20  push  octo/demo#7  -'])
    expect(await log.stop('SIGINT')).toMatchObject({ code: 0 })
  })

  it('prints an entry again when it is forwarded, fails, or arrives again', async () => {
    await using here = await bare()
    await fill(here, [waits('a')])
    const log = here.start('log', '--follow')
    const start = '#1  2023-11-15 03:43:20  push  octo/demo#7  → http://localhost:3000/hook'
    const printed = [`${start} waiting`]
    expect(await lines(log, 1)).toEqual(printed)
    await fillAttempts(here, 1, URL_TARGET, FAILED)
    printed.push(`${start} 404 38ms failed`)
    expect(await lines(log, 2)).toEqual(printed)
    await fillAttempts(here, 1, URL_TARGET, SUCCEEDED)
    printed.push(`${start} 200 38ms`)
    expect(await lines(log, 3)).toEqual(printed)
    await fill(here, [waits('a')])
    printed.push(`${start} 200 38ms  1 duplicate`)
    expect(await lines(log, 4)).toEqual(printed)
    expect(await log.stop('SIGINT')).toMatchObject({ code: 0 })
  })
})

const waits = (id: string): Filled => ({ id, forwards: { [URL_TARGET]: {} } })
const REFUSED = { outcome: 'refused', status: 404 } as const
const FAILED = { status: 'failed', reason: 'answered 404', attempts: [REFUSED] } as const
const SUCCEEDED = { attempts: [{}] } as const

function line(n: number, width: number): string {
  return `${`#${n}`.padEnd(width)}  2023-11-15 03:43:20  push  ${`octo/demo#${n}`.padEnd(14)}  -`
}
