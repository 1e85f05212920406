import { assert, json, oneof, property, uint8Array } from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { ZodType } from 'zod'
import { commentRequest, mergeRequest, parseRequest, reactRequest } from '../../src/actions/requests.js'
import { RelayError } from '../../src/base/errors.js'

const bytes = (body: unknown) => Buffer.from(JSON.stringify(body))
const refused = (why: string) =>
  expect.objectContaining({ kind: 'bad_request', message: `Invalid request: ${why}` })

const repo = { owner: 'octo', repo: 'demo' }
const name = 'must be 1 to 100 of A-Z a-z 0-9 . _ - and not . or ..'
const number = 'must be a positive whole number'

describe('a body', () => {
  it.each<[string, Uint8Array, string]>([
    ['empty', Buffer.from(''), 'not valid JSON'],
    ['cut off', Buffer.from('{"owner":'), 'not valid JSON'],
    ['with something after it', Buffer.from('{} {}'), 'not valid JSON'],
    ['with a byte order mark', Buffer.from('\ufeff{}'), 'not valid JSON'],
    ['not UTF-8', Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d]), 'not valid JSON'],
    ['a list', bytes([]), 'not a JSON object'],
    ['null', bytes(null), 'not a JSON object'],
    ['a string', bytes('x'), 'not a JSON object'],
  ])('%s is refused', (_, body, why) => {
    for (const schema of [commentRequest, mergeRequest, reactRequest])
      expect(() => parseRequest<unknown>(schema, body)).toThrow(refused(why))
  })

  it('has an error for every invalid field', () => {
    const react = {
      owner: '..',
      repo: 7,
      issueNumber: 0,
      content: '👍',
      commentId: 1,
      reviewCommentId: 2,
      user: 1,
    }
    const complaints = [
      `owner: ${name}`,
      'repo: must be a string',
      `issueNumber: ${number}`,
      'content: must be one of +1, -1, laugh, confused, heart, hooray, rocket, eyes',
      'user: unknown field',
      'reviewCommentId: not together with commentId',
    ]
    expect(() => parseRequest(reactRequest, bytes(react))).toThrow(refused(complaints.join('; ')))
  })

  it('has at most ten errors, of limited length', () => {
    const body = Object.fromEntries(Array.from({ length: 99 }, (_, n) => [`${n}`.padStart(99, '0'), 1]))
    const long = Array.from({ length: 6 }, () => `${'0'.repeat(50)}: unknown field`)
    const missing = ['owner', 'repo', 'issueNumber', 'body'].map((field) => `${field}: required`)
    expect(() => parseRequest(commentRequest, bytes(body))).toThrow(refused([...missing, ...long].join('; ')))
  })

  it('throws nothing but bad_request, for any input', () => {
    const kindOf = (schema: ZodType, body: Uint8Array): unknown => {
      try {
        parseRequest(schema, body)
        return 'bad_request'
      } catch (error) {
        return error instanceof RelayError ? error.kind : error
      }
    }
    const bodies = oneof(
      uint8Array(),
      json().map((text) => Buffer.from(text)),
    )
    assert(
      property(bodies, (body) => {
        const kinds = [commentRequest, mergeRequest, reactRequest].map((schema) => kindOf(schema, body))
        expect(new Set(kinds)).toEqual(new Set(['bad_request']))
      }),
    )
  })
})

describe('fields', () => {
  const comment = { ...repo, issueNumber: 1, body: 'x' }

  it.each(['a', 'A.b_c-d', '...', '.github', 'a'.repeat(100)])('%j is a name', (owner) => {
    expect(parseRequest(commentRequest, bytes({ ...comment, owner }))).toEqual({ ...comment, owner })
  })

  it.each(['', '.', '..', 'a/b', 'a\n', '%2e', 'é', 'a'.repeat(101)])('%j is not a name', (owner) => {
    expect(() => parseRequest(commentRequest, bytes({ ...comment, owner }))).toThrow(
      refused(`owner: ${name}`),
    )
  })

  it.each([0, -1, 1.5, 2 ** 53, '1', null, true])('%j is not a number', (issueNumber) => {
    expect(() => parseRequest(commentRequest, bytes({ ...comment, issueNumber }))).toThrow(
      refused(`issueNumber: ${number}`),
    )
  })

  it.each(['', ' \n\t'])('%j is not a comment', (body) => {
    expect(() => parseRequest(commentRequest, bytes({ ...comment, body }))).toThrow(
      refused('body: must not be blank'),
    )
  })

  it('a comment may have any length', () => {
    const long = { ...comment, body: '👋'.repeat(100_000) }
    expect(parseRequest(commentRequest, bytes(long))).toEqual(long)
  })

  it('a merge accepts options', () => {
    const sha = 'AB'.repeat(20)
    const full = { ...repo, pullNumber: 1, method: 'rebase', title: '', message: 'm', sha }
    expect(parseRequest(mergeRequest, bytes(full))).toEqual({ ...full, sha: sha.toLowerCase() })
    expect(parseRequest(mergeRequest, bytes({ ...repo, pullNumber: 1 }))).toEqual({ ...repo, pullNumber: 1 })
    const bad = {
      ...repo,
      pullNumber: 1,
      method: 'octopus',
      title: 1,
      message: null,
      sha: 'abc1234',
      squash: true,
    }
    const complaints = [
      'method: must be one of merge, squash, rebase',
      'title: must be a string',
      'message: must be a string',
      'sha: must be a whole commit id of 40 or 64 hexadecimal digits',
      'squash: unknown field',
    ]
    expect(() => parseRequest(mergeRequest, bytes(bad))).toThrow(refused(complaints.join('; ')))
  })

  it('a reaction may be on a comment', () => {
    const react = { ...repo, issueNumber: 1, content: '+1' }
    for (const on of [{}, { commentId: 2 }, { reviewCommentId: 2 }])
      expect(parseRequest(reactRequest, bytes({ ...react, ...on }))).toEqual({ ...react, ...on })
  })
})
