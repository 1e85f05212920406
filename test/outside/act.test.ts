import { Readable } from 'node:stream'
import { beforeAll, describe, expect, it } from 'vitest'
import { fill } from '../kit/journal.js'
import { leaveOut } from '../kit/needs.js'
import { CLIENT, hostVariables, place, USER } from '../kit/place.js'
import { receiver } from '../kit/receiver.js'
import { BUILT, fails, prints } from '../kit/run.js'
import { json, notes, shared } from './fixture.js'

const DOUBT = '; the request may have been carried out all the same'
const CUT = `The sandbox gave no complete answer (connection closed before an answer)${DOUBT}`
const ISSUE = 'octo/demo#1'
const TERMINAL = { terminal: { streams: ['stdout'] } } as const

const here = shared(() => place({ signedIn: true }))

/** How many changes the sandbox was asked for. */
const writes = (): number =>
  here.sandbox.requests.filter(({ method, path }) => method !== 'GET' && path.startsWith('/api/')).length

describe('relay comment', () => {
  const last = () => here.sandbox.comments.at(-1)

  it('prints the address of the new comment, and an object under --json', async () => {
    const urlOf = () => `${here.sandbox.url}/octo/demo/issues/1#issuecomment-${last()?.id}`
    const ran = await here.run('comment', ISSUE, 'héllo 👋')
    expect(last()).toMatchObject({ repo: 'octo/demo', issueNumber: 1, body: 'héllo 👋', user: 'octo' })
    expect(ran).toEqual(prints(`${urlOf()}\n`))
    const { out } = await here.run('comment', ISSUE, '--json', '--', '--not-a-flag')
    expect(last()).toMatchObject({ body: '--not-a-flag' })
    expect(out).toBe(`${JSON.stringify({ v: 1, id: last()?.id, url: urlOf() })}\n`)
  })

  it.each(
    Object.entries({
      'comment octo/demo#99 x':
        'The sandbox refused: Not Found (no such repository or number, or no access to it)',
      'comment octo/fault-reset#1 x': CUT,
      'comment octo/fault-secondary-limit#1 x':
        'The sandbox refused: You have exceeded a secondary rate limit. Please wait a few minutes before you try again.; try again in 60 s',
      'react octo/demo#4 eyes': 'The sandbox refused: Unable to create reaction because issue is locked.',
    }),
  )('relay %s is refused, exit 8, once', async (line, message) => {
    const before = writes()
    expect(await here.run(...line.split(' '))).toEqual(fails(8, message))
    expect(writes()).toBe(before + 1)
  })

  it('interrupted after it was sent warns that it may have happened, exit 130', async () => {
    here.sandbox.faults.next('comment', { kind: 'slow', ms: 60_000 })
    const before = writes()
    const abort = new AbortController()
    const running = here.runWith({ signal: abort.signal }, 'comment', ISSUE, 'slow')
    await expect.poll(() => writes()).toBeGreaterThan(before)
    abort.abort()
    expect(await running).toEqual(fails(130, `Interrupted${DOUBT}`))
    expect(writes()).toBe(before + 1)
  })

  it('interrupted before sends nothing, exit 130', async () => {
    if (BUILT) leaveOut('a process is interrupted before it is ready for that')
    const before = writes()
    const ran = await here.runWith({ signal: AbortSignal.abort() }, 'comment', ISSUE, 'hello')
    expect(ran).toEqual(fails(130, 'Interrupted'))
    expect(writes()).toBe(before)
  })

  it('interrupted while it waits for standard input ends, exit 130', async () => {
    const abort = new AbortController()
    let sent = 0
    const stdin = new Readable({
      // More than what fits on the way to the command: it reads, and waits for more.
      read() {
        if (sent++ < 8) this.push(Buffer.alloc(65_536, 'x'))
        else abort.abort()
      },
    })
    const running = here.runWith({ stdin, signal: abort.signal }, 'comment', ISSUE, '-')
    expect(await running).toEqual(fails(130, 'Interrupted'))
  })

  it('fails when the code host cannot be reached: exit 8, without a warning of a possible write', async () => {
    await using gone = await place({ signedIn: true })
    await gone.sandbox[Symbol.asyncDispose]()
    const why = 'The sandbox could not be reached (connection refused)'
    expect(await gone.run('comment', ISSUE, 'x')).toEqual(fails(8, why))
  })
})

