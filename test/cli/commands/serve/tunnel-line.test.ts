import { describe, expect, it } from 'vitest'
import { tunnelLine, tunnelObject } from '../../../../src/old/commands/serve/tunnel-line.js'
import type { TunnelStatus } from '../../../../src/tunnel/tunnel.js'
import { NOW } from '../../../journal/rig.js'
import { plain } from '../../rig.js'

const CONNECTED: TunnelStatus = {
  state: 'connected',
  url: 'https://smee.io/Kf3v',
  since: NOW,
  why: null,
  attempt: 0,
  retryAt: null,
  roundTrip: null,
}
const DOWN = { state: 'waiting', why: 'no traffic for 65 s', attempt: 3, retryAt: NOW + 4100 } as const

describe('a tunnel, on a line', () => {
  const lost = { roundTrip: 'nothing came back within 10 s' }

  it.each<[string, Partial<TunnelStatus>, TunnelStatus | undefined]>([
    ['tunnel connected: payload URL https://smee.io/Kf3v', {}, undefined],
    ['tunnel connected: payload URL https://smee.io/Kf3v', { roundTrip: 'ok' }, { ...CONNECTED, ...DOWN }],
    ['tunnel works: a test message came back byte for byte', { roundTrip: 'ok' }, CONNECTED],
    ['tunnel does not work: a test message was lost: nothing came back within 10 s', lost, CONNECTED],
    ['tunnel is down: no traffic for 65 s; attempt 3 in 4s', DOWN, CONNECTED],
    ['tunnel is down: no traffic for 65 s; reconnecting', { ...DOWN, retryAt: NOW }, CONNECTED],
    [
      'tunnel is down: the server answers 301: it is at \\u{1b}[2J; attempt 1 in 1s; payload URL https://smee.io/Kf3v',
      { ...DOWN, why: 'the server answers 301: it is at \u001b[2J', attempt: 1, retryAt: NOW + 1000 },
      undefined,
    ],
  ])('%s', (line, change, before) => {
    expect(plain(tunnelLine({ ...CONNECTED, ...change }, before, NOW) ?? [])).toBe(`03:43:20  ${line}`)
  })

  it('reports the same less often, the longer it lasts', () => {
    const told = (change: Partial<TunnelStatus>): number[] =>
      Array.from({ length: 40 }, (_, i) => i + 1).filter((attempt) => {
        const before = { ...CONNECTED, ...DOWN, attempt: attempt - 1 }
        return tunnelLine({ ...before, attempt, ...change }, before, NOW)
      })
    expect(told({})).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 10, 20, 30, 40])
    expect(told({ why: 'connection refused' }).length).toBe(40)
  })

  it('is silent while it connects', () => {
    expect(tunnelLine({ ...CONNECTED, state: 'connecting', url: null }, undefined, NOW)).toBeUndefined()
  })

  it('is an object for a program', () => {
    expect(tunnelObject({ ...CONNECTED, ...DOWN, roundTrip: 'ok' })).toEqual({
      type: 'tunnel',
      state: 'waiting',
      url: 'https://smee.io/Kf3v',
      since: new Date(NOW).toISOString(),
      why: 'no traffic for 65 s',
      attempt: 3,
      retryAt: new Date(NOW + 4100).toISOString(),
      roundTrip: 'ok',
    })
  })
})
