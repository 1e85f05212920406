import { expect, it } from 'vitest'
import { describeWith } from '../kit/needs.js'
import { place } from '../kit/place.js'
import { receiver } from '../kit/receiver.js'
import { shell, type Shell } from '../kit/shell.js'

const comment = (i: number): string =>
  `{"action":"created","number":${i},"comment":{"body":"/ship ${i}"},"repository":{"full_name":"octo/demo"}}\r\n`

/** What a person's scripts do with a journal that holds {@link comment} 1 to 3; nothing in it changes meanwhile. */
async function read(run: Shell): Promise<void> {
  const prints = async (script: string, out: string): Promise<void> =>
    expect({ script, ...(await run(script)) }).toEqual({ script, code: 0, out, err: '' })
  await prints('relay log --json | jq -r \'"\\(.v) \\(.n) \\(.event) \\(.targets[0].state)"\'', ROWS)
  await prints('relay log --event issue_comment.created --last 1 --json | jq .number', '3\n')
  await prints('relay log --failed --json | jq .targets[].status', '410\n')
  await prints(
    'relay show last --json | jq -r .v,.payload.comment.body,.attempts[].answer',
    '1\n/ship 3\nthanks\n',
  )
  await prints('relay show 1 --json | jq -j .body', comment(1))
  await prints('relay show 1 --body', comment(1))
  // With --quiet, as it says that the real signature is in the fixture.
  await prints('relay export 2 --quiet | jq -j .body', comment(2))
  await prints(
    'relay export 2 --quiet --out f.json --force --json | jq -r .v,.file; jq .relay f.json',
    '1\nf.json\n1\n',
  )
  await prints(
    "relay wait issue_comment --since 1h --where 'comment.body ~ ^/ship [23]' --json | jq .v,.n,.payload.number",
    '1\n2\n2\n',
  )
  await prints("relay log | cut -d ' ' -f 1 | head -1", '#1\n')
  const nothing = async (command: string, kind: string): Promise<void> => {
    const script = `relay ${command} --json 2>&1 >none.${kind} | jq -r .v,.type,.code; wc -c < none.${kind}`
    const { code, out, err } = await run(script)
    const printed = `1\nerror\n${kind}\n0\n`
    expect({ code, out: out.replaceAll(' ', ''), err }).toEqual({ code: 0, out: printed, err: '' })
  }
  for (const command of ['log --event push', 'show 9', 'export 9']) await nothing(command, 'no_match')
  expect(await run('relay log --event push')).toMatchObject({ code: 6 })
  const [waited] = await Promise.all([
    run('relay wait push --timeout 1s'),
    nothing('wait push --timeout 1s', 'timed_out'),
  ])
  expect(waited).toMatchObject({ code: 7 })
}

const ROWS = '1 1 issue_comment succeeded\n1 2 issue_comment failed\n1 3 issue_comment succeeded\n'

describeWith('jq', 'scripts that read the journal', () => {
  it('find the same while relay serve runs and when it does not', async () => {
    await using target = await receiver(({ body }) =>
      body.includes('/ship 2') ? 410 : { status: 200, body: 'thanks' },
    )
    await using here = await place({ host: 'none' })
    const run = shell({ RELAY_HOME: here.home })
    const serve = await here.serveWith({ built: true }, '--forward', target.url)
    for (let i = 1; i <= 3; i++) {
      const body = comment(i)
      expect(await serve.deliver({ event: 'issue_comment', body })).toMatchObject({ status: 200 })
      await serve.object({ type: 'attempt', n: i })
    }
    await read(run)
    expect((await serve.stop()).code).toBe(0)
    await read(run)
  })

  it('wait for what serve receives, follow it, and end as they should', async () => {
    await using here = await place({ host: 'none' })
    const run = shell({ RELAY_HOME: here.home })
    const built = { built: true }
    const wait = ['wait', 'issue_comment', '--where', 'number==2', '--timeout', '1m', '--json']
    const waiting = here.startWith(built, ...wait)
    const following = here.startWith(built, 'log', '--follow', '--json')
    const serve = await here.serveWith(built)
    for (let i = 1; i <= 3; i++) await serve.deliver({ event: 'issue_comment', body: comment(i) })
    expect(await waiting.ended).toMatchObject({ code: 0, err: '' })
    expect(await waiting.object({})).toMatchObject({ v: 1, n: 2, payload: { number: 2 } })
    for (let n = 1; n <= 3; n++) expect(await following.object({ n })).toMatchObject({ v: 1, number: n })
    expect(await following.stop('SIGINT')).toMatchObject({ code: 0, signal: null, err: '' })
    // A reader that has seen enough, which is noticed when there is more to tell.
    const head = run('relay log --follow --event issue_comment | head -1 | cut -c 1-2')
    const read = new AbortController()
    void head.finally(() => read.abort())
    for (let i = 4; !read.signal.aborted; i++)
      await serve.deliver({ event: 'issue_comment', body: comment(i) })
    expect(await head).toEqual({ code: 0, out: expect.stringMatching(/^#\d/), err: '' })
  })
})
