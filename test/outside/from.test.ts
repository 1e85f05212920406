import { Readable } from 'node:stream'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { fill } from '../kit/journal.js'
import { type Place, place } from '../kit/place.js'
import { fails, prints } from '../kit/run.js'

let here: Place

beforeAll(async () => {
  here = await place({ signedIn: true })
  const { url } = here.sandbox
  await fill(
    here,
    Object.entries({
      issues: { issue: { html_url: `${url}/octo/demo/issues/1` } },
      push: { ref: 'refs/heads/main' },
      pull_request: { pull_request: { html_url: `${url}/octo/demo/pull/5` } },
    }).map(([event, payload]) => ({ id: event, event, body: JSON.stringify(payload) })),
  )
})
afterAll(() => here[Symbol.asyncDispose]())

/** A delivery as `relay wait --json` prints it. */
const line = (url: string, event = 'issues', page = 'issues/1'): string =>
  `${JSON.stringify({ v: 1, type: 'delivery', n: 1, event, payload: { issue: { html_url: `${url}/octo/demo/${page}` } } })}\n`

describe('--from', () => {
  it('names the target by an entry of the journal', async () => {
    const { sandbox } = here
    const { code, err } = await here.run('merge', '--from', 'last', '--dry-run')
    expect({ code, err }).toEqual({ code: 0, err: expect.stringMatching(/^would merge octo\/demo#5 at /) })
    expect(await here.run('comment', '--from', '1', 'from an entry')).toMatchObject({ code: 0, err: '' })
    expect(sandbox.comments.at(-1)).toMatchObject({ issueNumber: 1, body: 'from an entry' })
    expect(await here.run('react', '--from', '#1', '-1')).toEqual(prints('-1\n'))
  })

  it('names it by a delivery on standard input, of any layout', async () => {
    const { sandbox } = here
    const stdin = JSON.stringify(JSON.parse(line(sandbox.url)), null, 2)
    expect(await here.runWith({ stdin }, 'comment', '--from', '-', 'from a pipe')).toMatchObject({ code: 0 })
    expect(sandbox.comments.at(-1)).toMatchObject({ issueNumber: 1, body: 'from a pipe' })
    const react = await here.runWith({ stdin: line(sandbox.url) }, 'react', '--from', '-', 'eyes')
    expect(react).toEqual(prints('eyes\n'))
  })

  it('reacts to the comment that the delivery is about, and comments on its issue', async () => {
    const { sandbox } = here
    const { out } = await here.run('comment', 'octo/demo#1', 'hello')
    const issue = { html_url: `${sandbox.url}/octo/demo/issues/1` }
    const payload = { action: 'created', issue, comment: { html_url: out.trim() } }
    const stdin = JSON.stringify({ event: 'issue_comment', payload })
    const id = sandbox.comments.at(-1)?.id
    expect(await here.runWith({ stdin }, 'react', '--from', '-', 'heart')).toMatchObject({ code: 0, err: '' })
    expect(sandbox.reactions.at(-1)).toMatchObject({ content: 'heart', subject: { kind: 'comment', id } })
    const plan = await here.runWith({ stdin }, 'react', '--from', '-', 'heart', '--dry-run')
    expect(plan.err).toMatch(`would react heart to comment ${id} on octo/demo#1 at `)
    const answer = ['comment', '--from', '-', 'Thanks']
    expect(await here.runWith({ stdin }, ...answer)).toMatchObject({ code: 0, err: '' })
    expect(sandbox.comments.at(-1)).toMatchObject({ issueNumber: 1, body: 'Thanks' })
  })

  it('takes the text from what follows the delivery, wherever the chunks end', async () => {
    const { sandbox } = here
    const all = Buffer.from(`${line(sandbox.url)}# Report\n\nhé 👋\n`)
    for (const size of [1, 7, all.length]) {
      const chunks = Array.from({ length: Math.ceil(all.length / size) }, (_, at) =>
        all.subarray(at * size, (at + 1) * size),
      )
      const ran = await here.runWith({ stdin: Readable.from(chunks) }, 'comment', '--from', '-', '-')
      expect(ran).toMatchObject({ code: 0, err: '' })
      expect(sandbox.comments.at(-1)?.body).toBe('# Report\n\nhé 👋\n')
    }
    const file = ['comment', '--from', '-', '--body-file', '-']
    expect(await here.runWith({ stdin: all }, ...file)).toMatchObject({ code: 0, err: '' })
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
    expect(await here.runWith({ stdin }, 'react', ...argv, 'eyes')).toEqual({
      code,
      out: '',
      err,
    })
  })

  it('is a delivery without text after it, exit 2', async () => {
    const stdin = line(here.sandbox.url)
    const ran = await here.runWith({ stdin }, 'comment', '--from', '-', '-')
    expect(ran).toEqual(fails(2, 'Standard input has no text after the delivery'))
  })

  it('is a delivery of another code host, exit 2', async () => {
    const stdin = line('https://git.example.org')
    const { code, err } = await here.runWith({ stdin }, 'react', '--from', '-', 'eyes')
    expect(code).toBe(2)
    expect(err).toContain('The address is on https://git.example.org, but this profile uses ')
  })

  it('is an issue, for merge, exit 2', async () => {
    expect(await here.run('merge', '--from', '1')).toEqual(
      fails(
        2,
        'octo/demo#1 is an issue by its address. If it is a pull request, give octo/demo#1 as the target',
      ),
    )
  })
})
