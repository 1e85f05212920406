import { describe, expect, it } from 'vitest'
import { RelayError } from '../../../../src/base/errors.js'
import { parseReaction } from '../../../../src/cli/commands/react/reaction.js'
import { REACTIONS } from '../../../../src/codehost/host.js'

describe('parseReaction', () => {
  it.each(REACTIONS)('%s by its name, also between colons', (name) => {
    expect([parseReaction(name), parseReaction(`:${name}:`), parseReaction(name.toUpperCase())]).toEqual([
      name,
      name,
      name,
    ])
  })

  it.each([
    ['👍', '+1'],
    ['👍\u{fe0f}', '+1'],
    ['👍\u{1f3fb}', '+1'],
    ['👍\u{1f3ff}', '+1'],
    [':thumbsup:', '+1'],
    ['👎🏽', '-1'],
    ['thumbsdown', '-1'],
    ['😄', 'laugh'],
    [':laughing:', 'laugh'],
    ['😕', 'confused'],
    ['❤', 'heart'],
    ['❤️', 'heart'],
    ['❤\u{fe0e}', 'heart'],
    ['🎉', 'hooray'],
    [':tada:', 'hooray'],
    ['🚀', 'rocket'],
    ['👀', 'eyes'],
  ])('%s is %s', (text, reaction) => {
    expect(parseReaction(text)).toBe(reaction)
  })

  it.each([
    '',
    '1',
    '+',
    ':',
    '::',
    ':+1',
    'thumbs',
    '💩',
    '👍👍',
    '\u{fe0f}',
    '+1 ',
    '1f44d',
    'constructor',
  ])('%j is a usage error that lists them all', (text) => {
    const list = '+1 👍, -1 👎, laugh 😄, confused 😕, heart ❤, hooray 🎉, rocket 🚀, eyes 👀'
    const said = `${JSON.stringify(text)} is not a reaction. Give one of ${list}`
    expect(() => parseReaction(text)).toThrow(new RelayError('usage', said))
  })
})
