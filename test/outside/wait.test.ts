import { readdirSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { fill, type Filled } from '../kit/journal.js'
import type { Place } from '../kit/place.js'
import { fails, prints } from '../kit/run.js'
import { bare, example } from './example.js'
import { json, shared } from './fixture.js'

const FIRST =
  '#3  2023-11-15 03:45:20  issues.closed  octo/demo#12  → http://localhost:3000/hook 404 12.3s failed\n'

const FAILED = 'error: 1 of 1 failed at a target: #3 at http://localhost:3000/hook. See relay show <n>\n'

const ALONE = 'No relay is running for profile default; waiting all the same\n'

/** Its journal has five deliveries of 2023. */
const journal = shared(example)

describe('relay wait', () => {
  it('prints the first that came since', async () => {
    expect(await journal.run('wait', 'issues.*', '--since', '2023-11-14')).toEqual(prints(FIRST))
    const found = await json(journal.run('wait', 'push', '--since', '2023-11-15T03:45:00', '--json'))
    expect(found).toMatchObject({ v: 1, n: 4, delivery: 'd', payload: null })
    const { out: whole } = await journal.run('wait', 'pull_request', '--since', '2023-11-14', '--json')
    expect(whole).toBe((await journal.run('show', '1', '--json')).out)
  })

  /** Each delivery comes so many milliseconds before or after the command is started. */
  it.each([-100, 0, 160])('finds what comes %i ms after it is started, once and soon', async (offset) => {
    await using here = await bare()
    await came(here, { id: 'other', event: 'ping' })
    const append = (): Promise<void> => came(here, { id: 'wanted', body: `{"sha":"at ${offset}"}` })
    if (offset < 0) await append().then(() => pause(-offset))
    const wait = here.run('wait', 'push', '--where', `sha==at ${offset}`, '--timeout', '20s', '--json')
    if (offset >= 0) await pause(offset).then(append)
    const there = performance.now()
    const { code, out, err } = await wait
    expect(performance.now() - there).toBeLessThan(5000)
    expect({ code, err }).toEqual({ code: 0, err: expect.stringMatching(/^(No relay is running.*\n)?$/) })
    expect(JSON.parse(out)).toMatchObject({ n: 2, payload: { sha: `at ${offset}` } })
  })

  it('looks back as far as --since and no further', async () => {
    await using here = await bare()
    await came(here, { id: 'old', receivedAt: Date.now() - 15_000 })
    const none = `${ALONE}error: No delivery matched push within 1s\n`
    expect(await here.run('wait', 'push', '--timeout', '1s')).toEqual({ code: 7, out: '', err: none })
    expect(await here.run('wait', 'push', '--since', '1m', '--timeout', '1s')).toMatchObject({ code: 0 })
    await came(here, { id: 'new', receivedAt: Date.now() - 3000 })
    expect(await here.run('wait', 'push', '--timeout', '1s')).toMatchObject({ code: 0 })
    expect(await here.run('wait', 'push', '--since', 'now', '--timeout', '1s')).toMatchObject({ code: 7 })
  })

  it('misses nothing when the clock is set back meanwhile', async () => {
    await using here = await bare()
    const hour = 3_600_000
    await came(here, { id: 'old', receivedAt: Date.now() - hour })
    for (const [i, since] of ['now', '10s'].entries()) {
      const wait = here.start('wait', 'push', '--since', since, '--timeout', '20s')
      await wait.says(ALONE)
      await came(here, { id: since, receivedAt: Date.now() - hour })
      expect(await wait.ended).toMatchObject({ code: 0, out: expect.stringMatching(`^#${i + 2} `) })
    }
  })

  it('has every expression hold', async () => {
    await using here = await bare()
    const both = ['--where', 'labels[0].name==bug', '--where', 'labels[0].color~^f']
    const wait = here.start('wait', 'push', '--timeout', '20s', ...both, '--json')
    for (const id of ['bug eee', 'task fff', 'bug fed', 'bug fff']) {
      const [name, color] = id.split(' ')
      await came(here, { id, body: JSON.stringify({ labels: [{ name, color }] }) })
    }
    expect(JSON.parse((await wait.ended).out)).toMatchObject({ n: 3, delivery: 'bug fed' })
  })

  it('takes no time for a pattern that goes back again and again', async () => {
    await using here = await bare()
    const since = performance.now()
    const wait = here.start('wait', 'push', '--where', 'title ~ ^(a+)+$', '--timeout', '20s', '--json')
    for (const title of [`${'a'.repeat(60_000)}!`, 'aaa'])
      await came(here, { id: title.slice(-9), body: JSON.stringify({ title }) })
    expect(JSON.parse((await wait.ended).out)).toMatchObject({ n: 2, payload: { title: 'aaa' } })
    expect(performance.now() - since).toBeLessThan(15_000)
  })

  it.each([
    ['pull_request', '2023-11-14', 0, ''],
    ['push', '2023-11-14', 0, ''],
    ['issues', '2023-11-14', 3, FAILED],
    ['push', '2023-11-15T03:45:00', 7, 'error: #4 was received, but not forwarded within 1s\n'],
  ])('with --forwarded, %s since %s: ends with %i', async (match, since, code, err) => {
    const plain = ['wait', match, '--since', since, '--timeout', '1s']
    const { out } = await journal.run(...plain)
    const forwarded = await journal.run(...plain, '--forwarded')
    expect(forwarded).toEqual({ code, out: code === 7 ? '' : out, err })
  })

  it('ends with 130 at Ctrl-C', async () => {
    await using here = await bare()
    const wait = here.start('wait', 'ping', '--timeout', '5m')
    await wait.says(ALONE)
    const err = `${ALONE}error: Interrupted\n`
    expect(await wait.stop('SIGINT')).toMatchObject({ code: 130, out: '', err })
  })

  it('waits for nothing that cannot come: without an instance and --timeout it ends at once, exit 1', async () => {
    const none = fails(
      1,
      'No relay is running for profile default. Start it with relay serve, or wait for it with --timeout 5m',
    )
    await using here = await bare()
    expect(await here.run('wait', 'push')).toEqual(none)
    expect(readdirSync(here.home)).toEqual([])
    expect(await journal.run('wait', 'push')).toEqual(none)
    expect(await journal.run('wait', 'push', '--since', '2023-11-14')).toMatchObject({ code: 0, err: '' })
  })

  it('says on a terminal what it waits for', async () => {
    await using here = await bare()
    const argv = ['wait', 'push', '--where', 'a==1', '--timeout', '1s', '--color', 'never']
    const { err } = await here.runWith({ terminal: { streams: ['stderr'] } }, ...argv)
    expect(err).toBe(
      `${ALONE}Waiting up to 1s for push and a==1. Ctrl-C cancels\nerror: No delivery matched push and a==1 within 1s\n`,
    )
  })
})

/** A delivery with a JSON payload comes now, or at another time. */
function came(here: Place, delivery: Filled): Promise<void> {
  const headers = [['Content-Type', 'application/json']] as const
  return fill(here, [{ receivedAt: Date.now(), headers, body: '{}', ...delivery }])
}