describe('relay comment --sticky', () => {
  it('edits the comment that it made, and adds one for another key or issue', async () => {
    await using here = await place({ signedIn: true })
    const stick = async (subject: string, text: string, key: string): Promise<number> =>
      (await json(here.run('comment', subject, text, '--sticky', key, '--json'))).id
    const first = await stick(ISSUE, 'one', 'ci')
    expect(await stick(ISSUE, 'two', 'ci')).toBe(first)
    const other = await stick(ISSUE, 'three', 'docs')
    const elsewhere = await stick('octo/demo#2', 'four', 'ci')
    expect(new Set([first, other, elsewhere]).size).toBe(3)
    expect(here.sandbox.comments.map(({ issueNumber, body }) => [issueNumber, body])).toEqual([
      [1, '<!-- relay-sticky: ci -->\ntwo'],
      [1, '<!-- relay-sticky: docs -->\nthree'],
      [2, '<!-- relay-sticky: ci -->\nfour'],
    ])
  })

  it('leaves the comments of other accounts alone', async () => {
    const body = '<!-- relay-sticky: ci -->\nfrom somebody else'
    const written: string[] = []
    await using host = await receiver(({ method, path }) => {
      if (path.endsWith('/user')) return { headers: { 'x-oauth-scopes': 'repo' }, body: { login: 'ada' } }
      if (method === 'GET')
        return { body: [{ id: 5, html_url: 'http://127.0.0.1/5', user: { login: 'eve' }, body }] }
      written.push(`${method} ${path}`)
      return { status: 201, body: { id: 9, html_url: 'http://127.0.0.1/9' } }
    })
    await using here = await place({ host: 'none', env: hostVariables('github', host.url, CLIENT) })
    await here.useToken('ghp_token')
    const ran = await here.run('comment', ISSUE, 'mine', '--sticky', 'ci')
    expect(ran).toEqual(prints('http://127.0.0.1/9\n'))
    expect(written).toEqual(['POST /api/v3/repos/octo/demo/issues/1/comments'])
  })
})

describe('relay react', () => {
  it('prints the reaction, and reports one that existed already', async () => {
    const { sandbox } = here
    const before = sandbox.reactions.length
    const ran = async (text: string) => here.run('react', ISSUE, text)
    expect([await ran('👍🏽'), await ran('+1'), await ran('-1')]).toEqual([
      prints('+1\n'),
      { code: 0, out: '+1\n', err: 'you had already added this reaction\n' },
      prints('-1\n'),
    ])
    const person = { terminal: { streams: ['stdout', 'stderr'] as const } }
    const shown = async (text: string) => here.runWith(person, 'react', ISSUE, text, '--color', 'never')
    expect(await shown('-1')).toEqual(prints('You had already reacted -1 to octo/demo#1\n'))
    const made = sandbox.reactions.slice(before)
    expect(made.map(({ content, subject }) => [content, subject.kind])).toEqual([
      ['+1', 'issue'],
      ['-1', 'issue'],
    ])
  })

  it('reacts to the comment whose address is given, and prints an object under --json', async () => {
    const { sandbox } = here
    const { out: address } = await here.run('comment', ISSUE, 'hello')
    const review = `${sandbox.url}/octo/demo/pull/2#discussion_r3001`
    const rans = [
      await json(here.run('react', address.trim(), '🎉', '--json')),
      await json(here.run('react', review, ':rocket:', '--json')),
    ]
    const made = sandbox.reactions.slice(-2)
    const id = sandbox.comments.at(-1)?.id
    expect(made.map(({ subject }) => subject)).toEqual([
      { kind: 'comment', id },
      { kind: 'review_comment', id: 3001 },
    ])
    expect(rans).toEqual([
      { v: 1, id: made[0]?.id, content: 'hooray', created: true },
      { v: 1, id: made[1]?.id, content: 'rocket', created: true },
    ])
  })

  it('prints a sentence on a terminal', async () => {
    const { sandbox } = here
    const printed = async (...argv: string[]): Promise<string> =>
      (await here.runWith(TERMINAL, 'react', ...argv, '--color', 'never')).out
    expect(await printed(ISSUE, 'eyes')).toBe('Reacted eyes to octo/demo#1\n')
    const review = `${sandbox.url}/octo/demo/pull/2#discussion_r3001`
    expect(await printed(review, 'eyes')).toBe('Reacted eyes to review comment 3001 on octo/demo#2\n')
    expect(JSON.parse(await printed(ISSUE, 'heart', '--json'))).toMatchObject({ content: 'heart' })
  })
})

