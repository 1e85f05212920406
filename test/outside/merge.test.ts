import { describe, expect, it } from 'vitest'
import { MERGE_COMMIT } from '../kit/gitea.js'
import { CLIENT, hostVariables, place } from '../kit/place.js'
import { receiver } from '../kit/receiver.js'
import { fails, prints } from '../kit/run.js'
import { fresh, json, notes, shared } from './fixture.js'

/** Done at once; it takes the place of the fault that the repository would meet. */
const NO_FAULT = { kind: 'slow', ms: 1 } as const
const SHA = 'a'.repeat(40)

describe('relay merge', () => {
  const here = shared(() => place({ signedIn: true }))

  it('merges the given head, and prints the commit; a second merge is refused, exit 8', async () => {
    const { sandbox } = here
    const head = sandbox.issue('octo/demo', 2)?.pull?.head.sha ?? ''
    const how = ['--method', 'squash', '--title', 'T', '--message', 'M']
    const argv = ['merge', `${sandbox.url}/octo/demo/pull/2`, ...how, '--match-head', head.toUpperCase()]
    const ran = await here.run(...argv)
    const merge = sandbox.issue('octo/demo', 2)?.pull?.merge
    expect(merge).toMatchObject({ method: 'squash', title: 'T', message: 'M', user: 'octo' })
    expect(ran).toEqual(prints(`${merge?.sha}\n`))
    expect(await here.run(...argv)).toEqual(fails(8, 'Not merged: it is already merged'))
  })

  it('prints an object under --json, and a sentence on a terminal', async () => {
    const { sandbox } = here
    const shaOf = (repo: string, n: number) => sandbox.issue(repo, n)?.pull?.merge?.sha
    const object = await json(here.run('merge', 'octo/demo#5', '--json'))
    expect(object).toEqual({ v: 1, merged: true, sha: shaOf('octo/demo', 5) })
    sandbox.faults.next('merge', NO_FAULT)
    const argv = ['merge', 'octo/fault-502#2', '--color', 'never']
    const { out } = await here.runWith({ terminal: { streams: ['stdout'] } }, ...argv)
    const sha = shaOf('octo/fault-502', 2)
    expect([sha, out]).toEqual([
      expect.stringMatching(/^[\da-f]{40}$/),
      `Merged octo/fault-502#2 as ${sha}\n`,
    ])
  })
})

describe('at a Gitea under a path', () => {
  const here = shared(() => place({ host: 'gitea', signedIn: true }))

  it('prints the commit, and says why there is none, exit 8', async () => {
    const ran = await here.run('merge', `${here.gitea.url}/octo/demo/pulls/1`)
    expect(ran).toEqual(prints(`${MERGE_COMMIT}\n`))
    expect(await here.run('merge', 'octo/demo#1')).toEqual(fails(8, 'Not merged: it is already merged'))
    const issue = 'Gitea has no pull request with this number there'
    expect(await here.run('merge', 'octo/demo#7')).toEqual(fails(8, issue))
  })

  it('reports a merge that is scheduled, and prints no result', async () => {
    const later = 'octo/demo#2 is not merged yet. The code host merges it when its checks have passed\n'
    expect(await here.run('merge', 'octo/demo#2')).toEqual(notes(later))
    const out = '{"v":1,"merged":false,"sha":null}\n'
    expect(await here.run('merge', 'octo/demo#2', '--json')).toEqual({ code: 0, out, err: later })
  })
})

describe('relay merge --if-green', () => {
  const here = fresh(() => place({ signedIn: true }))
  const head = (): string => here.sandbox.issue('octo/demo', 2)?.pull?.head.sha ?? ''
  const report = async (context: string, state: string): Promise<void> => {
    const response = await fetch(`${here.sandbox.url}/api/v3/repos/octo/demo/statuses/${head()}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${await here.sandbox.token()}` },
      body: JSON.stringify({ context, state }),
    })
    expect(response.status).toBe(201)
  }
  const merge = (...more: string[]) => here.run('merge', 'octo/demo#2', '--if-green', ...more)
  const notMerged = (why: string) =>
    fails(3, `octo/demo#2 is not merged: its head ${head().slice(0, 7)} ${why}`)
  const NONE = 'has no checks and no statuses. They may not have begun; try again later'

  it('names what failed, what has not finished, and that there is none, exit 3; and merges what has succeeded', async () => {
    expect(await merge()).toEqual(notMerged(NONE))
    await report('build', 'success')
    await report('lint', 'pending')
    expect(await merge()).toEqual(notMerged('has not finished lint (pending)'))
    await report('lint', 'failure')
    expect(await merge()).toEqual(notMerged('has not succeeded in lint (failure)'))
    const failed = await merge('--json')
    expect({ code: failed.code, out: failed.out }).toEqual({ code: 3, out: '' })
    expect(JSON.parse(failed.err)).toMatchObject({ type: 'error', code: 'checks_failed' })
    expect(here.sandbox.merges).toHaveLength(0)
    await report('lint', 'success')
    const ran = await merge()
    const made = here.sandbox.issue('octo/demo', 2)?.pull?.merge
    expect(ran).toEqual(prints(`${made?.sha}\n`))
  })

  it('does not merge another head than --match-head, exit 8', async () => {
    await report('build', 'success')
    expect(await merge('--match-head', SHA)).toEqual(
      fails(8, `octo/demo#2 is not merged: its head is ${head()}`),
    )
    expect(await merge('--match-head', head().toUpperCase())).toMatchObject({ code: 0 })
  })

  it('reads the checks with --dry-run too, and merges nothing', async () => {
    expect(await merge('--dry-run')).toEqual(notMerged(NONE))
    await report('build', 'success')
    const would = `would merge octo/demo#2 (squash) if its head is still ${head()}, whose checks and statuses have all succeeded, at http`
    expect(await merge('--dry-run', '--method', 'squash')).toEqual({
      code: 0,
      out: '',
      err: expect.stringContaining(would),
    })
    const { request } = await json(merge('--dry-run', '--json'))
    expect(request).toEqual({ owner: 'octo', repo: 'demo', pullNumber: 2, sha: head() })
    expect(await merge('--dry-run', '--match-head', SHA)).toMatchObject({ code: 8 })
    expect(here.sandbox.merges).toHaveLength(0)
  })

  it('merges nothing when the checks cannot be read, exit 8', async () => {
    here.sandbox.faults.next('checks', '502')
    expect(await merge()).toEqual(fails(8, 'The sandbox failed (502)'))
    expect(here.sandbox.merges).toHaveLength(0)
  })

  it('does not merge a head that moves meanwhile: the merge names the head that was checked', async () => {
    const sha = 'ab'.repeat(20)
    await using host = await receiver(({ method, path }) => {
      if (method === 'PUT') return { status: 409, body: { message: 'Head branch was modified.' } }
      if (path.includes('/pulls/')) return { body: { head: { sha } } }
      return { body: { login: 'octo', check_runs: [], statuses: [{ context: 'build', state: 'success' }] } }
    })
    await using here = await place({ host: 'none', env: hostVariables('github', host.url, CLIENT) })
    await here.useToken('gho_token')
    expect(await here.run('merge', 'octo/demo#2', '--if-green')).toEqual(
      fails(8, 'GitHub refused: Head branch was modified.'),
    )
    const writes = host.received.filter(({ method }) => method === 'PUT')
    expect(writes.map(({ body }) => JSON.parse(body.toString()))).toEqual([{ sha }])
  })
})
