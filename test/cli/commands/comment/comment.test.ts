import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { PassThrough } from 'node:stream'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { RelayError } from '../../../../src/base/errors.js'
import { comment } from '../../../../src/cli/commands/comment/declaration.js'
import { emptyFolder } from '../../../helpers/context.js'
import { scriptedServer } from '../../../helpers/scripted-server.js'
import { type Alone, parsed, piped, type Served, shell, startAlone, startServed, USER } from '../../rig.js'

const DOUBT = '; the request may have been carried out all the same'
const INTERRUPTED = new RelayError('cancelled', 'Interrupted')

let served: Served
let alone: Alone

beforeAll(async () => {
  served = await startServed()
  alone = await startAlone()
})

afterAll(async () => {
  await served[Symbol.asyncDispose]()
  await alone[Symbol.asyncDispose]()
})

describe('the command line of relay comment', () => {
  it.each([
    [
      ['octo/demo#1', 'hello'],
      ['octo/demo#1', 'hello', {}],
    ],
    [
      ['octo/demo#1', '-'],
      ['octo/demo#1', '-', {}],
    ],
    [
      ['octo/demo#1', '--', '--not-a-flag'],
      ['octo/demo#1', '--not-a-flag', {}],
    ],
    [['octo/demo#1'], ['octo/demo#1', undefined, {}]],
    [
      ['--user', 'bob', '--dry-run', '--json', '--body-file', 'x', 'octo/demo#1'],
      ['octo/demo#1', undefined, { user: 'bob', dryRun: true, json: true, bodyFile: 'x' }],
    ],
  ])('%j', async (argv, given) => {
    expect(await parsed(comment, [...argv])).toEqual(given)
  })

  it.each([[['octo/demo#1', 'a', 'b']], [['octo/demo#1', '--body', 'x']], [['--from']]])(
    'not %j',
    async (argv) => {
      await expect(parsed(comment, [...argv])).rejects.toMatchObject({ exitCode: 1 })
    },
  )
})

describe.each([
  ['through the running instance', () => served],
  ['in this process, without one', () => alone],
])('relay comment %s', (_, place) => {
  it('prints the address of the new comment', async () => {
    const { shell, sandbox } = place()
    const ran = await shell.run(['comment', 'octo/demo#1', 'héllo 👋'])
    const made = sandbox.comments.at(-1)
    expect(made).toMatchObject({ repo: 'octo/demo', issueNumber: 1, body: 'héllo 👋', user: 'octo' })
    const out = `${sandbox.url}/octo/demo/issues/1#issuecomment-${made?.id}\n`
    expect(ran).toEqual({ code: 0, out, err: '' })
  })

  it('sends text from a pipe or a file unchanged', async () => {
    const { shell, sandbox } = place()
    const cwd = emptyFolder()
    writeFileSync(path.join(cwd, 'notes.md'), '# Notes\n')
    const stdin = piped('one\r\n', 'two\n')
    expect(await shell.run(['comment', 'octo/demo#1', '-'], { stdin })).toMatchObject({ code: 0, err: '' })
    const fromFile = ['comment', 'octo/demo#1', '--body-file', 'notes.md']
    expect(await shell.run(fromFile, { cwd })).toMatchObject({ code: 0, err: '' })
    expect(sandbox.comments.slice(-2).map(({ body }) => body)).toEqual(['one\r\ntwo\n', '# Notes\n'])
  })

  it('accepts web addresses; that of a comment means its issue', async () => {
    const { shell, sandbox } = place()
    const addresses = [
      [`${sandbox.url}/octo/demo/issues/1`, 1],
      [`${sandbox.url}/octo/demo/pull/2/files?w=1`, 2],
      [`${sandbox.url}/octo/demo/pull/2#discussion_r3001`, 2],
    ] as const
    for (const [address, issueNumber] of addresses) {
      expect(await shell.run(['comment', address, 'hi'])).toMatchObject({ code: 0, err: '' })
      expect(sandbox.comments.at(-1)).toMatchObject({ repo: 'octo/demo', issueNumber, body: 'hi' })
    }
  })

  it('prints an object under --json', async () => {
    const { shell, sandbox } = place()
    const { code, out, err } = await shell.run(['comment', 'octo/demo#1', 'hello', '--json'])
    const id = sandbox.comments.at(-1)?.id
    const url = `${sandbox.url}/octo/demo/issues/1#issuecomment-${id}`
    expect({ code, out, err }).toEqual({ code: 0, out: `${JSON.stringify({ v: 1, id, url })}\n`, err: '' })
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
    const { shell, sandbox } = place()
    const before = writes(sandbox.requests)
    const ran = await shell.run(['comment', target, 'hello'])
    expect(ran).toEqual({ code: 8, out: '', err: `error: ${message}\n` })
    expect(writes(sandbox.requests)).toBe(before + 1)
  })

  it('fails with an object on stderr and nothing on stdout under --json', async () => {
    const err = {
      v: 1,
      type: 'error',
      code: 'gone',
      error: 'The sandbox refused: Issues are disabled for this repo',
    }
    expect(await place().shell.run(['comment', 'octo/no-issues#1', 'hello', '--json'])).toEqual({
      code: 8,
      out: '',
      err: `${JSON.stringify(err)}\n`,
    })
  })

  it('interrupted after it was sent warns that it may have happened, exit 130', async () => {
    const { shell, sandbox } = place()
    sandbox.faults.next('comment', { kind: 'slow', ms: 60_000 })
    const before = writes(sandbox.requests)
    const abort = new AbortController()
    const running = shell.run(['comment', 'octo/demo#1', 'slow'], { signal: abort.signal })
    await expect.poll(() => writes(sandbox.requests)).toBeGreaterThan(before)
    abort.abort(INTERRUPTED)
    expect(await running).toEqual({ code: 130, out: '', err: `error: Interrupted${DOUBT}\n` })
    expect(writes(sandbox.requests)).toBe(before + 1)
  })

  it('interrupted before sends nothing, exit 130', async () => {
    const { shell, sandbox } = place()
    const before = writes(sandbox.requests)
    const signal = AbortSignal.abort(INTERRUPTED)
    const ran = await shell.run(['comment', 'octo/demo#1', 'hello'], { signal })
    expect(ran).toEqual({ code: 130, out: '', err: 'error: Interrupted\n' })
    expect(writes(sandbox.requests)).toBe(before)
  })

  it('--dry-run prints what would happen, and sends nothing', async () => {
    const { shell, sandbox } = place()
    const before = sandbox.requests.length
    const instance = place() === served ? served.serving.url : undefined
    const through = instance ? `through the instance at ${instance}` : 'without a running instance'
    const argv = ['comment', `${sandbox.url}/octo/demo/issues/1`, 'héllo', '--dry-run']
    expect(await shell.run(argv)).toEqual({
      code: 0,
      out: '',
      err: `would comment on octo/demo#1 (6 bytes) at ${sandbox.url} as ${USER}, ${through}\n`,
    })
    const plan = {
      v: 1,
      dryRun: true,
      action: 'comment',
      target: 'octo/demo#1',
      user: USER,
      provider: 'sandbox',
      providerUrl: sandbox.url,
      through: instance ?? null,
      request: { owner: 'octo', repo: 'demo', issueNumber: 1, body: 'héllo' },
    }
    const ran = await shell.run([...argv, '--json'])
    expect(ran).toEqual({ code: 0, out: `${JSON.stringify(plan)}\n`, err: '' })
    expect(sandbox.requests).toHaveLength(before)
  })
})

