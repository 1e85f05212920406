import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { defaultLimits } from '../kit/place.js'

/** Milliseconds. Tests shorten them, so that this alone shows what relay has when nothing is injected. */
const LIMITS = {
  codeHost: 25_000,
  mergeDelay: 500,
  mergeTime: 15_000,
  tokenEndpoint: 10_000,
  http: 30_000,
  slow: 5000,
  command: 600_000,
  grace: 5000,
  retries: [1000, 4000, 15_000, 40_000],
  probe: 1000,
  headers: 10_000,
  request: 30_000,
  idle: 60_000,
  stop: 30_000,
  removal: 5000,
  hookLeaves: 10_000,
  certificateLook: 10_000,
  signInLook: 2000,
  arrival: 30_000,
  logLook: 1000,
  sweep: 60_000,
}

/** Where the documentation states them. The others are stated nowhere. */
const STATED: Partial<Record<keyof typeof LIMITS, readonly [file: string, sentence: string][]>> = {
  codeHost: [
    ['docs/receiving.md', 'the code host failed, or took more than 25 s'],
    ['docs/deploy.md', 'a relay waits up to 25 s for the code host'],
    ['docs/architecture.md', 'within 25 s, and follows no redirect'],
    ['docs/openapi.yaml', 'The code host took over 25 seconds'],
  ],
  http: [['docs/forwarding.md', 'gives no answer within 30 s']],
  slow: [['docs/forwarding.md', 'the next one goes out after 5 s']],
  command: [['docs/forwarding.md', 'A command still running after 10 minutes is killed']],
  retries: [['docs/forwarding.md', 'relay makes five attempts in about a minute']],
  probe: [['docs/forwarding.md', 'relay tries one delivery after 1, 2, 4 … 60 s']],
  headers: [['docs/receiving.md', 'the headers took over 10 s, or the whole request over 30 s']],
  request: [
    ['docs/receiving.md', 'the headers took over 10 s, or the whole request over 30 s'],
    ['docs/openapi.yaml', 'The headers took over 10 seconds, or the whole request over 30'],
  ],
  stop: [
    ['docs/deploy.md', 'relay finishes what it has begun: up to 30 seconds for requests'],
    ['compose.yaml', 'relay finishes what it has begun: up to 30 seconds for requests'],
  ],
  mergeTime: [['docs/commands.md', 'Tries again for up to 15 s, with the same head']],
  certificateLook: [['docs/hub.md', 'Renewed files are used within 10 s']],
  hookLeaves: [
    ['docs/hooks.md', 'former one stays for 10 s without new deliveries'],
    ['docs/settings.md', 'the former hook stays for 10 s'],
  ],
  removal: [['docs/hooks.md', 'Removing takes at most 5 seconds']],
  arrival: [
    ['docs/hooks.md', 'A delivery that does not arrive within 30 seconds'],
    ['docs/hooks.md', 'waits until it is in the journal, at most 30 seconds'],
    ['docs/commands.md', 'waits up to 30 seconds until it is in the journal'],
  ],
}

describe('the limits of relay', () => {
  it('are these', async () => {
    expect(await defaultLimits()).toEqual(LIMITS)
  })

  it.each(Object.entries(STATED))('are in the documentation: %s', (_, places) => {
    const missing = places.filter(
      ([file, sentence]) => !readFileSync(file, 'utf8').replaceAll(/\s+/g, ' ').includes(sentence),
    )
    expect(missing).toEqual([])
  })
})
