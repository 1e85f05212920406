import { describe, expect, it } from 'vitest'
import { forwardedHeaders } from '../../src/dispatch/http-target.js'

describe('forwardedHeaders', () => {
  it('keeps order, spelling and repetitions', () => {
    const headers = [
      ['Accept', '*/*'],
      ['x-GitHub-EVENT', 'push'],
      ['X-Twice', 'one'],
      ['Content-Type', 'application/json'],
      ['X-Twice', 'two'],
      ['X-Empty', ''],
      ['X-Latin', 'caf\u00e9'],
    ] as const
    expect(forwardedHeaders(headers, 3)).toEqual([...headers, ['X-Relay-Attempt', '3']])
  })

  it("leaves out what is the connection's, what carries credentials, and what relay sends itself", () => {
    const out = [
      'Host',
      'Content-Length',
      'Connection',
      'Keep-Alive',
      'TE',
      'Trailer',
      'Transfer-Encoding',
      'Upgrade',
      'Proxy-Authorization',
      'Proxy-Connection',
      'Authorization',
      'Cookie',
      'Expect',
      'X-Relay-Attempt',
    ]
    const spelled = out.flatMap((name) => [name, name.toLowerCase(), name.toUpperCase()])
    expect(forwardedHeaders([['A', 'b'], ...spelled.map((name) => [name, 'x'] as const)], 1)).toEqual([
      ['A', 'b'],
      ['X-Relay-Attempt', '1'],
    ])
  })

  it('leaves out what Connection names', () => {
    const headers = [
      ['Connection', 'keep-alive, X-Hop'],
      ['connection', 'x-other'],
      ['X-HOP', '1'],
      ['X-Other', '2'],
      ['X-Kept', '3'],
    ] as const
    expect(forwardedHeaders(headers, 1)).toEqual([
      ['X-Kept', '3'],
      ['X-Relay-Attempt', '1'],
    ])
  })

  it('leaves out what cannot be written, so that the rest can', () => {
    const headers = [
      ['X-Line', 'a\r\nX-Evil: b'],
      ['X-Wide', '\u2603'],
      ['X Space', 'a'],
      ['', 'a'],
      ['X-Kept', 'a\tb'],
    ] as const
    expect(forwardedHeaders(headers, 1)).toEqual([
      ['X-Kept', 'a\tb'],
      ['X-Relay-Attempt', '1'],
    ])
  })
})
