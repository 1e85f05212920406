import { describe, expect, it } from 'vitest'
import { type NewSetup, OwnApp, readClient, readSetup, removeSetup, saveSetup } from '../../src/auth/setup.js'
import { RelayError } from '../../src/base/errors.js'
import { Secret } from '../../src/base/secret.js'
import type { AppAccount, AppHook, AppIdentity, CodeHost } from '../../src/codehost/host.js'
import { type Store } from '../../src/store/kv.js'
import { openDatabase } from '../../src/store/open.js'
import { contents } from './auth-rig.js'

const HOST = 'https://git.example'
const BEFORE = 'https://relay.example/before'
const NOW = 'https://relay.example/now'
const secret = new Secret('of the profile')
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
  it('is two records, one without a secret', async () => {
    await using data = await database()
    await saveSetup(data.secrets, setup('one', { app: APP, hookUrl: NOW }), undefined)
    const plain = {
      provider: 'github',
      providerUrl: HOST,
      clientId: 'one',
      app: { id: 301, slug: 'relay-test' },
      hook: { url: NOW, former: NOW },
    }
    expect(await contents(data.secrets)).toEqual({
      setup: plain,
      'setup-secrets': { clientId: 'one', clientSecret: 'secret of one', privateKey: 'the private key' },
    })
    const stored = await readSetup(data.secrets)
    expect(stored).toEqual(plain)
    expect((await readClient(data.secrets, { clientId: 'one' })).secret.reveal()).toBe('secret of one')
    await removeSetup(data.secrets)
    expect([await readSetup(data.secrets), await contents(data.secrets)]).toEqual([undefined, {}])
  })

  it('is replaced only where it is still what the user agreed to replace', async () => {
    await using data = await database()
    await saveSetup(data.secrets, setup('one'), undefined)
    const before = await readSetup(data.secrets)
    await saveSetup(data.secrets, setup('two', { app: APP }), before)
    for (const stale of [before, undefined])
      await expect(saveSetup(data.secrets, setup('three'), stale)).rejects.toMatchObject({
        kind: 'conflict',
        message:
          'Nothing was stored: another relay setup has stored a client meanwhile. Run relay setup again to replace it',
      })
    expect(await readSetup(data.secrets)).toMatchObject({ clientId: 'two', app: { slug: 'relay-test' } })
    // The secrets of one client never go with another.
    await expect(readClient(data.secrets, { clientId: 'one' })).rejects.toMatchObject({ kind: 'storage' })
  })
})

/** An App whose webhook is as given. */
class FakeApp implements AppAccount {
  readonly log = { page: async () => ({ deliveries: [], next: undefined }), redeliver: async () => {} }
  readonly changes: unknown[] = []
  fails: 'before' | 'after' | undefined

  shown: AppHook | RelayError

  constructor(shown: AppHook | RelayError) {
    this.shown = shown
  }

  async describe() {
    return { installUrl: `${HOST}/apps/relay-test`, installations: 1 }
  }

  async isInstalled(): Promise<boolean> {
    if (this.shown instanceof RelayError) throw this.shown
    return true
  }

  async hook(): Promise<AppHook> {
    if (this.shown instanceof RelayError) throw this.shown
    return this.shown
  }

  async changeHook(settings: { readonly url?: string | undefined }): Promise<void> {
    this.changes.push(settings)
    if (this.fails === 'before') throw new RelayError('provider_failed', 'reset')
    this.shown = hook({ url: settings.url ?? '' })
    if (this.fails === 'after') throw new RelayError('provider_failed', 'reset')
  }
}

const hook = (changes: Partial<AppHook> = {}): AppHook => ({
  url: BEFORE,
  contentType: 'json',
  hasSecret: true,
  ...changes,
})

function hostOf(app: AppAccount, url = HOST): Pick<CodeHost, 'url' | 'apps'> {
  const apps: CodeHost['apps'] = {
    page: () => '',
    manifest: () => '',
    convert: () => Promise.reject(new Error('not asked for')),
    as: ({ slug, privateKey }) => {
      expect([slug, privateKey.reveal()]).toEqual([APP.slug, APP.privateKey.reveal()])
      return app
    },
  }
  return { url, apps }
}

/** A profile with an App whose webhook relay gave the address {@link BEFORE}. */
async function profile(shown: AppHook | RelayError = hook()) {
  const data = await database()
  await saveSetup(data.secrets, setup('one', { app: APP, hookUrl: BEFORE }), undefined)
  const fake = new FakeApp(shown)
  const { secrets } = data
  return {
    fake,
    secrets,
    own: () => found(secrets, fake),
    [Symbol.asyncDispose]: () => data[Symbol.asyncDispose](),
  }
}

async function found(secrets: Store, app: AppAccount): Promise<OwnApp> {
  const own = await OwnApp.find(secrets, hostOf(app))
  if (!own) throw new Error('the profile has no App')
  return own
}

describe('the App whose webhook sends here', () => {
  it.each(['before', 'after'] as const)(
    'is known again when its change was interrupted %s it was made',
    async (fails) => {
      await using own = await profile()
      own.fake.fails = fails
      await expect((await own.own()).repair(NOW, secret)).rejects.toMatchObject({
        kind: 'provider_failed',
      })
      own.fake.fails = undefined
      const later = 'https://relay.example/later'
      const left = fails === 'before' ? BEFORE : NOW
      expect(await (await own.own()).repair(later, secret)).toEqual([`it led to ${left}`])
    },
  )
})