describe('--dry-run', () => {
  const SHA = 'a'.repeat(40)

  it.each<[line: string, words: string, request: object]>([
    [
      'comment /octo/demo/issues/1 héllo',
      'comment on octo/demo#1 (6 bytes)',
      { issueNumber: 1, body: 'héllo' },
    ],
    ['react octo/demo#1 heart', 'react heart to octo/demo#1', { issueNumber: 1, content: 'heart' }],
    [
      'react /octo/demo/issues/1#issuecomment-5 -1',
      'react -1 to comment 5 on octo/demo#1',
      { issueNumber: 1, commentId: 5, content: '-1' },
    ],
    [
      'react /octo/demo/pull/1#discussion_r7 heart',
      'react heart to review comment 7 on octo/demo#1',
      { issueNumber: 1, reviewCommentId: 7, content: 'heart' },
    ],
    [
      `merge octo/demo#2 --method rebase --match-head ${SHA}`,
      `merge octo/demo#2 (rebase) if its head is ${SHA}`,
      { pullNumber: 2, method: 'rebase', sha: SHA },
    ],
  ])('of relay %s prints what would happen, and sends nothing', async (line, words, request) => {
    const { url, requests } = here.sandbox
    const before = requests.length
    const argv = line.split(' ').map((word) => (word.startsWith('/') ? url + word : word))
    expect(await here.run(...argv, '--dry-run')).toEqual(notes(`would ${words} at ${url} as ${USER}\n`))
    expect(await json(here.run(...argv, '--dry-run', '--json'))).toEqual({
      v: 1,
      dryRun: true,
      action: argv[0],
      target: /octo\/demo#\d/.exec(words)?.[0],
      user: USER,
      provider: 'sandbox',
      providerUrl: url,
      request: { owner: 'octo', repo: 'demo', ...request },
    })
    expect(requests).toHaveLength(before)
  })

  it('opens no connection at all without an instance, and needs no sign-in', async () => {
    await using host = await receiver()
    const env = { RELAY_PROVIDER: 'gitea', RELAY_PROVIDER_URL: `${host.url}/git` }
    await using here = await place({ host: 'none', env })
    const argv = ['comment', `${host.url}/git/octo/demo/issues/1`, 'x', '--dry-run']
    const would = `would comment on octo/demo#1 (1 byte) at ${host.url}/git as ada\n`
    expect(await here.run(...argv)).toEqual(notes(would))
    expect(host.received).toEqual([])
  })
})

