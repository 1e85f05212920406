import { describe, expect, it } from 'vitest'
import { silentLog } from '../../src/base/log.js'
import { createHubApp } from '../../src/hub/app.js'
import { Hub } from '../../src/hub/hub.js'
import type { Header } from '../../src/http/headers.js'
import { HANDSHAKES } from '../../src/senders/handshakes.js'
import type { Handshake } from '../../src/senders/scheme.js'

const ADDRESS = `http://localhost/${'c'.repeat(32)}/some`

/** Headers that a sender gets of a workstation's answer with these. */
async function passed(headers: readonly Header[]): Promise<Record<string, string>> {
  const hub: Hub = Object.create(Hub.prototype)
  hub.take = () => Promise.resolve({ status: 200, headers, body: Buffer.from('text') })
  const app = createHubApp({
    hub,
    log: silentLog,
    hostAllowed: () => true,
    ready: () => Promise.resolve(),
    metrics: undefined,
    stopped: new AbortController().signal,
  })
  const answer = await app.request(ADDRESS, { method: 'POST' })
  return Object.fromEntries(answer.headers)
}

const GUARD = { 'content-security-policy': 'sandbox', 'x-content-type-options': 'nosniff' }

describe('an answer of a workstation', () => {
  const all: readonly (readonly [string, readonly Handshake[]])[] = Object.entries(HANDSHAKES)
  it.each(all)('reaches the sender with the headers of the handshake: %s', async (_, handshakes) => {
    for (const { answer } of handshakes) {
      const headers = Object.entries({ 'content-type': 'text/plain', ...answer.headers })
      const lower = headers.map(([name, value]) => [name.toLowerCase(), value])
      expect(await passed(headers)).toEqual({ ...GUARD, ...Object.fromEntries(lower) })
    }
  })

  it('sets nothing for the hub, its proxy, or what a browser knows of its name', async () => {
    const names = [
      'Strict-Transport-Security',
      'Clear-Site-Data',
      'Alt-Svc',
      'Refresh',
      'WWW-Authenticate',
      'Set-Cookie',
      'Content-Security-Policy',
      'Content-Security-Policy-Report-Only',
      'X-Content-Type-Options',
      'Access-Control-Allow-Origin',
      'Public-Key-Pins',
      'Expect-CT',
      'Report-To',
      'NEL',
      'Reporting-Endpoints',
      'Service-Worker-Allowed',
      'Link',
      'X-Accel-Redirect',
      'X-Sendfile',
      'X-Request-Id',
      'X-Relay-Hub-Proof',
      'Connection',
      'Transfer-Encoding',
      'Content-Length',
    ]
    const answer = await passed(names.map((name) => [name, '1'] as const))
    expect(answer).toMatchObject(GUARD)
    expect(Object.keys(answer).filter((name) => !(name in GUARD) && name !== 'content-type')).toEqual([])
  })
})
