import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { MERGE_COMMIT } from '../kit/gitea.js'
import { type Place, place, USER } from '../kit/place.js'
import { fails, prints } from '../kit/run.js'

const SHA = 'a'.repeat(40)
const TERMINAL = { terminal: { streams: ['stdout'] } } as const

let here: Place

beforeAll(async () => {
  here = await place({ signedIn: true })
})
afterAll(() => here[Symbol.asyncDispose]())

describe('relay merge', () => {
  it('merges the given head, and prints the commit; a second merge is refused, exit 8', async () => {
    const { sandbox } = here
    const head = sandbox.issue('octo/demo', 2)?.pull?.head.sha ?? ''
    const how = ['--method', 'squash', '--title', 'T', '--message', 'M']
    const argv = ['merge', `${sandbox.url}/octo/demo/pull/2`, ...how, '--match-head', head.toUpperCase()]
    const ran = await here.run(...argv)
    const merge = sandbox.issue('octo/demo', 2)?.pull?.merge
    expect(merge).toMatchObject({ method: 'squash', title: 'T', message: 'M', user: 'octo' })
    expect(ran).toEqual(prints(`${merge?.sha}\n`))
    const refused = 'error: Not merged: it is already merged\n'
    expect(await here.run(...argv)).toEqual({ code: 8, out: '', err: refused })
  })

  it('prints an object under --json', async () => {
    const { sandbox } = here
    const { code, out, err } = await here.run('merge', 'octo/demo#5', '--json')
    const sha = sandbox.issue('octo/demo', 5)?.pull?.merge?.sha
    const object = { v: 1, merged: true, sha }
    expect({ code, out, err }).toEqual(prints(`${JSON.stringify(object)}\n`))
  })

  it('prints a sentence on a terminal', async () => {
    const { sandbox } = here
    sandbox.faults.next('merge', NO_FAULT)
    const { out } = await here.runWith(TERMINAL, 'merge', 'octo/fault-502#2', '--color', 'never')
    const sha = sandbox.issue('octo/fault-502', 2)?.pull?.merge?.sha
    expect([sha, out]).toEqual([
      expect.stringMatching(/^[\da-f]{40}$/),
      `Merged octo/fault-502#2 as ${sha}\n`,
    ])
  })

  it('leaves a head that has moved alone, exit 8', async () => {
    const err = 'error: The sandbox refused: Head branch was modified. Review and try the merge again.\n'
    const argv = ['merge', 'octo/fault-slow#2', '--match-head', SHA]
    here.sandbox.faults.next('merge', NO_FAULT)
    expect(await here.run(...argv)).toEqual({ code: 8, out: '', err })
  })

  it('--dry-run prints what would happen, and sends nothing', async () => {
    const { sandbox } = here
    const before = sandbox.requests.length
    const argv = ['merge', 'octo/demo#2', '--method', 'rebase', '--match-head', SHA, '--dry-run']
    const { code, out, err } = await here.run(...argv)
    expect({ code, out }).toEqual({ code: 0, out: '' })
    expect(err).toContain(
      `would merge octo/demo#2 (rebase) if its head is ${SHA} at ${sandbox.url} as ${USER}\n`,
    )
    const { request }: { request: unknown } = JSON.parse((await here.run(...argv, '--json')).out)
    expect(request).toEqual({ owner: 'octo', repo: 'demo', pullNumber: 2, method: 'rebase', sha: SHA })
    expect(sandbox.requests).toHaveLength(before)
  })
})

/** Done at once; it takes the place of the fault that the repository would meet. */
const NO_FAULT = { kind: 'slow', ms: 1 } as const

describe('at a Gitea under a path', () => {
  let here: Place

  beforeAll(async () => {
    here = await place({ host: 'gitea', signedIn: true })
  })

  afterAll(() => here[Symbol.asyncDispose]())

  it('prints the commit', async () => {
    const ran = await here.run('merge', `${here.gitea.url}/octo/demo/pulls/1`)
    expect(ran).toEqual(prints(`${MERGE_COMMIT}\n`))
  })

  it('reports that it is already merged, exit 8', async () => {
    expect(await here.run('merge', 'octo/demo#1')).toEqual(fails(8, 'Not merged: it is already merged'))
  })

  it('says of an issue that no pull request has its number, exit 8', async () => {
    const err = 'error: Gitea has no pull request with this number there\n'
    expect(await here.run('merge', 'octo/demo#7')).toEqual({ code: 8, out: '', err })
  })

  it('reports a merge that is scheduled, and prints no result', async () => {
    const later = 'octo/demo#2 is not merged yet. The code host merges it when its checks have passed\n'
    expect(await here.run('merge', 'octo/demo#2')).toEqual({ code: 0, out: '', err: later })
    expect(await here.run('merge', 'octo/demo#2', '--json')).toEqual({
      code: 0,
      out: '{"v":1,"merged":false,"sha":null}\n',
      err: later,
    })
  })
})
