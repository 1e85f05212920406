import { describe, expect, it } from 'vitest'
import { canary } from './canary.js'

describe('a canary', () => {
  const SECRET = 'canary <secret> of 24'
  const searched = (text: string, where = 'output') => {
    const one = canary()
    one.secret('token', SECRET)
    one.text(where, text)
    return () => one.check(['token'])
  }

  it.each([
    ['as it is', `Bearer ${SECRET}.`],
    ['in an address', `/?a=${encodeURIComponent(SECRET)}`],
    ['in a form', String(new URLSearchParams({ token: SECRET }))],
    ['in JSON', JSON.stringify({ token: SECRET })],
  ])('finds a secret %s', (_, text) => {
    expect(searched('all is well')).not.toThrow()
    expect(searched(text)).toThrow('a secret is where it may not be: token in output')
  })

  it('fails where nothing was searched', () => {
    expect(() => canary().check([])).toThrow('nothing was searched: 0 secrets, 0 places')
    expect(searched('\n')).toThrow('empty: output')
    const one = canary()
    expect(() => one.secret('code', 'short')).toThrow('no secret to look for: code has 5 characters')
    one.secret('token', SECRET)
    one.text('output', 'all is well')
    expect(() => one.check(['token', 'key'])).toThrow('the secrets to look for are token, not key, token')
  })
})
