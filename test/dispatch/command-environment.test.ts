import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { commandEnvironment } from '../../src/dispatch/command-target.js'

const delivery = { event: 'push', action: null, repo: null, deliveryId: 'id' }

describe('commandEnvironment', () => {
  it("passes the environment on without relay's secrets", () => {
    const secrets = ['CLIENT_SECRET', 'WEBHOOK_SECRET', 'WEBHOOK_SECRET_PREVIOUS'].flatMap((name) => [
      [`RELAY_${name}`, 'secret'],
      [`RELAY_${name}_FILE`, '/run/secret'],
    ])
    const env = { PATH: '/bin', HOME: '/home/mona', RELAY_PROFILE: 'sandbox', GONE: undefined }
    expect(commandEnvironment({ ...env, ...Object.fromEntries(secrets) }, delivery)).toEqual({
      ...env,
      RELAY_EVENT: 'push',
      RELAY_ACTION: '',
      RELAY_REPO: '',
      RELAY_DELIVERY: 'id',
    })
  })

  it('describes the delivery, whatever the environment has', () => {
    const env = { RELAY_EVENT: 'old', RELAY_ACTION: 'old', RELAY_REPO: 'old', RELAY_DELIVERY: 'old' }
    const told = { event: 'issues', action: 'opened', repo: 'octo/demo', deliveryId: '1-2' }
    expect(commandEnvironment(env, told)).toEqual({
      RELAY_EVENT: 'issues',
      RELAY_ACTION: 'opened',
      RELAY_REPO: 'octo/demo',
      RELAY_DELIVERY: '1-2',
    })
    expect(commandEnvironment(env, delivery)['RELAY_ACTION']).toBe('')
  })

  it('drops control characters, and cuts at 1 KiB where a character ends', () => {
    const repoOf = (repo: string) => commandEnvironment({}, { ...delivery, repo })['RELAY_REPO']
    expect(repoOf('a\0b\nc\u007fd\u0085e\x1b[31m')).toBe('abcde[31m')
    expect(repoOf('x'.repeat(2000))).toBe('x'.repeat(1024))
    expect(repoOf(`${'x'.repeat(1022)}\u20ac`)).toBe('x'.repeat(1022))
    expect(repoOf(`${'x'.repeat(1020)}\u{1f600}`)).toBe(`${'x'.repeat(1020)}\u{1f600}`)
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', maxLength: 1500 }), (text) => {
        const clean = repoOf(text) ?? ''
        expect(Buffer.byteLength(clean)).toBeLessThanOrEqual(1024)
        expect(text.replaceAll(/\p{Cc}/gu, '').startsWith(clean)).toBe(true)
      }),
    )
  })
})
