import { describe, expect, it } from 'vitest'
import { HEAD, type Happening, MADE, mergingHost } from '../kit/merging-host.js'
import { CLIENT, hostVariables, place } from '../kit/place.js'
import { fails, prints, type Ran } from '../kit/run.js'
import { shared } from './fixture.js'

const seams = { limits: { mergeDelay: 1, mergeTime: 20_000 } }
/** For what does not change by waiting. */
const endless = { limits: { mergeDelay: 1, mergeTime: 300 } }

const MERGED = { code: 0, out: `${MADE}\n` }
const not = (why: string) => ({ code: 8, out: '', why: `Not merged: ${why}` })
const ALREADY = not('it is already merged')
const NEW_HEAD = not('its head is now another commit')
const MOVED = 'octo/demo#2 is not merged yet: its base branch has just changed; trying again for up to 20 s'
const CHECKS = ' is checking whether it can be merged'

describe.each(['github', 'gitea'] as const)('relay merge when %s refuses for the moment', (kind) => {
  const isGitHub = kind === 'github'
  const conflict = not('it conflicts with its base branch')
  it.each<[string, Happening, { code: number; out: string; why?: string }, writes: number, said?: string]>([
    ['the base branch moved once', { moves: 1 }, MERGED, 2, MOVED],
    ['the base branch moved, and is checked', { moves: 2, checks: 1 }, MERGED, 4, CHECKS],
    ['it is being checked', { checks: 4 }, MERGED, 2, CHECKS],
    ['it conflicts', { conflicts: true }, conflict, 1],
    ['it is checked, and conflicts', { checks: 3, conflicts: true }, conflict, 1],
    [
      'the base branch moves all the time',
      { moves: 99 },
      not('its base branch changes all the time'),
      5,
      MOVED,
    ],
    ['it is never checked', { checks: 9999 }, not(isGitHub ? 'the code host is still' : 'it conflicts'), 1],
    ['its head moved meanwhile', { moves: 1, pushed: 'after the look' }, NEW_HEAD, 1],
    ['its head moved after the first refusal', { moves: 1, pushed: 'after the refusal' }, NEW_HEAD, 1],
    ['it is old, and is checked once it is looked at', { checks: 2, isOld: true }, MERGED, 2, CHECKS],
    ['its head moved while it was checked', { checks: 2, pushed: 'after the look' }, NEW_HEAD, 1],
    ['another merged it meanwhile', { moves: 1, mergedByOther: true }, ALREADY, 1],
    ['another merged it while it was checked', { checks: 2, mergedByOther: true }, ALREADY, 1],
  ])('%s', async (_, happening, { code, out, why }, writes, said = '') => {
    await using host = await mergingHost(kind, happening)
    await using here = await place({ host: 'none', env: hostVariables(kind, host.url, CLIENT) })
    await here.useToken('a-token')
    const { conflicts, checks = 0 } = happening
    const limits = conflicts || checks > 99 ? endless : seams
    const ran = await here.runWith(
      { seams: limits },
      'merge',
      'octo/demo#2',
      '--method',
      'squash',
      '--title',
      'T',
    )
    expect({ code: ran.code, out: ran.out, writes: host.writes.length }).toEqual({ code, out, writes })
    expect(ran.err).toContain(why ?? said)
    expect(ran.err).toContain(said)
    // Each is the merge that was asked for, of the head that it had then.
    const [first] = host.writes
    const pinned = isGitHub ? { ...first, sha: HEAD } : { ...first, head_commit_id: HEAD }
    expect(host.writes).toEqual(host.writes.map(() => pinned))
  })

  it('says within about a second that it conflicts, if nothing was pushed lately', async () => {
    await using host = await mergingHost(kind, { conflicts: true, isOld: true })
    await using here = await place({ host: 'none', env: hostVariables(kind, host.url, CLIENT) })
    await here.useToken('a-token')
    const began = performance.now()
    const { code, err } = await here.run('merge', 'octo/demo#2')
    expect(performance.now() - began).toBeLessThan(3000)
    const words = isGitHub ? 'GitHub: Pull Request is not mergeable' : 'Gitea: Please try again later'
    const why = `error: Not merged: it conflicts with its base branch (${words})\n`
    expect({ code, err: err.replace(/^octo.*\n/, ''), writes: host.writes.length }).toEqual({
      code: 8,
      err: why,
      writes: 1,
    })
  })

  it('is sent once, without a head, where the pull request cannot be read', async () => {
    await using host = await mergingHost(kind, { moves: 1, isHidden: true })
    await using here = await place({ host: 'none', env: hostVariables(kind, host.url, CLIENT) })
    await here.useToken('a-token')
    expect(await here.runWith({ seams }, 'merge', 'octo/demo#2')).toMatchObject({ code: 8, out: '' })
    expect(host.writes).toEqual([isGitHub ? {} : { Do: 'merge' }])
  })

  it('merges no other head than --match-head', async () => {
    await using host = await mergingHost(kind, { moves: 1, pushed: 'after the refusal' })
    await using here = await place({ host: 'none', env: hostVariables(kind, host.url, CLIENT) })
    await here.useToken('a-token')
    const { code, out } = await here.runWith({ seams }, 'merge', 'octo/demo#2', '--match-head', HEAD)
    expect({ code, out }).toEqual({ code: 8, out: '' })
    expect(host.writes).toHaveLength(1)
  })

  it('names each reason once', async () => {
    await using host = await mergingHost(kind, { moves: 2, checks: 1 })
    await using here = await place({ host: 'none', env: hostVariables(kind, host.url, CLIENT) })
    await here.useToken('a-token')
    const { err } = await here.runWith({ seams }, 'merge', 'octo/demo#2')
    const lines = err.trimEnd().split('\n')
    const reasons = [expect.stringContaining(CHECKS), MOVED]
    expect(lines).toEqual(reasons)
  })
})

describe('merges at the same moment', () => {
  const here = shared(() => place({ signedIn: true }))

  it('are one merge, and the others say that it is merged', async () => {
    const all = await Promise.all(Array.from({ length: 6 }, () => here.run('merge', 'octo/demo#2')))
    const sha = here.sandbox.issue('octo/demo', 2)?.pull?.merge?.sha
    const losers: Ran[] = Array.from({ length: 5 }, () => fails(8, 'Not merged: it is already merged'))
    const byCode = all.toSorted((one, other) => one.code - other.code)
    expect(byCode).toEqual([prints(`${sha}\n`), ...losers])
  })
})
