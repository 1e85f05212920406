import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { summarize } from '../../src/webhook/summary.js'

const nothing = { action: null, repo: null, number: null }

describe('summarize', () => {
  it('finds action, repository and number', () => {
    const repository = { full_name: 'octo/demo' }
    expect(summarize({ action: 'opened', repository, number: 7, pull_request: { number: 7 } })).toEqual({
      action: 'opened',
      repo: 'octo/demo',
      number: 7,
    })
    expect(summarize({ issue: { number: 8 } })).toEqual({ ...nothing, number: 8 })
    expect(summarize({ pull_request: { number: 9 } })).toEqual({ ...nothing, number: 9 })
  })

  it.each([
    ['null', null],
    ['text', 'action'],
    ['a number', 5],
    ['an array', [{ action: 'opened' }]],
    ['inherited fields', Object.create({ action: 'opened', number: 1 })],
    [
      'values of other types',
      { action: 1, repository: 'octo/demo', number: '7', issue: [], pull_request: null },
    ],
    ['numbers that number nothing', { number: 0, issue: { number: -1 }, pull_request: { number: 1.5 } }],
    ['a number too large', { number: 2 ** 53 }],
    ['empty text', { action: '', repository: { full_name: '' } }],
    ['text too long', { action: 'a'.repeat(257), repository: { full_name: 'a'.repeat(257) } }],
    ['control characters', { action: 'a\u001b[31m', repository: { full_name: 'a\nb' } }],
    ['a lone surrogate', { action: '\ud800' }],
  ])('finds nothing in %s', (_, payload) => {
    expect(summarize(payload)).toEqual(nothing)
  })

  it('keeps text of 256 characters', () => {
    expect(summarize({ action: 'a'.repeat(256) })).toEqual({ ...nothing, action: 'a'.repeat(256) })
  })

  it('never throws', () => {
    fc.assert(
      fc.property(fc.anything(), (payload) => {
        expect(Object.keys(summarize(payload))).toEqual(['action', 'repo', 'number'])
      }),
    )
  })
})
