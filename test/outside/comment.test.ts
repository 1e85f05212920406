import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { Readable } from 'node:stream'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { emptyFolder } from '../kit/folder.js'
import { leaveOut } from '../kit/needs.js'
import { type Place, place, USER } from '../kit/place.js'
import { receiver } from '../kit/receiver.js'
import { BUILT, fails, prints } from '../kit/run.js'

const DOUBT = '; the request may have been carried out all the same'

let here: Place

beforeAll(async () => {
  here = await place({ signedIn: true })
})
afterAll(() => here[Symbol.asyncDispose]())

describe('relay comment', () => {
  it('prints the address of the new comment', async () => {
    const { sandbox } = here
    const ran = await here.run('comment', 'octo/demo#1', 'héllo 👋')
    const made = sandbox.comments.at(-1)
    expect(made).toMatchObject({ repo: 'octo/demo', issueNumber: 1, body: 'héllo 👋', user: 'octo' })
    const out = `${sandbox.url}/octo/demo/issues/1#issuecomment-${made?.id}\n`
    expect(ran).toEqual({ code: 0, out, err: '' })
    expect(await here.run('comment', 'octo/demo#1', '--', '--not-a-flag')).toMatchObject({ code: 0, err: '' })
    expect(sandbox.comments.at(-1)).toMatchObject({ body: '--not-a-flag' })
  })

  it('sends text from a pipe or a file unchanged', async () => {
    const { sandbox } = here
    const cwd = emptyFolder()
    writeFileSync(path.join(cwd, 'notes.md'), '# Notes\n')
    const stdin = Readable.from(['one\r\n', 'two\n'].map((chunk) => Buffer.from(chunk)))
    expect(await here.runWith({ stdin }, 'comment', 'octo/demo#1', '-')).toMatchObject({ code: 0, err: '' })
    const fromFile = ['comment', 'octo/demo#1', '--body-file', 'notes.md']
    expect(await here.runWith({ cwd }, ...fromFile)).toMatchObject({ code: 0, err: '' })
    expect(sandbox.comments.slice(-2).map(({ body }) => body)).toEqual(['one\r\ntwo\n', '# Notes\n'])
  })

  it('accepts web addresses; that of a comment means its issue', async () => {
    const { sandbox } = here
    const addresses = [
      [`${sandbox.url}/octo/demo/issues/1`, 1],
      [`${sandbox.url}/octo/demo/pull/2/files?w=1`, 2],
      [`${sandbox.url}/octo/demo/pull/2#discussion_r3001`, 2],
    ] as const
    for (const [address, issueNumber] of addresses) {
      expect(await here.run('comment', address, 'hi')).toMatchObject({ code: 0, err: '' })
      expect(sandbox.comments.at(-1)).toMatchObject({ repo: 'octo/demo', issueNumber, body: 'hi' })
    }
  })

  it('prints an object under --json', async () => {
    const { sandbox } = here
    const { code, out, err } = await here.run('comment', 'octo/demo#1', 'hello', '--json')
    const id = sandbox.comments.at(-1)?.id
    const url = `${sandbox.url}/octo/demo/issues/1#issuecomment-${id}`
    expect({ code, out, err }).toEqual(prints(`${JSON.stringify({ v: 1, id, url })}\n`))
  })

  it.each([
    ['octo/demo#99', 'The sandbox refused: Not Found (no such repository or number, or no access to it)'],
    ['octo/no-issues#1', 'The sandbox refused: Issues are disabled for this repo'],
    ['octo/fault-502#1', `The sandbox failed (502)${DOUBT}`],
    [
      'octo/fault-reset#1',
      `The sandbox gave no complete answer (connection closed before an answer)${DOUBT}`,
    ],
    [
      'octo/fault-reset-after#1',
      `The sandbox gave no complete answer (connection closed before an answer)${DOUBT}`,
    ],
    ['octo/fault-secondary-limit#1', `The sandbox refused: ${SECONDARY}; try again in 60 s`],
  ])('%s is refused, exit 8, once', async (target, message) => {
    const { sandbox } = here
    const before = writes(sandbox.requests)
    const ran = await here.run('comment', target, 'hello')
    expect(ran).toEqual(fails(8, message))
    expect(writes(sandbox.requests)).toBe(before + 1)
  })

  it('interrupted after it was sent warns that it may have happened, exit 130', async () => {
    const { sandbox } = here
    sandbox.faults.next('comment', { kind: 'slow', ms: 60_000 })
    const before = writes(sandbox.requests)
    const abort = new AbortController()
    const running = here.runWith({ signal: abort.signal }, 'comment', 'octo/demo#1', 'slow')
    await expect.poll(() => writes(sandbox.requests)).toBeGreaterThan(before)
    abort.abort()
    expect(await running).toEqual(fails(130, `Interrupted${DOUBT}`))
    expect(writes(sandbox.requests)).toBe(before + 1)
  })

  it('interrupted before sends nothing, exit 130', async () => {
    if (BUILT) leaveOut('a process is interrupted before it is ready for that')
    const { sandbox } = here
    const before = writes(sandbox.requests)
    const signal = AbortSignal.abort()
    const ran = await here.runWith({ signal }, 'comment', 'octo/demo#1', 'hello')
    expect(ran).toEqual(fails(130, 'Interrupted'))
    expect(writes(sandbox.requests)).toBe(before)
  })

  it('--dry-run prints what would happen, and sends nothing', async () => {
    const { sandbox } = here
    const before = sandbox.requests.length
    const argv = ['comment', `${sandbox.url}/octo/demo/issues/1`, 'héllo', '--dry-run']
    expect(await here.run(...argv)).toEqual({
      code: 0,
      out: '',
      err: `would comment on octo/demo#1 (6 bytes) at ${sandbox.url} as ${USER}\n`,
    })
    const plan = {
      v: 1,
      dryRun: true,
      action: 'comment',
      target: 'octo/demo#1',
      user: USER,
      provider: 'sandbox',
      providerUrl: sandbox.url,
      request: { owner: 'octo', repo: 'demo', issueNumber: 1, body: 'héllo' },
    }
    const ran = await here.run(...argv, '--json')
    expect(ran).toEqual(prints(`${JSON.stringify(plan)}\n`))
    expect(sandbox.requests).toHaveLength(before)
  })
})

