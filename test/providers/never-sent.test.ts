import { emitterEventNames } from '@octokit/webhooks'
import { describe, expect, it } from 'vitest'
import { ACTIONS as GITEA } from '../../src/providers/gitea/actions.js'
import { ACTIONS as GITHUB } from '../../src/providers/github/actions.js'
import { whyNeverSent } from '../../src/providers/never-sent.js'
import { packagedEvents } from '../../src/fixtures/packaged.js'

const SENT = [
  ...emitterEventNames,
  '*',
  '*.*',
  '*.closed',
  'push.*',
  'pull_request.*',
  'repository_dispatch.anything',
]

describe('a match', () => {
  it('of what GitHub sends is right', () => {
    expect(SENT.filter((name) => whyNeverSent(name, 'github', GITHUB) !== undefined)).toEqual([])
  })

  it.each([
    ['github', GITHUB],
    ['gitea', GITEA],
  ])('of every packaged fixture of %s is right', (provider, all) => {
    // `push.newest` is a push of the newest generation.
    const names = packagedEvents(provider).filter((name) => !name.endsWith('.newest'))
    expect(names.filter((name) => whyNeverSent(name, provider, all) !== undefined)).toEqual([])
  })

  it.each([
    ['pul_request', 'github sends no event pul_request (did you mean pull_request?)'],
    ['Pull-Request.openned', 'github sends no event Pull-Request (did you mean pull_request.opened?)'],
    ['issue.opened', 'github sends no event issue (did you mean issues.opened?)'],
    ['pr', 'github sends no event pr (did you mean pull_request?)'],
    ['pr.*', 'github sends no event pr (did you mean pull_request.*?)'],
    ['merge', 'github sends no event merge (did you mean pull_request.closed?)'],
    ['tag', 'github sends no event tag (did you mean create?)'],
    ['nonsense', 'github sends no event nonsense'],
    [
      'pull_request.merged',
      'github sends pull_request with other actions than merged (did you mean pull_request.closed?)',
    ],
    [
      'pull_request.synchronized',
      'github sends pull_request with other actions than synchronized (did you mean pull_request.synchronize?)',
    ],
    ['watch.xyz', 'github sends watch with other actions than xyz: started'],
    ['push.created', 'github sends push without an action (did you mean push?)'],
    ['*.openned', 'github sends no event with the action openned (did you mean *.opened?)'],
  ])('%s is not', (match, why) => {
    expect(whyNeverSent(match, 'github', GITHUB)).toBe(why)
  })

  it('is right or wrong for one code host', () => {
    expect(whyNeverSent('check_run', 'gitea', GITEA)).toBe('gitea sends no event check_run')
    expect(whyNeverSent('pull_request.synchronized', 'gitea', GITEA)).toBeUndefined()
  })
})