const SECONDARY = 'You have exceeded a secondary rate limit. Please wait a few minutes before you try again.'

function writes(requests: readonly { readonly method: string; readonly path: string }[]): number {
  return requests.filter(({ method, path }) => method !== 'GET' && path.startsWith('/api/')).length
}

describe('a usage error, exit 2', () => {
  it.each([
    [
      ['nonsense', 'x'],
      '"nonsense" is not an issue, pull request or comment. Give for example octo/demo#12, or its web address',
    ],
    [
      ['https://gitlab.com/octo/demo/issues/1', 'x'],
      'The address is on https://gitlab.com, but this profile uses https://github.com. Give an address there, or owner/repo#12',
    ],
    [['octo/demo#1', ' '], 'The text is empty'],
    [[], 'No target given. Give owner/repo#12, or --from'],
    [['--from', '7', 'octo/demo#1', 'x'], 'The target is given twice: as "octo/demo#1" and with --from 7'],
    [['octo/demo#1', 'x', '--sticky', 'a key'], '--sticky: must be 1 to 100 of A-Z a-z 0-9 . _ : / -'],
    [['octo/demo#1', 'x', '--sticky', 'k-->'], '--sticky: must be 1 to 100 of A-Z a-z 0-9 . _ : / -'],
    [['octo/demo#1', '-'], 'The text is empty'],
    [
      ['octo/demo#1', 'x', '--body-file', 'y'],
      'The text is given twice: as an argument and with --body-file',
    ],
    [['octo/demo#1'], 'No text given. Give it as an argument, with --body-file, or - to read standard input'],
    [
      ['octo/demo#1', 'x', '--user', 'a b'],
      '--user: must be 1–256 bytes without white space, control characters or "/"',
    ],
  ])('%j', async (argv, message) => {
    expect(await shell().run(['comment', ...argv])).toEqual({ code: 2, out: '', err: `error: ${message}\n` })
  })

  it('a text that is longer than the service accepts', async () => {
    const err = 'error: Request too large\n'
    const long = 'x'.repeat(1_048_570)
    expect(await alone.shell.run(['comment', 'octo/demo#1', long])).toEqual({ code: 2, out: '', err })
  })
})

it('interrupted while it waits for standard input ends, exit 130', async () => {
  const abort = new AbortController()
  const stdin = new PassThrough()
  const running = alone.shell.run(['comment', 'octo/demo#1', '-'], { stdin, signal: abort.signal })
  abort.abort(INTERRUPTED)
  expect(await running).toEqual({ code: 130, out: '', err: 'error: Interrupted\n' })
  expect(stdin.destroyed).toBe(true)
})

it('fails when the code host cannot be reached: exit 8, without a warning of a possible write', async () => {
  await using gone = await startAlone()
  await gone.sandbox[Symbol.asyncDispose]()
  const err = 'error: The sandbox could not be reached (connection refused)\n'
  expect(await gone.shell.run(['comment', 'octo/demo#1', 'x'])).toEqual({ code: 8, out: '', err })
})

it('--dry-run opens no connection at all without an instance, and needs no sign-in', async () => {
  await using host = await scriptedServer(() => ({}))
  const env = { RELAY_PROVIDER: 'gitea', RELAY_PROVIDER_URL: `${host.url}/git` }
  const ran = await shell(env).run(['comment', `${host.url}/git/octo/demo/issues/1`, 'x', '--dry-run'])
  const err = `would comment on octo/demo#1 (1 byte) at ${host.url}/git as ada, without a running instance\n`
  expect(ran).toEqual({ code: 0, out: '', err })
  expect(host.received).toEqual([])
})
