import { existsSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, it } from 'vitest'
import { fixtureOf, startRelay } from '../../../src/testing/index.js'
import { emptyFolder } from '../../helpers/context.js'
import { attempt, delivery, failed, NOW, succeeded } from '../../journal/rig.js'
import { exampleShell, fill, startAppender, startCommand, URL_TARGET } from '../journal-rig.js'
import { shell } from '../rig.js'

const LINES = [
  '#1  2023-11-15 03:43:20  pull_request.opened  octo/demo#7   -',
  '#2  2023-11-15 03:44:20  push                 octo/demo     → http://localhost:3000/hook 200 38ms  2 duplicates',
  '#3  2023-11-15 03:45:20  issues.closed        octo/demo#12  → http://localhost:3000/hook 404 12.3s failed',
  '#4  2023-11-15 03:46:20  push                 -             → http://localhost:3000/hook waiting',
  String.raw`#5  2023-11-15 03:47:20  x\u{1b}[2J           octo/other#7  1 of 3 failed, 2 of 3 waiting`,
]

const BRANCH = 'refs/heads/main'

const numbersOf = (out: string): unknown[] =>
  out.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line).n]))

describe('relay log', () => {
  it('lists the journal in columns, oldest first, in local time, and nothing that rewrites the terminal', async () => {
    const here = await exampleShell()
    expect(await here.run(['log'])).toEqual({ code: 0, err: '', out: `${LINES.join('\n')}\n` })
  })

  it('shows the branch or tag where there is one', async () => {
    const here = shell()
    await fill(here, async (journal) => {
      await journal.append(delivery('a', { number: null, ref: BRANCH }))
      await journal.append(delivery('b', { number: null, event: 'create', ref: 'v1.0' }))
      await journal.append(delivery('c', { number: null, repo: null, ref: 'refs/tags/\u202e1' }))
      // Without one, as the entries that earlier versions of relay wrote.
      await journal.append(delivery('d', { number: null }))
    })
    expect((await here.run(['log'])).out.trimEnd().split('\n')).toEqual([
      '#1  2023-11-15 03:43:20  push    octo/demo  main  -',
      '#2  2023-11-15 03:43:20  create  octo/demo  v1.0  -',
      String.raw`#3  2023-11-15 03:43:20  push    \u{202e}1        -`,
      '#4  2023-11-15 03:43:20  push    octo/demo        -',
    ])
    const objects = (await here.run(['log', '--json'])).out.trimEnd().split('\n')
    expect(objects.map((line) => JSON.parse(line).ref)).toEqual([BRANCH, 'v1.0', 'refs/tags/\u202e1', null])
  })

  it('distinguishes ignored deliveries from those that no route takes', async () => {
    const home = emptyFolder()
    const routes = { forward: [], exec: ['ping=true'], ignore: ['issues.*'] }
    const place = { profile: 'default', folder: path.join(home, 'default'), store: 'file' } as const
    await using relay = await startRelay({ settings: { ...place, routes } })
    const here = shell({ RELAY_EXEC: 'ping=true' }, home)
    await relay.deliver(fixtureOf('issues'))
    await relay.deliver(fixtureOf('push'))
    const lines = (await here.run(['log'])).out.trimEnd().split('\n')
    expect(lines.map((line) => line.split('  ').at(-1))).toEqual(['ignored by issues.*', '-'])
    const objects = (await here.run(['log', '--json'])).out.trimEnd().split('\n')
    expect(objects.map((line) => JSON.parse(line).ignoredBy)).toEqual(['issues.*', null])
    let out = ''
    const stdout = { isTTY: true, columns: 120, write: (text: string | Uint8Array) => (out += String(text)) }
    await here.run(['log', '--color', 'never'], { stdout })
    const rows = out.split('\n').map((line) => line.split('  ').at(-1))
    expect(rows.slice(1, 3)).toEqual(['ignored by issues.*', 'no route'])
    const shown = async (n: string): Promise<string> => (await here.run(['show', n])).out
    expect(await shown('1')).toContain('\nforwarded to no target: ignored by issues.*\n')
    expect(await shown('2')).toContain('\nforwarded to no target: no route matched it when it came\n')
  })

  it('prints everything as JSON, in UTC, without the secrets of a target', async () => {
    const here = await exampleShell()
    const { code, out, err } = await here.run(['log', '--json', '--last', '4'])
    expect({ code, err }).toEqual({ code: 0, err: '' })
    expect(out.match(/canary/)).toBeNull()
    const [second, , , fifth] = out.split('\n').map((line): unknown => JSON.parse(line || 'null'))
    const target = {
      target: 'http://localhost:3000/hook',
      state: 'succeeded',
      reason: null,
      since: '2023-11-14T22:13:20.000Z',
      attempts: 1,
      outcome: 'succeeded',
      status: 200,
      ms: 38,
    }
    expect(second).toEqual({
      v: 1,
      type: 'delivery',
      n: 2,
      time: '2023-11-14T22:14:20.000Z',
      provider: 'github',
      delivery: 'b',
      event: 'push',
      action: null,
      repo: 'octo/demo',
      number: null,
      ref: null,
      verifiedBy: 'current',
      restored: null,
      unproved: false,
      editedFrom: null,
      duplicates: 2,
      ignoredBy: null,
      size: 7,
      targets: [target],
    })
    const unanswered = { outcome: null, status: null, ms: null, attempts: 0 }
    const waiting = { ...target, ...unanswered, state: 'waiting', since: '2023-11-14T22:17:20.000Z' }
    const exit = { state: 'failed', reason: 'exit code 1', outcome: 'refused', status: 1 }
    expect(fifth).toMatchObject({
      n: 5,
      event: 'x\u001b[2J',
      verifiedBy: 'previous',
      restored: null,
      unproved: false,
      editedFrom: null,
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
    const here = await exampleShell()
    const { code, out } = await here.run(['log', '--json', ...flags.split(' ')])
    expect({ code, numbers: numbersOf(out) }).toEqual({ code: 0, numbers })
  })

  it('--since shows what came last, also after the clock was set back', async () => {
    const here = shell()
    const minutes = [-120, -5, -90, -80]
    await fill(here, async (journal) => {
      for (const [i, minute] of minutes.entries())
        await journal.append(delivery(`${i}`, { receivedAt: Date.now() + minute * 60_000 }))
    })
    const { out } = await here.run(['log', '--since', '10m', '--json'])
    expect(numbersOf(out)).toEqual([2, 3, 4])
  })

  it('shows the last 20, and any number on demand, in columns that fit', async () => {
    const here = shell()
    await fill(here, async (journal) => {
      for (let i = 1; i <= 1005; i++) await journal.append(delivery(`${i}`, { number: i }))
    })
    const last = await here.run(['log'])
    expect(last.out.split('\n').slice(0, -1)).toEqual(Array.from({ length: 20 }, (_, i) => line(i + 986, 5)))
    const all = (await here.run(['log', '--last', '100000'])).out.split('\n').slice(0, -1)
    expect(all).toHaveLength(1005)
    // The columns are as wide as a page of 1,000 lines needs, and from then on as what follows needs.
    expect(all.at(0)).toBe(line(1, 5))
  })

  it('ends with 6 when nothing matches, and when there is no journal, which it does not make', async () => {
    const here = await exampleShell()
    const none = { code: 6, out: '', err: 'error: No delivery in the journal matches\n' }
    expect(await here.run(['log', '--event', 'ping'])).toEqual(none)
    expect(await here.run(['log', '--since', '1h'])).toEqual(none)
    expect(await here.run(['log', '--since', 'now', '--json'])).toEqual({
      code: 6,
      out: '',
      err: '{"v":1,"type":"error","code":"no_match","error":"No delivery in the journal matches"}\n',
    })
    expect(await here.run(['log', '--profile', 'other'])).toEqual({
      code: 2,
      out: '',
      err: 'error: There is no profile other. There are: default. relay serve --profile other creates it\n',
    })
    expect(existsSync(path.join(here.home, 'other'))).toBe(false)
    expect(await shell().run(['log'])).toEqual({
      code: 6,
      out: '',
      err: 'error: Profile default has no journal yet. relay serve creates it\n',
    })
  })

  it('reads the profile that is named', async () => {
    const here = await exampleShell()
    await fill(here, async (journal) => void (await journal.append(delivery('z'))), [], 'other')
    expect((await here.run(['log', '--profile', 'other'])).out).toBe(
      '#1  2023-11-15 03:43:20  push  octo/demo#7  -\n',
    )
  })

  it.each([
    ['--event pull_*', "Invalid match 'pull_*': write event or event.action, with * for all of a part"],
    ['--repo demo', '--repo: must be owner/name'],
    ['--last -1', '--last: must be a whole number'],
    ['--since yesterday', '--since: must be a duration such as 1h, a time such as 2026-01-31T12:00, or now'],
    ['--since 2023-13-01', '--since: must be a duration such as 1h, a time such as 2026-01-31T12:00, or now'],
  ])('refuses %s, exit 2', async (flags, message) => {
    const { code, out, err } = await (await exampleShell()).run(['log', ...flags.split(' ')])
    expect({ code, out }).toEqual({ code: 2, out: '' })
    expect(err).toBe(`error: ${message}\n`)
  })

  it('cannot read a journal that is in the memory of another process', async () => {
    const here = shell({ RELAY_STORE: 'memory' })
    expect(await here.run(['log'])).toEqual({
      code: 2,
      out: '',
      err: 'error: RELAY_STORE is memory: only relay serve itself can read that journal\n',
    })
  })
})

describe('relay log --follow', () => {
  it('prints what another process appends, each once, and ends with 0 at Ctrl-C', async () => {
    const here = shell()
    await using appender = await startAppender(here)
    const append = (id: number): Promise<void> =>
      appender.append(`${id}`, { event: id % 2 === 1 ? 'push' : 'ping' })
    for (let id = 1; id <= 5; id++) await append(id)
    const log = startCommand(here, ['log', '-f', '--event', 'push', '-n', '2', '--json'])
    for (let id = 6; id <= 40; id++) await append(id)
    const odd = Array.from({ length: 20 }, (_, i) => 1 + 2 * i)
    // Where the list ended and following began is as it happened to be; there is neither a gap nor a repetition.
    const [first = '{}'] = await log.lines(1)
    const numbers = odd.slice(odd.indexOf(JSON.parse(first).n))
    expect((await log.lines(numbers.length)).map((text): unknown => JSON.parse(text).n)).toEqual(numbers)
    log.interrupt()
    expect(await log.ended).toMatchObject({ code: 0, err: '' })
  })

  it('waits for a journal that is not there yet', async () => {
    const here = shell()
    const log = startCommand(here, ['log', '--follow'])
    await using appender = await startAppender(here)
    await appender.append('a', { receivedAt: NOW })
    expect(await log.lines(1)).toEqual(['#1  2023-11-15 03:43:20  push  octo/demo#7  -'])
    log.interrupt()
    expect(await log.ended).toMatchObject({ code: 0 })
  })

  it('prints an entry again when it is forwarded, fails, or arrives again', async () => {
    const here = shell()
    await using appender = await startAppender(here, [URL_TARGET])
    await appender.append('a', { receivedAt: NOW })
    const log = startCommand(here, ['log', '--follow'])
    const start = '#1  2023-11-15 03:43:20  push  octo/demo#7  → http://localhost:3000/hook'
    const lines = [`${start} waiting`]
    expect(await log.lines(1)).toEqual(lines)
    await appender.record(1, attempt(URL_TARGET, { outcome: 'refused', status: 404 }), failed)
    lines.push(`${start} 404 38ms failed`)
    expect(await log.lines(2)).toEqual(lines)
    await appender.record(1, attempt(URL_TARGET), succeeded)
    lines.push(`${start} 200 38ms`)
    expect(await log.lines(3)).toEqual(lines)
    await appender.append('a')
    lines.push(`${start} 200 38ms  1 duplicate`)
    expect(await log.lines(4)).toEqual(lines)
    log.interrupt()
    await log.ended
  })

  it('prints with --failed what fails later, and nothing else', async () => {
    const here = shell()
    await using appender = await startAppender(here, [URL_TARGET])
    for (const id of ['a', 'b']) await appender.append(id)
    const log = startCommand(here, ['log', '--follow', '--failed', '--json'])
    for (const id of ['c', 'd']) await appender.append(id)
    await appender.record(4, attempt(URL_TARGET), succeeded)
    await appender.record(3, attempt(URL_TARGET), failed)
    expect((await log.lines(1)).map((text): unknown => JSON.parse(text).n)).toEqual([3])
    await appender.record(2, attempt(URL_TARGET), succeeded)
    await appender.record(1, attempt(URL_TARGET), failed)
    expect((await log.lines(2)).map((text): unknown => JSON.parse(text).n)).toEqual([3, 1])
    log.interrupt()
    await log.ended
  })
})

function line(n: number, width: number): string {
  return `${`#${n}`.padEnd(width)}  2023-11-15 03:43:20  push  ${`octo/demo#${n}`.padEnd(14)}  -`
}
