import { describe, expect, it } from 'vitest'
import { anywhere } from '../../src/base/command-line.js'
import { findOwnApp, type NewSetup, readClient, loadSetup, saveSetup } from '../../src/auth/setup.js'
import { RelayError } from '../../src/base/errors.js'
import { Secret } from '../../src/base/secret.js'
import type { AppAccount, AppIdentity } from '../../src/codehost/host.js'
import { openHost } from '../../src/codehost/hosts.js'
import { openDatabase } from '../../src/store/open.js'

const HOST = 'https://git.example'
const BEFORE = 'https://relay.example/before'
const NOW = 'https://relay.example/now'
const setup = (id: string, more: Partial<NewSetup> = {}): NewSetup => ({
  provider: 'github',
  providerUrl: HOST,
  client: { id, secret: new Secret(`secret of ${id}`) },
  app: undefined,
  hookUrl: undefined,
  ...more,
})
const APP: AppIdentity = { id: 301, slug: 'relay-test', privateKey: new Secret('the private key') }

const database = async () => openDatabase({ kind: 'memory', folder: '' })

describe('what relay setup stored', () => {
  it('is replaced only where it is still what the user agreed to replace', async () => {
    await using data = await database()
    await saveSetup(data.secrets, setup('one'), undefined, anywhere)
    const before = await loadSetup(data.secrets)
    await saveSetup(data.secrets, setup('two', { app: APP }), before, anywhere)
    for (const stale of [before, undefined])
      await expect(saveSetup(data.secrets, setup('three'), stale, anywhere)).rejects.toMatchObject({
        kind: 'conflict',
        message:
          'Nothing was stored: another relay setup has stored a client meanwhile. Run it again to replace that',
      })
    expect(await loadSetup(data.secrets)).toMatchObject({ clientId: 'two', app: { slug: 'relay-test' } })
    // The secrets of one client never go with another.
    await expect(readClient(data.secrets, { clientId: 'one' }, anywhere)).rejects.toMatchObject({
      kind: 'storage',
    })
  })
})

describe('the App whose webhook sends here', () => {
  it.each(['before', 'after'] as const)(
    'is known again when its change was interrupted %s it was made',
    async (fails) => {
      await using data = await database()
      await saveSetup(data.secrets, setup('one', { app: APP, hookUrl: BEFORE }), undefined, anywhere)
      let [url, isAway] = [BEFORE, true]
      const { apps } = await openHost({ name: 'github', url: HOST })
      if (!apps) throw new Error('unreachable: GitHub has Apps')
      const app: AppAccount = {
        ...apps.as(APP, { command: anywhere }),
        hook: async () => ({ url, contentType: 'json', hasSecret: true }),
        async changeHook(settings) {
          if (isAway && fails === 'before') throw new RelayError('provider_failed', 'reset')
          url = settings.url ?? ''
          if (isAway) throw new RelayError('provider_failed', 'reset')
        },
      }
      const repair = async (to: string) =>
        (
          await findOwnApp(
            data.secrets,
            { url: HOST, apps: { ...apps, as: () => app } },
            { command: anywhere },
          )
        )?.repair(to, new Secret('x'))
      await expect(repair(NOW)).rejects.toMatchObject({ kind: 'provider_failed' })
      isAway = false
      const left = fails === 'before' ? BEFORE : NOW
      expect(await repair('https://relay.example/later')).toEqual([`it led to ${left}`])
    },
  )
})
