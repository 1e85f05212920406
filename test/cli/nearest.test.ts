import { describe, expect, it } from 'vitest'
import { didYouMean, nearest } from '../../src/cli/nearest.js'

const WORDS = ['provider', 'providerUrl', 'port', 'host', 'baseUrl', 'webhookSecret']

describe('nearest', () => {
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
    expect(nearest(word, WORDS)).toBe(expected)
  })

  it('asks only where there is something to ask', () => {
    expect([didYouMean('prot', WORDS), didYouMean('tunnel', WORDS)]).toEqual([' (did you mean port?)', ''])
  })
})
