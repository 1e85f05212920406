import { readFileSync, statSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, it } from 'vitest'
import { Secret } from '../../../src/base/secret.js'
import { completeSettings, withDefaults } from '../../../src/old/settings/complete.js'
import type { GivenValues } from '../../../src/old/settings/options.js'
import { emptyFolder } from '../../helpers/context.js'
import { failure } from '../../helpers/failure.js'

/** The settings of a service when only these are set. */
const complete = (given: GivenValues) => completeSettings(withDefaults(given))

describe('completeSettings', () => {
  it('fills in the defaults', () => {
    const home = emptyFolder()
    const settings = complete({ home, webhookSecret: 'w' })
    expect(settings).toEqual({
      profile: 'default',
      folder: path.join(home, 'default'),
      provider: 'github',
      providerUrl: 'https://github.com',
      oauthClient: undefined,
      webhookSecrets: { current: new Secret('w'), previous: undefined },
      host: '127.0.0.1',
      port: 8787,
      allowedHosts: [],
      inspectHosts: [],
      metrics: false,
      publicUrl: undefined,
      baseUrl: undefined,
      store: 'file',
      maxBody: 1_048_576,
      tokenTtl: 30 * 86_400_000,
      routes: { forward: [], exec: [], ignore: [] },
      concurrency: 1,
      onDuplicate: 'if-failed',
      keep: 7 * 86_400_000,
      keepMax: 1_073_741_824,
    })
    expect(settings.webhookSecrets.current.reveal()).toBe('w')
  })

  it('makes a webhook secret once, for its owner alone', () => {
    const home = emptyFolder()
    const first = complete({ home }).webhookSecrets.current.reveal()
    expect(first).toMatch(/^[0-9a-f]{64}$/)
    expect(complete({ home }).webhookSecrets.current.reveal()).toBe(first)
    const file = path.join(home, 'default', 'webhook-secret')
    expect(readFileSync(file, 'utf8')).toBe(`${first}\n`)
    expect(statSync(file).mode & 0o777).toBe(0o600)
    expect(statSync(path.dirname(file)).mode & 0o777).toBe(0o700)
    expect(complete({ home, profile: 'other' }).webhookSecrets.current.reveal()).not.toBe(first)
  })

  it('refuses an empty webhook secret, which would verify what anyone signs', () => {
    const home = emptyFolder()
    complete({ home })
    const file = path.join(home, 'default', 'webhook-secret')
    writeFileSync(file, '\n')
    expect(failure(() => complete({ home }))).toEqual({
      kind: 'settings',
      message: `${file} is empty. Remove it, and relay makes a new secret`,
    })
  })

  it('wants a client id and its secret together', () => {
    expect(failure(() => complete({ home: emptyFolder(), clientId: 'a' }))).toEqual({
      kind: 'settings',
      message: 'Set both RELAY_CLIENT_ID and RELAY_CLIENT_SECRET, or neither of them',
    })
  })

  it('wants the address of a Gitea', () => {
    expect(failure(() => complete({ home: emptyFolder(), provider: 'gitea' }))).toEqual({
      kind: 'settings',
      message:
        'RELAY_PROVIDER_URL is not set. Set it to the address of your gitea, for example https://git.example.com',
    })
  })
})
