import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { merge } from '../../../src/cli/commands/merge/declaration.js'
import { fakeGitea, MERGE_COMMIT, type FakeGitea } from '../../helpers/gitea.js'
import {
  type Alone,
  keepToken,
  onTerminal,
  parsed,
  type Served,
  shell,
  startAlone,
  startServed,
  USER,
} from '../rig.js'

const SHA = 'a'.repeat(40)

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

describe('the command line of relay merge', () => {
  const options = { method: 'squash', title: 'T', message: 'M', matchHead: SHA, user: 'bob' }

  it.each([
    [['octo/demo#2'], ['octo/demo#2', {}]],
    [
      [
        'octo/demo#2',
        '--method',
        'squash',
        '--title',
        'T',
        '--message',
        'M',
        '--match-head',
        SHA,
        '--user',
        'bob',
      ],
      ['octo/demo#2', options],
    ],
  ])('%j', async (argv, given) => {
    expect(await parsed(merge, [...argv])).toEqual(given)
  })

  it.each([[['octo/demo#2', 'x']], [['octo/demo#2', '--method', 'octopus']]])('not %j', async (argv) => {
    await expect(parsed(merge, [...argv])).rejects.toMatchObject({ exitCode: 1 })
  })
})

describe.each([
  ['through the running instance', () => served],
  ['in this process, without one', () => alone],
])('relay merge %s', (_, place) => {
  it('merges the given head, and prints the commit; a second merge is refused, exit 8', async () => {
    const { shell, sandbox } = place()
    const head = sandbox.issue('octo/demo', 2)?.pull?.head.sha ?? ''
    const how = ['--method', 'squash', '--title', 'T', '--message', 'M']
    const argv = ['merge', `${sandbox.url}/octo/demo/pull/2`, ...how, '--match-head', head.toUpperCase()]
    const ran = await shell.run(argv)
    const merge = sandbox.issue('octo/demo', 2)?.pull?.merge
    expect(merge).toMatchObject({ method: 'squash', title: 'T', message: 'M', user: 'octo' })
    expect(ran).toEqual({ code: 0, out: `${merge?.sha}\n`, err: '' })
    const refused = 'error: Not merged: it is already merged\n'
    expect(await shell.run(argv)).toEqual({ code: 8, out: '', err: refused })
  })

  it('prints an object under --json', async () => {
    const { shell, sandbox } = place()
    const { code, out, err } = await shell.run(['merge', 'octo/demo#5', '--json'])
    const sha = sandbox.issue('octo/demo', 5)?.pull?.merge?.sha
    const object = { v: 1, merged: true, sha }
    expect({ code, out, err }).toEqual({ code: 0, out: `${JSON.stringify(object)}\n`, err: '' })
  })

  it('prints a sentence on a terminal', async () => {
    const { shell, sandbox } = place()
    sandbox.faults.next('merge', NO_FAULT)
    const out = await onTerminal(shell, ['merge', 'octo/fault-502#2'])
    const sha = sandbox.issue('octo/fault-502', 2)?.pull?.merge?.sha
    expect([sha, out]).toEqual([
      expect.stringMatching(/^[\da-f]{40}$/),
      `Merged octo/fault-502#2 as ${sha}\n`,
    ])
  })

  it('leaves a head that has moved alone, exit 8', async () => {
    const err = 'error: The sandbox refused: Head branch was modified. Review and try the merge again.\n'
    const argv = ['merge', 'octo/fault-slow#2', '--match-head', SHA]
    place().sandbox.faults.next('merge', NO_FAULT)
    expect(await place().shell.run(argv)).toEqual({ code: 8, out: '', err })
  })

  it('--dry-run prints what would happen, and sends nothing', async () => {
    const { shell, sandbox } = place()
    const before = sandbox.requests.length
    const argv = ['merge', 'octo/demo#2', '--method', 'rebase', '--match-head', SHA, '--dry-run']
    const { code, out, err } = await shell.run(argv)
    expect({ code, out }).toEqual({ code: 0, out: '' })
    expect(err).toContain(
      `would merge octo/demo#2 (rebase) if its head is ${SHA} at ${sandbox.url} as ${USER}, `,
    )
    const { request }: { request: unknown } = JSON.parse((await shell.run([...argv, '--json'])).out)
    expect(request).toEqual({ owner: 'octo', repo: 'demo', pullNumber: 2, method: 'rebase', sha: SHA })
    expect(sandbox.requests).toHaveLength(before)
  })
})

/** Done at once; it takes the place of the fault that the repository would meet. */
const NO_FAULT = { kind: 'slow', ms: 1 } as const

describe('a usage error, exit 2', () => {
  it.each([
    [
      ['https://github.com/octo/demo/issues/2'],
      'octo/demo#2 is an issue by its address. If it is a pull request, give octo/demo#2 as the target',
    ],
    [[], 'No target given. Give owner/repo#12, or --from'],
    [['octo/demo#2', '--from', '-'], 'The target is given twice: as "octo/demo#2" and with --from -'],
    [
      ['octo/demo'],
      '"octo/demo" is not an issue, pull request or comment. Give for example octo/demo#12, or its web address',
    ],
    [
      ['octo/demo#2', '--match-head', 'abc1234'],
      '--match-head: must be a full commit id of 40 or 64 hexadecimal digits',
    ],
  ])('%j', async (argv, message) => {
    expect(await shell().run(['merge', ...argv])).toEqual({ code: 2, out: '', err: `error: ${message}\n` })
  })
})

describe('at a Gitea under a path', () => {
  let gitea: FakeGitea
  let here: ReturnType<typeof shell>

  beforeAll(async () => {
    gitea = await fakeGitea('/git')
    here = shell({ RELAY_PROVIDER: 'gitea', RELAY_PROVIDER_URL: gitea.url })
    await keepToken(here, { accessToken: gitea.state.token, origin: new URL(gitea.url).origin })
  })

  afterAll(() => gitea[Symbol.asyncDispose]())

  it('prints the commit', async () => {
    const ran = await here.run(['merge', `${gitea.url}/octo/demo/pulls/1`])
    expect(ran).toEqual({ code: 0, out: `${MERGE_COMMIT}\n`, err: '' })
  })

  it('reports that it is already merged, exit 8', async () => {
    expect(await here.run(['merge', 'octo/demo#1'])).toEqual({
      code: 8,
      out: '',
      err: 'error: Not merged: it is already merged\n',
    })
  })

  it('reports a merge that is scheduled, and prints no result', async () => {
    const later = 'octo/demo#2 is not merged yet. The code host merges it when its checks have passed\n'
    expect(await here.run(['merge', 'octo/demo#2'])).toEqual({ code: 0, out: '', err: later })
    expect(await here.run(['merge', 'octo/demo#2', '--json'])).toEqual({
      code: 0,
      out: '{"v":1,"merged":false,"sha":null}\n',
      err: later,
    })
  })
})
