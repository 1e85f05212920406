import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Delivery } from '../../src/journal/delivery.js'
import { summarize } from '../../src/webhook/summary.js'

const summaryOf = (payload: unknown): Pick<Delivery, 'action' | 'repo' | 'number'> =>
  summarize(Buffer.from(JSON.stringify(payload)))
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
    ['numbers that number nothing', { number: 0, issue: { number: -1 }, pull_request: { number: 1.5 } }],
    ['a number too large', { number: 2 ** 53 }],
    ['empty text', { action: '', repository: { full_name: '' } }],
    ['text too long', { action: 'a'.repeat(257), repository: { full_name: 'a'.repeat(257) } }],
    ['control characters', { action: 'a\u001b[31m', repository: { full_name: 'a\nb' } }],
    ['a lone surrogate', { action: '\ud800' }],
  ])('finds nothing in %s', (_, payload) => {
    expect(summaryOf(payload)).toEqual(nothing)
  })

  it('keeps text of 256 characters', () => {
    expect(summaryOf({ action: 'a'.repeat(256) })).toEqual({ ...nothing, action: 'a'.repeat(256) })
  })

  it('takes any JSON', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (payload) => {
        expect(Object.keys(summaryOf(payload))).toEqual(['action', 'repo', 'number'])
      }),
    )
  })
})
