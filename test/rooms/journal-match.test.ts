import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { RelayError } from '../../src/base/errors.js'
import { matches, parseMatch } from '../../src/journal/filter.js'

const name = fc.stringMatching(/^[a-z_]{1,8}$/)
const action = fc.option(name)

describe('a match', () => {
  it.each([
    ['*', 'push', null, true],
    ['*', 'issues', 'opened', true],
    ['push', 'push', null, true],
    ['push.*', 'push', null, true],
    ['push', 'pushed', null, false],
    ['pull_request', 'pull_request', 'opened', true],
    ['pull_request', 'pull_request_review', 'submitted', false],
    ['pull_request.*', 'pull_request', 'closed', true],
    ['pull_request.opened', 'pull_request', 'opened', true],
    ['pull_request.opened', 'pull_request', 'reopened', false],
    ['pull_request.opened', 'pull_request', null, false],
    ['*.closed', 'issues', 'closed', true],
    ['*.closed', 'push', null, false],
    ['*.*', 'push', null, true],
    ['repository_dispatch.deploy.eu', 'repository_dispatch', 'deploy.eu', true],
    ['Push Hook', 'Push Hook', null, true],
    ['pullrequest:created', 'pullrequest:created', null, true],
  ])('%s, given %s and %s: %s', (text, event, action, expected) => {
    expect(matches(parseMatch(text), { event, action })).toBe(expected)
  })

  it.each(['', '.', 'push.', '.opened', 'pu*', 'pull_*.opened', 'push.*ed', '**', 'a=b', ' push', 'push '])(
    'is not: %j',
    (text) => {
      expect(() => parseMatch(text)).toThrow(
        new RelayError(
          'usage',
          `Invalid match '${text}': write event or event.action, with * for all of a part`,
        ),
      )
    },
  )

  it('written from a delivery finds that delivery', () => {
    fc.assert(
      fc.property(name, action, (event, action) => {
        const text = action === null ? event : `${event}.${action}`
        expect(parseMatch(text)).toEqual({ text })
        for (const wide of [text, event, `${event}.*`, '*', '*.*']) {
          expect(matches(parseMatch(wide), { event, action })).toBe(true)
        }
      }),
    )
  })
})
