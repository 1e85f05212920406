import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Delivery } from '../../src/journal/types.js'
import { GITEA, GITHUB } from '../helpers/delivery.js'
import { summarize } from '../../src/webhook/summary.js'

const summaryOf = (
  payload: unknown,
  { webhook } = GITHUB,
): Pick<Delivery, 'action' | 'repo' | 'number' | 'ref'> => summarize(payload, webhook)
const nothing = { action: null, repo: null, number: null }

describe('summarize', () => {
  it('finds action, repository and number', () => {
    const repository = { full_name: 'octo/demo' }
    expect(summaryOf({ action: 'opened', repository, number: 7, pull_request: { number: 7 } })).toEqual({
      action: 'opened',
      repo: 'octo/demo',
      number: 7,
    })
    expect(summaryOf({ issue: { number: 8 } })).toEqual({ ...nothing, number: 8 })
    expect(summaryOf({ pull_request: { number: 9 } })).toEqual({ ...nothing, number: 9 })
  })

  it.each([
    ['null', null],
    ['text', 'action'],
    ['a number', 5],
    ['an array', [{ action: 'opened' }]],
    [
      'values of other types',
      { action: 1, repository: 'octo/demo', number: '7', issue: [], pull_request: null },
    ],
    [
      'numbers that are not positive integers',
      { number: 0, issue: { number: -1 }, pull_request: { number: 1.5 } },
    ],
    ['a number too large', { number: 2 ** 53 }],
    ['empty text', { action: '', repository: { full_name: '' } }],
    ['text too long', { action: 'a'.repeat(257), repository: { full_name: 'a'.repeat(257) } }],
    ['control characters', { action: 'a\u001b[31m', repository: { full_name: 'a\nb' } }],
    ['a lone surrogate', { action: '\ud800' }],
  ])('finds nothing in %s', (_, payload) => {
    expect(summaryOf(payload)).toEqual(nothing)
  })

  it.each([
    ['a branch that was pushed', { ref: 'refs/heads/main' }, 'refs/heads/main'],
    ['a tag that was created', { ref: 'v1.0', ref_type: 'tag' }, 'v1.0'],
    ['the tag of a release', { action: 'published', release: { tag_name: 'v1.0' } }, 'v1.0'],
    ['the longest branch', { ref: `refs/heads/${'b'.repeat(255)}` }, `refs/heads/${'b'.repeat(255)}`],
    ['no longer branch', { ref: `refs/heads/${'b'.repeat(256)}` }, undefined],
    ['nothing in a value of another type', { ref: 7, release: 'v1.0' }, undefined],
    ['nothing in a name with control characters', { ref: 'refs/heads/a\n' }, undefined],
  ])('finds %s', (_, payload, ref) => {
    expect(summaryOf(payload).ref).toBe(ref)
  })

  it('finds the repository that was forked, which each code host sends in another field', () => {
    const [forked, fork] = [{ full_name: 'octo/demo' }, { full_name: 'ada/demo' }]
    expect(summaryOf({ repository: forked, forkee: fork }).repo).toBe('octo/demo')
    expect(summaryOf({ repository: fork, forkee: forked }, GITEA).repo).toBe('octo/demo')
    expect(summaryOf({ repository: fork }, GITEA).repo).toBe('ada/demo')
  })

  it('keeps text of 256 characters', () => {
    expect(summaryOf({ action: 'a'.repeat(256) })).toEqual({ ...nothing, action: 'a'.repeat(256) })
  })

  it('accepts any JSON', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (payload) => {
        expect(Object.keys({ ref: null, ...summaryOf(payload) })).toEqual(['ref', 'action', 'repo', 'number'])
      }),
    )
  })
})
