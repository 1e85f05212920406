import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { ZodMiniType } from 'zod/mini'
import { parseStickyKey } from '../../src/codehost/pipelines.js'
import { actionRequests, parseRequest } from '../../src/codehost/requests.js'

const {
  comment: commentRequest,
  merge: mergeRequest,
  react: reactRequest,
} = actionRequests({ nestedOwners: false })

const bytes = (body: unknown) => Buffer.from(JSON.stringify(body))
const refused = (why: string) =>
  expect.objectContaining({ kind: 'bad_request', message: `Invalid request: ${why}` })

describe('the body of an action', () => {
  it('has an error for every invalid field, at most ten', () => {
    const place = { owner: '..', repo: 7, issueNumber: 0 }
    const react = { ...place, content: '👍', commentId: 1, reviewCommentId: 2, user: 1 }
    const problems = [
      'owner: must be 1 to 100 of A-Z a-z 0-9 . _ - and not . or ..',
      'repo: must be a string',
      'issueNumber: must be a positive whole number',
      'content: must be one of +1, -1, laugh, confused, heart, hooray, rocket, eyes',
      'reviewCommentId: not together with commentId',
      'user: unknown field',
    ]
    expect(() => parseRequest(reactRequest, bytes(react))).toThrow(refused(problems.join('; ')))
    const many = Object.fromEntries(Array.from({ length: 99 }, (_, n) => [`${n}`.padStart(99, '0'), 1]))
    const long = Array.from({ length: 6 }, () => `${'0'.repeat(50)}: unknown field`)
    const missing = ['owner', 'repo', 'issueNumber', 'body'].map((field) => `${field}: required`)
    expect(() => parseRequest(commentRequest, bytes(many))).toThrow(refused([...missing, ...long].join('; ')))
  })

  it('throws nothing but bad_request, for any input', () => {
    const json = fc.json().map((text) => Buffer.from(text))
    const schemas = fc.constantFrom<ZodMiniType>(commentRequest, mergeRequest, reactRequest)
    fc.assert(
      fc.property(fc.oneof(fc.uint8Array(), json), schemas, (input, schema) => {
        expect(() => parseRequest(schema, input)).toThrow(expect.objectContaining({ kind: 'bad_request' }))
      }),
    )
  })

  it('names no path: owner and repository are one segment each', () => {
    const characters = fc.string({ unit: fc.constantFrom('.', '/', '%', 'a', 'é', '\n', '-'), maxLength: 4 })
    fc.assert(
      fc.property(characters, (owner) => {
        const comment = { owner, repo: 'demo', issueNumber: 1, body: 'x' }
        const isName = commentRequest.safeParse(comment).success
        expect(isName).toBe(/^[a.-]+$/.test(owner) && owner !== '.' && owner !== '..')
      }),
    )
  })

  it('takes a whole commit id, in any case', () => {
    const merge = { owner: 'octo', repo: 'demo', pullNumber: 1 }
    const sha = (text: string): unknown => parseRequest(mergeRequest, bytes({ ...merge, sha: text }))
    expect(sha('AB'.repeat(20))).toEqual({ ...merge, sha: 'ab'.repeat(20) })
    expect(sha('ab'.repeat(32))).toEqual({ ...merge, sha: 'ab'.repeat(32) })
    expect(() => sha('abc1234')).toThrow(
      refused('sha: must be a whole commit id of 40 or 64 hexadecimal digits'),
    )
  })
})

it('a sticky comment may have a key that cannot end the comment that it is written in', () => {
  for (const key of ['ci', 'CI/build:1.2_x-y', 'a'.repeat(100), '--']) expect(parseStickyKey(key)).toBe(key)
  const why = '--sticky: must be 1 to 100 of A-Z a-z 0-9 . _ : / -'
  for (const key of ['', 'a b', 'a>', 'é', 'a'.repeat(101), 'a\n'])
    expect(() => parseStickyKey(key)).toThrow(why)
})
