import { describe, expect, it } from 'vitest'
import { createProvider } from '../../src/providers/open.js'
import { scriptedServer, type Answer } from '../helpers/scripted-server.js'

const TOKEN = 'canary_0123456789'
const INPUT = { owner: 'octo', repo: 'demo', pullNumber: 8 }
const MAY_NOT = 'Not merged: this account or its token may not merge it'
const HIDDEN = ' (no such repository or number, or no access to it)'

const refusal = (status: number, message: string): Answer => ({ status, body: { message } })
const open = (fields: object): Answer => ({ body: { number: 8, state: 'open', merged: false, ...fields } })
const merged: Answer = { body: { number: 8, state: 'closed', merged: true, mergeable: null } }
const closed: Answer = { body: { number: 8, state: 'closed', merged: false, mergeable: true } }

/** The kind and text of a merge's error, when the write and the read of the pull request are answered so. */
async function attempt(name: 'github' | 'gitea', write: Answer, read: Answer) {
  await using server = await scriptedServer(({ method }) => (method === 'GET' ? read : write))
  const error: unknown = await createProvider({ name, url: server.url })
    .merge(TOKEN, INPUT)
    .catch((reason: unknown) => reason)
  return {
    kind: Object(error).kind,
    message: Object(error).message,
    sent: server.received.map(({ method, path }) => `${method} ${path.replace(/^\/api\/v\d/, '')}`),
  }
}

const PULL = '/repos/octo/demo/pulls/8'

describe('a merge that GitHub refuses', () => {
  const generic = refusal(405, 'Pull Request is not mergeable')
  const missing = refusal(404, 'Not Found')
  const said = ' (GitHub: Pull Request is not mergeable)'
  const check = 'Required status check "ci" is expected.'
  it.each<[string, Answer, Answer, string, string]>([
    ['already merged', generic, merged, 'conflict', 'Not merged: it is already merged'],
    ['closed', generic, closed, 'conflict', 'Not merged: it is closed'],
    [
      'in conflict',
      generic,
      open({ mergeable: false, mergeable_state: 'dirty' }),
      'conflict',
      `Not merged: it conflicts with its base branch${said}`,
    ],
    [
      'behind',
      generic,
      open({ mergeable: true, mergeable_state: 'behind' }),
      'conflict',
      `Not merged: its branch must first be brought up to date with the base branch${said}`,
    ],
    [
      'without its checks',
      refusal(405, check),
      open({ mergeable: true, mergeable_state: 'blocked' }),
      'conflict',
      `Not merged: approvals or checks are missing (GitHub: ${check})`,
    ],
    [
      'a draft',
      refusal(405, 'Pull Request is still a draft'),
      open({ draft: true, mergeable: true, mergeable_state: 'draft' }),
      'conflict',
      'Not merged: it is a draft (GitHub: Pull Request is still a draft)',
    ],
    [
      'still being checked',
      generic,
      open({ mergeable: null, mergeable_state: 'unknown' }),
      'conflict',
      `Not merged: the code host is still checking whether it can be merged; try again${said}`,
    ],
    [
      'for a reason that only GitHub names',
      refusal(405, 'Rebase merges are not allowed on this repository.'),
      open({ mergeable: true, mergeable_state: 'clean' }),
      'conflict',
      'GitHub refused: Rebase merges are not allowed on this repository.',
    ],
    [
      'with read access only',
      missing,
      open({ mergeable: true, mergeable_state: 'clean' }),
      'forbidden',
      `${MAY_NOT} (GitHub: Not Found)`,
    ],
    ['not there', missing, missing, 'not_found', `GitHub refused: Not Found${HIDDEN}`],
    ['that cannot be read', generic, 'reset', 'conflict', 'GitHub refused: Pull Request is not mergeable'],
    [
      'that cannot be understood',
      generic,
      { body: [] },
      'conflict',
      'GitHub refused: Pull Request is not mergeable',
    ],
  ])('%s', async (_, write, read, kind, message) => {
    const sent = [`PUT ${PULL}/merge`, `GET ${PULL}`]
    expect(await attempt('github', write, read)).toEqual({ kind, message, sent })
  })

  it.each([403, 409, 422, 502])('with %i is not explained', async (status) => {
    const { sent } = await attempt('github', refusal(status, 'no'), merged)
    expect(sent).toEqual([`PUT ${PULL}/merge`])
  })
})

describe('a merge that Gitea refuses', () => {
  const missing = refusal(404, 'Not Found')
  it.each<[string, Answer, Answer, string, string]>([
    ['already merged', refusal(405, ''), merged, 'conflict', 'Not merged: it is already merged'],
    ['already merged, 1.15', missing, merged, 'conflict', 'Not merged: it is already merged'],
    ['closed', missing, closed, 'conflict', 'Not merged: it is closed'],
    [
      'without merge access',
      refusal(405, 'User not allowed to merge PR'),
      open({ mergeable: true }),
      'forbidden',
      `${MAY_NOT} (Gitea: User not allowed to merge PR)`,
    ],
    [
      'a draft, by its title',
      refusal(405, 'Work in progress PRs cannot be merged'),
      open({ mergeable: false }),
      'conflict',
      'Not merged: it is a draft (Gitea: Work in progress PRs cannot be merged)',
    ],
    [
      'in conflict',
      refusal(405, 'Please try again later'),
      open({ draft: false, mergeable: false }),
      'conflict',
      'Not merged: it conflicts with its base branch, or the code host is still checking that (Gitea: Please try again later)',
    ],
    [
      'without its approvals',
      refusal(405, 'not allowed to merge [reason: Does not have enough approvals]'),
      open({ mergeable: true }),
      'conflict',
      'Gitea refused: not allowed to merge [reason: Does not have enough approvals]',
    ],
    ['not there', missing, missing, 'not_found', `Gitea refused: Not Found${HIDDEN}`],
  ])('%s', async (_, write, read, kind, message) => {
    const sent = [`POST ${PULL}/merge`, `GET ${PULL}`]
    expect(await attempt('gitea', write, read)).toEqual({ kind, message, sent })
  })
})