describe('--from', () => {
  beforeAll(async () => {
    const { url } = here.sandbox
    const payloads = {
      issues: { issue: { html_url: `${url}/octo/demo/issues/1` } },
      push: { ref: 'refs/heads/main' },
      pull_request: { pull_request: { html_url: `${url}/octo/demo/pull/5` } },
    }
    const filled = Object.entries(payloads).map(([event, payload]) => ({
      event,
      body: JSON.stringify(payload),
    }))
    await fill(
      here,
      filled.map((each) => ({ id: each.event, ...each })),
    )
  })

  /** A delivery as `relay wait --json` prints it. */
  const line = (url: string): string => {
    const payload = { issue: { html_url: `${url}/octo/demo/issues/1` } }
    return `${JSON.stringify({ v: 1, type: 'delivery', n: 1, event: 'issues', payload })}\n`
  }
  const from = (stdin: string | Readable, command: string, ...rest: string[]) =>
    here.runWith({ stdin }, command, '--from', '-', ...rest)

  it('names the target by an entry of the journal', async () => {
    const { sandbox } = here
    const { code, err } = await here.run('merge', '--from', 'last', '--dry-run')
    expect({ code, err }).toEqual({ code: 0, err: expect.stringMatching(/^would merge octo\/demo#5 at /) })
    expect(await here.run('comment', '--from', '1', 'from an entry')).toMatchObject({ code: 0, err: '' })
    expect(sandbox.comments.at(-1)).toMatchObject({ issueNumber: 1, body: 'from an entry' })
    expect(await here.run('react', '--from', '#1', 'confused')).toEqual(prints('confused\n'))
  })

  it('names it by a delivery on standard input, of any layout', async () => {
    const { sandbox } = here
    const stdin = JSON.stringify(JSON.parse(line(sandbox.url)), null, 2)
    expect(await from(stdin, 'comment', 'from a pipe')).toMatchObject({ code: 0 })
    expect(sandbox.comments.at(-1)).toMatchObject({ issueNumber: 1, body: 'from a pipe' })
    expect(await from(line(sandbox.url), 'react', 'laugh')).toEqual(prints('laugh\n'))
  })

  it('names it by a made-up delivery, which is about the code host of the profile', async () => {
    const { event, body } = await json(here.run('trigger', 'pull_request.opened', '--print'))
    const stdin = JSON.stringify({ event, payload: JSON.parse(body) })
    expect(await from(stdin, 'comment', 'made up')).toMatchObject({ code: 0, err: '' })
    expect(here.sandbox.comments.at(-1)).toMatchObject({ issueNumber: 2, body: 'made up' })
  })

  it('reacts to the comment that the delivery is about, and comments on its issue', async () => {
    const { sandbox } = here
    const { out } = await here.run('comment', ISSUE, 'hello')
    const issue = { html_url: `${sandbox.url}/octo/demo/issues/1` }
    const payload = { action: 'created', issue, comment: { html_url: out.trim() } }
    const stdin = JSON.stringify({ event: 'issue_comment', payload })
    const id = sandbox.comments.at(-1)?.id
    expect(await from(stdin, 'react', 'heart')).toMatchObject({ code: 0, err: '' })
    expect(sandbox.reactions.at(-1)).toMatchObject({ content: 'heart', subject: { kind: 'comment', id } })
    expect(await from(stdin, 'comment', 'Thanks')).toMatchObject({ code: 0, err: '' })
    expect(sandbox.comments.at(-1)).toMatchObject({ issueNumber: 1, body: 'Thanks' })
  })

  it('takes the text from what follows the delivery, wherever the chunks end', async () => {
    const { sandbox } = here
    const all = Buffer.from(`${line(sandbox.url)}# Report\n\nhé 👋\n`)
    for (const size of [1, 7, all.length]) {
      const chunks = Array.from({ length: Math.ceil(all.length / size) }, (_, at) =>
        all.subarray(at * size, (at + 1) * size),
      )
      expect(await from(Readable.from(chunks), 'comment', '-')).toMatchObject({ code: 0, err: '' })
      expect(sandbox.comments.at(-1)?.body).toBe('# Report\n\nhé 👋\n')
    }
    expect(await from(all.toString(), 'comment', '--body-file', '-')).toMatchObject({ code: 0, err: '' })
  })

  const EVENT = JSON.stringify({ event: 'push', payload: {} })
  const NONE = 'Standard input has no delivery. --from - reads one as relay wait --json prints it'
  const NOT_ONE =
    'Standard input is not one delivery with its payload, as relay wait --json and relay show --json print it'
  const ABOUT_NOTHING = 'is about no issue or pull request. Give the target, for example octo/demo#12'

  it.each<[from: string, stdin: string, code: number, message: string]>([
    ['-', '', 6, NONE],
    ['-', ' \n', 6, NONE],
    ['-', ISSUE, 2, NOT_ONE],
    ['-', `${EVENT}\n${EVENT}\n`, 2, NOT_ONE],
    ['-', JSON.stringify({ event: 'push' }), 2, NOT_ONE],
    ['-', JSON.stringify({ event: 'push', payload: [] }), 2, NOT_ONE],
    ['-', EVENT, 6, `The delivery on standard input (push) ${ABOUT_NOTHING}`],
    ['2', '', 6, `#2 (push) ${ABOUT_NOTHING}`],
    ['9', '', 6, 'The journal has no entry #9. Its entries are #1 to #3'],
    ['first', '', 2, '"first" is not an entry. Give its number, or last'],
  ])('%s cannot use %j, exit %i', async (entry, stdin, code, message) => {
    expect(await here.runWith({ stdin }, 'react', '--from', entry, 'eyes')).toEqual(fails(code, message))
  })

  it('cannot use a delivery without text after it, of another code host, or of an issue for merge, exit 2', async () => {
    const { url } = here.sandbox
    const noText = 'Standard input has no text after the delivery'
    expect(await from(line(url), 'comment', '-')).toEqual(fails(2, noText))
    const elsewhere = `The address is on https://git.example.org, but this profile uses ${url}. Give an address there, or owner/repo#12`
    expect(await from(line('https://git.example.org'), 'react', 'eyes')).toEqual(fails(2, elsewhere))
    const issue =
      'octo/demo#1 is an issue by its address. If it is a pull request, give octo/demo#1 as the target'
    expect(await here.run('merge', '--from', '1')).toEqual(fails(2, issue))
  })
})

it('a comment from a terminal says what it waits for', async () => {
  await using here = await place({ signedIn: true })
  const terminal = { streams: ['stdin', 'stderr'] as const }
  const { code, err } = await here.runWith({ stdin: 'typed', terminal }, 'comment', 'octo/demo#1', '-')
  expect([code, err]).toEqual([
    0,
    'Reading the comment from this terminal: Ctrl-D on an empty line ends it, Ctrl-C cancels\n',
  ])
  expect(here.sandbox.comments.map(({ body }) => body)).toContain('typed')
})
