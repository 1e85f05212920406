import { describe, expect, it } from 'vitest'
import { didYouMean, suggest } from '../../src/base/text.js'

const WORDS = ['provider', 'providerUrl', 'port', 'host', 'baseUrl', 'webhookSecret']

describe('suggest', () => {
  it.each([
    ['prot', 'port'],
    ['Port', 'port'],
    ['base-url', 'baseUrl'],
    ['BASE_URL', 'baseUrl'],
    ['RELAY_PROVIDER_URL', 'providerUrl'],
    ['provder', 'provider'],
    ['webhooksecert', 'webhookSecret'],
    ['hots', 'host'],
    ['secret', undefined],
    ['x', undefined],
    ['', undefined],
  ])('%j: %j', (word, expected) => {
    expect(suggest(word, WORDS)).toBe(expected)
  })

  it('asks only where there is something to ask', () => {
    expect([didYouMean('prot', WORDS), didYouMean('tunnel', WORDS)]).toEqual([' (did you mean port?)', ''])
  })
})
