import { readFileSync, statSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, it } from 'vitest'
import { Secret } from '../../src/base/secret.js'
import { completeSettings } from '../../src/cli/settings.js'
import { emptyFolder } from '../helpers/context.js'
import { failure } from '../helpers/failure.js'

describe('completeSettings', () => {
  it('fills in the defaults', () => {
    const home = emptyFolder()
    const settings = completeSettings({ home, webhookSecret: 'w' })
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
      publicUrl: undefined,
      baseUrl: undefined,
      store: 'file',
      maxBody: 1_048_576,
      tokenTtl: 30 * 86_400_000,
      handOn: { forward: [], exec: [], ignore: [] },
      concurrency: 1,
      onDuplicate: 'if-failed',
      keep: 7 * 86_400_000,
      keepMax: 1_073_741_824,
    })
    expect(settings.webhookSecrets.current.reveal()).toBe('w')
  })

  it('makes a webhook secret once, for its owner alone', () => {
    const home = emptyFolder()
    const first = completeSettings({ home }).webhookSecrets.current.reveal()
    expect(first).toMatch(/^[0-9a-f]{64}$/)
    expect(completeSettings({ home }).webhookSecrets.current.reveal()).toBe(first)
    const file = path.join(home, 'default', 'webhook-secret')
    expect(readFileSync(file, 'utf8')).toBe(`${first}\n`)
    expect(statSync(file).mode & 0o777).toBe(0o600)
    expect(statSync(path.dirname(file)).mode & 0o777).toBe(0o700)
    expect(completeSettings({ home, profile: 'other' }).webhookSecrets.current.reveal()).not.toBe(first)
  })

  it('refuses an empty webhook secret, which would verify what anyone signs', () => {
    const home = emptyFolder()
    completeSettings({ home })
    const file = path.join(home, 'default', 'webhook-secret')
    writeFileSync(file, '\n')
    expect(failure(() => completeSettings({ home }))).toEqual({
      kind: 'settings',
      message: `${file} is empty: remove it, and a new secret is made`,
    })
  })

  it('wants a client id and its secret together', () => {
    expect(failure(() => completeSettings({ home: emptyFolder(), clientId: 'a' }))).toEqual({
      kind: 'settings',
      message: 'RELAY_CLIENT_ID and RELAY_CLIENT_SECRET go together: set both or neither',
    })
  })

  it('wants the address of a Gitea', () => {
    expect(failure(() => completeSettings({ home: emptyFolder(), provider: 'gitea' }))).toEqual({
      kind: 'settings',
      message: 'RELAY_PROVIDER_URL is not set: where is your gitea? For example https://git.example.com',
    })
  })
})