const SECONDARY = 'You have exceeded a secondary rate limit. Please wait a few minutes before you try again.'

function writes(requests: readonly { readonly method: string; readonly path: string }[]): number {
  return requests.filter(({ method, path }) => method !== 'GET' && path.startsWith('/api/')).length
}

it('a text of more than 1 MiB is a usage error, exit 2', async () => {
  const err = 'error: standard input is larger than 1 MiB\n'
  const stdin = 'x'.repeat(1_048_577)
  const ran = await here.runWith({ stdin }, 'comment', 'octo/demo#1', '-')
  expect(ran).toEqual({ code: 2, out: '', err })
})

it('interrupted while it waits for standard input ends, exit 130', async () => {
  const abort = new AbortController()
  const stdin = new Readable({
    // More than what fits on the way to the command: it reads, and waits for more.
    read() {
      if (sent++ < 8) this.push(Buffer.alloc(65_536, 'x'))
      else abort.abort()
    },
  })
  let sent = 0
  const running = here.runWith({ stdin, signal: abort.signal }, 'comment', 'octo/demo#1', '-')
  expect(await running).toEqual(fails(130, 'Interrupted'))
})

it('fails when the code host cannot be reached: exit 8, without a warning of a possible write', async () => {
  await using gone = await place({ signedIn: true })
  await gone.sandbox[Symbol.asyncDispose]()
  const err = 'error: The sandbox could not be reached (connection refused)\n'
  expect(await gone.run('comment', 'octo/demo#1', 'x')).toEqual({ code: 8, out: '', err })
})

it('--dry-run opens no connection at all without an instance, and needs no sign-in', async () => {
  await using host = await receiver()
  const env = { RELAY_PROVIDER: 'gitea', RELAY_PROVIDER_URL: `${host.url}/git` }
  await using here = await place({ host: 'none', env })
  const argv = ['comment', `${host.url}/git/octo/demo/issues/1`, 'x', '--dry-run']
  const err = `would comment on octo/demo#1 (1 byte) at ${host.url}/git as ada\n`
  expect(await here.run(...argv)).toEqual({ code: 0, out: '', err })
  expect(host.received).toEqual([])
})
