import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { delivery } from '../../journal/rig.js'
import { fill } from '../journal-rig.js'
import { type Alone, piped, type Served, startAlone, startServed } from '../rig.js'

let served: Served
let alone: Alone

beforeAll(async () => {
  served = await startServed()
  alone = await startAlone()
  for (const { shell, sandbox } of [served, alone])
    await fill(shell, async (journal) => {
      const entry = (id: string, event: string, payload: object) =>
        journal.append(delivery(id, { event, body: Buffer.from(JSON.stringify(payload)) }))
      await entry('1', 'issues', { issue: { html_url: `${sandbox.url}/octo/demo/issues/1` } })
      await entry('2', 'push', { ref: 'refs/heads/main' })
      await entry('3', 'pull_request', { pull_request: { html_url: `${sandbox.url}/octo/demo/pull/5` } })
    })
})

afterAll(async () => {
  await served[Symbol.asyncDispose]()
  await alone[Symbol.asyncDispose]()
})

/** A delivery as `relay wait --json` prints it. */
const line = (url: string, event = 'issues', page = 'issues/1'): string =>
  `${JSON.stringify({ v: 1, type: 'delivery', n: 1, event, payload: { issue: { html_url: `${url}/octo/demo/${page}` } } })}\n`

describe.each([
  ['through the running instance', () => served],
  ['in this process, without one', () => alone],
])('--from, %s', (_, place) => {
  it('names the target by an entry of the journal', async () => {
    const { shell, sandbox } = place()
    const { code, err } = await shell.run(['merge', '--from', 'last', '--dry-run'])
    expect({ code, err }).toEqual({ code: 0, err: expect.stringMatching(/^would merge octo\/demo#5 at /) })
    expect(await shell.run(['comment', '--from', '1', 'from an entry'])).toMatchObject({ code: 0, err: '' })
    expect(sandbox.comments.at(-1)).toMatchObject({ issueNumber: 1, body: 'from an entry' })
    expect(await shell.run(['react', '--from', '#1', '-1'])).toEqual({ code: 0, out: '-1\n', err: '' })
  })

  it('names it by a delivery on standard input, of any layout', async () => {
    const { shell, sandbox } = place()
    const stdin = piped(JSON.stringify(JSON.parse(line(sandbox.url)), null, 2))
    expect(await shell.run(['comment', '--from', '-', 'from a pipe'], { stdin })).toMatchObject({ code: 0 })
    expect(sandbox.comments.at(-1)).toMatchObject({ issueNumber: 1, body: 'from a pipe' })
    const react = await shell.run(['react', '--from', '-', 'eyes'], { stdin: piped(line(sandbox.url)) })
    expect(react).toEqual({ code: 0, out: 'eyes\n', err: '' })
  })

  it('takes the text from what follows the delivery, wherever the chunks end', async () => {
    const { shell, sandbox } = place()
    const all = Buffer.from(`${line(sandbox.url)}# Report\n\nhé 👋\n`)
    for (const size of [1, 7, all.length]) {
      const chunks = Array.from({ length: Math.ceil(all.length / size) }, (_, at) =>
        all.subarray(at * size, (at + 1) * size),
      )
      const ran = await shell.run(['comment', '--from', '-', '-'], { stdin: piped(...chunks) })
      expect(ran).toMatchObject({ code: 0, err: '' })
      expect(sandbox.comments.at(-1)?.body).toBe('# Report\n\nhé 👋\n')
    }
    const file = ['comment', '--from', '-', '--body-file', '-']
    expect(await shell.run(file, { stdin: piped(all) })).toMatchObject({ code: 0, err: '' })
  })
})

const NOT_ONE =
  'Standard input is not one delivery with its payload, as relay wait --json and relay show --json print it'

describe('what --from cannot use', () => {
  const EVENT = JSON.stringify({ event: 'push', payload: {} })

  it.each([
    [
      ['--from', '-'],
      '',
      6,
      'Standard input has no delivery. --from - reads one as relay wait --json prints it',
    ],
    [
      ['--from', '-'],
      ' \n',
      6,
      'Standard input has no delivery. --from - reads one as relay wait --json prints it',
    ],
    [['--from', '-'], 'octo/demo#1', 2, NOT_ONE],
    [['--from', '-'], `${EVENT}\n${EVENT}\n`, 2, NOT_ONE],
    [['--from', '-'], JSON.stringify({ event: 'push' }), 2, NOT_ONE],
    [['--from', '-'], JSON.stringify({ event: 'push', payload: [] }), 2, NOT_ONE],
    [
      ['--from', '-'],
      EVENT,
      6,
      'The delivery on standard input (push) is about no issue or pull request. Give the target, for example octo/demo#12',
    ],
    [
      ['--from', '2'],
      '',
      6,
      '#2 (push) is about no issue or pull request. Give the target, for example octo/demo#12',
    ],
    [['--from', '9'], '', 6, 'The journal has no entry #9. Its entries are #1 to #3'],
    [['--from', 'first'], '', 2, '"first" is not an entry. Give its number, or last'],
  ])('%j with %j', async (argv, stdin, code, message) => {
    const err = `error: ${message}\n`
    expect(await alone.shell.run(['react', ...argv, 'eyes'], { stdin: piped(stdin) })).toEqual({
      code,
      out: '',
      err,
    })
  })

  it('is a delivery without text after it, exit 2', async () => {
    const stdin = piped(line(alone.sandbox.url))
    const ran = await alone.shell.run(['comment', '--from', '-', '-'], { stdin })
    expect(ran).toEqual({ code: 2, out: '', err: 'error: Standard input has no text after the delivery\n' })
  })

  it('is a delivery of another code host, exit 2', async () => {
    const stdin = piped(line('https://git.example.org'))
    const { code, err } = await alone.shell.run(['react', '--from', '-', 'eyes'], { stdin })
    expect(code).toBe(2)
    expect(err).toContain('The address is on https://git.example.org, but this profile uses ')
  })

  it('is an issue, for merge, exit 2', async () => {
    expect(await alone.shell.run(['merge', '--from', '1'])).toEqual({
      code: 2,
      out: '',
      err: 'error: octo/demo#1 is an issue by its address. If it is a pull request, give octo/demo#1 as the target\n',
    })
  })
})
