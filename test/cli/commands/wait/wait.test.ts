import { readdirSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { RelayError } from '../../../../src/base/errors.js'
import { wait } from '../../../../src/cli/commands/wait/declaration.js'
import { exampleShell, startAppender, startCommand } from '../../journal-rig.js'
import { parsed, shell } from '../../rig.js'

const FIRST =
  '#3  2023-11-15 03:45:20  issues.closed  octo/demo#12  → http://localhost:3000/hook 404 12.3s failed\n'

const ALONE = 'No relay is running for profile default; waiting all the same\n'

describe('relay wait', () => {
  it('waits for what came in the last 10 seconds, or comes', async () => {
    expect(await parsed(wait, ['push', '--where', 'a==1', '--where', 'b==2'])).toEqual([
      'push',
      { since: '10s', where: ['a==1', 'b==2'] },
    ])
  })

  it('prints the first that came since', async () => {
    const here = await exampleShell()
    expect(await here.run(['wait', 'issues.*', '--since', '2023-11-14'])).toEqual({
      code: 0,
      out: FIRST,
      err: '',
    })
    const { out } = await here.run(['wait', 'push', '--since', '2023-11-15T03:45:00', '--json'])
    expect(JSON.parse(out)).toMatchObject({ v: 1, n: 4, delivery: 'd', payload: null })
    const { out: whole } = await here.run(['wait', 'pull_request', '--since', '2023-11-14', '--json'])
    expect(whole).toBe((await here.run(['show', '1', '--json'])).out)
  })

  /** Each delivery comes so many milliseconds before or after the command is started. */
  it.each([-400, -100, -20, 0, 5, 10, 20, 40, 80, 120, 160, 250, 400])(
    'finds what comes %i ms after it is started, once and soon',
    async (offset) => {
      const here = shell()
      await using appender = await startAppender(here)
      await appender.append('other', { event: 'ping' })
      const append = (): Promise<void> => appender.append('wanted', { payload: { sha: `at ${offset}` } })
      if (offset < 0) await append().then(() => pause(-offset))
      const wait = here.run(['wait', 'push', '--where', `sha==at ${offset}`, '--timeout', '20s', '--json'])
      if (offset >= 0) await pause(offset).then(append)
      const there = performance.now()
      const { code, out, err } = await wait
      expect(performance.now() - there).toBeLessThan(5000)
      expect({ code, err }).toEqual({ code: 0, err: expect.stringMatching(/^(No relay is running.*\n)?$/) })
      expect(JSON.parse(out)).toMatchObject({ n: 2, payload: { sha: `at ${offset}` } })
    },
  )

  it('misses none of a stream, whenever it is started', async () => {
    const here = shell()
    await using appender = await startAppender(here)
    const waits = []
    for (let i = 0; i < 30; i++) {
      const wait = here.run(['wait', `*.number-${i}`, '--json', '--timeout', '20s'])
      await appender.append(`${i}`, { action: `number-${i}` })
      waits.push(wait)
    }
    const found = (await Promise.all(waits)).map(({ code, out }) => [code, JSON.parse(out).n])
    expect(found).toEqual(Array.from({ length: 30 }, (_, i) => [0, i + 1]))
  })

  it('looks back as far as --since and no further', async () => {
    const here = shell()
    await using appender = await startAppender(here)
    await appender.append('old', { receivedAt: Date.now() - 15_000 })
    expect(await here.run(['wait', 'push', '--timeout', '1s'])).toEqual({
      code: 7,
      out: '',
      err: `${ALONE}error: No delivery matched push within 1s\n`,
    })
    expect(await here.run(['wait', 'push', '--since', '1m', '--timeout', '1s'])).toMatchObject({ code: 0 })
    await appender.append('new')
    expect(await here.run(['wait', 'push', '--since', 'now', '--timeout', '1s'])).toMatchObject({ code: 7 })
  })

  it('takes nothing old for new after the clock was set back, and misses nothing when that happens meanwhile', async () => {
    const here = shell()
    await using appender = await startAppender(here)
    const hour = 3_600_000
    await appender.append('old', { receivedAt: Date.now() + hour })
    for (const since of ['now', '10s'])
      expect(await here.run(['wait', 'push', '--since', since, '--timeout', '1s'])).toMatchObject({ code: 7 })
    for (const since of ['now', '10s']) {
      const wait = here.run(['wait', 'push', '--since', since, '--timeout', '20s', '--json'])
      await pause(300)
      await appender.append(since, { receivedAt: Date.now() - hour })
      expect(JSON.parse((await wait).out)).toMatchObject({ delivery: since })
    }
  })

  it('has every expression hold', async () => {
    const here = shell()
    await using appender = await startAppender(here)
    const [one, two] = ['labels[0].name==bug', 'labels[0].color~^f']
    const wait = startCommand(here, [
      'wait',
      'push',
      '--timeout',
      '20s',
      '--where',
      one ?? '',
      '--where',
      two ?? '',
      '--json',
    ])
    for (const [name, color] of [
      ['bug', 'eee'],
      ['task', 'fff'],
      ['bug', 'fed'],
      ['bug', 'fff'],
    ] as const)
      await appender.append(`${name} ${color}`, { payload: { labels: [{ name, color }] } })
    expect(JSON.parse((await wait.ended).out)).toMatchObject({ n: 3, delivery: 'bug fed' })
  })

  it('ends with 7 when the time is over, whatever else comes', async () => {
    const here = shell()
    await using appender = await startAppender(here)
    const wait = here.run(['wait', 'ping', '--where', 'zen~x', '--timeout', '1s', '--json'])
    for (let i = 0; i < 5; i++) await appender.append(`${i}`)
    expect(await wait).toEqual({
      code: 7,
      out: '',
      err: '{"v":1,"type":"error","code":"timed_out","error":"No delivery matched ping and zen~x within 1s"}\n',
    })
  })

  it.each([
    ['pull_request', '2023-11-14', 0, ''],
    ['push', '2023-11-14', 0, ''],
    ['issues', '2023-11-14', 3, 'error: #3 failed at a target\n'],
    ['push', '2023-11-15T03:45:00', 7, 'error: #4 was received, but not forwarded within 1s\n'],
  ])('with --forwarded, %s since %s: ends with %i', async (match, since, code, err) => {
    const here = await exampleShell()
    const plain = ['wait', match, '--since', since, '--timeout', '1s']
    const { out } = await here.run(plain)
    expect(await here.run([...plain, '--forwarded'])).toEqual({ code, out: code === 7 ? '' : out, err })
  })

  it('ends with 130 at Ctrl-C', async () => {
    const abort = new AbortController()
    let err = ''
    const stderr = {
      write(text: string | Uint8Array) {
        err += String(text)
        if (err === ALONE) abort.abort(new RelayError('cancelled', 'Interrupted'))
      },
    }
    const { code, out } = await shell().run(['wait', 'ping', '--timeout', '5m'], {
      stderr,
      signal: abort.signal,
    })
    expect({ code, out, err }).toEqual({ code: 130, out: '', err: `${ALONE}error: Interrupted\n` })
  })

  it('waits for nothing that cannot come: without an instance and --timeout it ends at once, exit 1', async () => {
    const err =
      'error: No relay is running for profile default. Start it with relay serve, or wait for it with --timeout 5m\n'
    const here = shell()
    expect(await here.run(['wait', 'push'])).toEqual({ code: 1, out: '', err })
    expect(readdirSync(here.home)).toEqual([])
    const example = await exampleShell()
    expect(await example.run(['wait', 'push'])).toEqual({ code: 1, out: '', err })
    expect(await example.run(['wait', 'push', '--since', '2023-11-14'])).toMatchObject({ code: 0, err: '' })
  })

  it('says on a terminal what it waits for', async () => {
    let err = ''
    const stderr = { isTTY: true, write: (text: string) => void (err += text) }
    await shell().run(['wait', 'push', '--where', 'a==1', '--timeout', '1s', '--color', 'never'], { stderr })
    expect(err).toBe(
      `${ALONE}Waiting up to 1s for push and a==1. Ctrl-C cancels\nerror: No delivery matched push and a==1 within 1s\n`,
    )
  })

  it.each([
    [['pull_*'], "Invalid match 'pull_*': write event or event.action, with * for all of a part"],
    [['push', '--where', 'a=b'], '--where a=b: expected ==, != or ~ at character 2, before =b'],
    [['push', '--timeout', 'soon'], '--timeout: must be a duration such as 30s or 5m'],
    [
      ['push', '--since', '0'],
      '--since: must be a duration such as 1h, a time such as 2026-01-31T12:00, or now',
    ],
  ])('%j is refused, exit 2', async (argv, message) => {
    expect(await shell().run(['wait', ...argv])).toEqual({ code: 2, out: '', err: `error: ${message}\n` })
  })

  it('gives up on a pattern that takes too long, exit 2', async () => {
    const here = shell()
    await using appender = await startAppender(here)
    await appender.append('a', { payload: { text: `${'a'.repeat(64)}b` } })
    expect(await here.run(['wait', 'push', '--where', 'text~^(a+)+$'])).toEqual({
      code: 2,
      out: '',
      err: 'error: The pattern "^(a+)+$" takes too long. Simplify it\n',
    })
  })
})
