import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { Disposal } from '../../src/base/disposal.js'
import { Secret } from '../../src/base/secret.js'
import { createProvider } from '../../src/providers/open.js'
import { findOwnApp, type OwnApp } from '../../src/setup/own-app.js'
import { readAppHook } from '../../src/setup/record.js'
import type { AppIdentity } from '../../src/providers/registration.js'
import type { Store } from '../../src/store/kv.js'
import { startSandbox, type TestSandbox } from '../../src/testing/index.js'
import { installApp, makeApp, storeApp } from '../helpers/app.js'
import { open } from '../journal/rig.js'

const REPO = { owner: 'octo', repo: 'demo' }
const BEFORE = 'http://127.0.0.1:9/before'
const NOW = 'http://127.0.0.1:9/now'
const secret = new Secret('of the profile')

let closing: Disposal
beforeEach(() => {
  closing = new Disposal()
})
afterEach(() => closing[Symbol.asyncDispose]())

const startHost = async (options?: Parameters<typeof startSandbox>[0]) =>
  closing.use(await startSandbox(options))
const providerAt = (url: string) => createProvider({ name: 'sandbox', url })

/** A profile in which setup has registered an App at this code host. */
async function profile(
  { url }: Pick<TestSandbox, 'url'>,
  { hook = true, hookUrl = BEFORE }: { hook?: boolean; hookUrl?: string | undefined } = {},
) {
  const { store } = closing.use(await open())
  const made = await makeApp(url, hook ? { url: BEFORE, active: true } : undefined)
  await storeApp(store, url, made, hookUrl)
  return { ...made, store, own: await found(store, url) }
}

async function found(store: Store, url: string): Promise<OwnApp> {
  const own = await findOwnApp(store, providerAt(url))
  if (!own) throw new Error('the profile has no App')
  return own
}

describe('the App whose webhook sends here', () => {
  it('is the one that setup registered at this code host, with an active webhook', async () => {
    const host = await startHost()
    const { store, own } = await profile(host)
    expect([own.slug, own.savedUrl]).toEqual(['relay-test', BEFORE])
    const others = [
      createProvider({ name: 'github', url: 'https://github.com' }),
      createProvider({ name: 'gitea', url: 'https://git.example.com' }),
    ]
    for (const other of others) expect(await findOwnApp(store, other)).toBeUndefined()
    const other = closing.use(await open()).store
    const elsewhere = await startHost()
    await storeApp(other, elsewhere.url, await makeApp(elsewhere.url), undefined)
    expect(await findOwnApp(other, providerAt(elsewhere.url))).toBeUndefined()
  })

  it('gets a new address with the secret, and what was wrong is named', async () => {
    const host = await startHost()
    const { own, store, apps, app } = await profile(host)
    expect(await own.repair({ url: NOW, secret })).toEqual([`it led to ${BEFORE}`])
    expect(await readAppHook(store, host.url)).toEqual({ url: NOW, former: BEFORE })
    expect(await apps.hook.show(app)).toEqual({ url: NOW, contentType: 'json', hasSecret: true })
    expect(await (await found(store, host.url)).repair({ url: NOW, secret })).toEqual([])
  })

  it('keeps an address that somebody entered there', async () => {
    const host = await startHost()
    const { own, store, apps, app } = await profile(host)
    const theirs = 'http://127.0.0.1:9/theirs'
    await apps.hook.change(app, { url: theirs, secret })
    await expect(own.repair({ url: NOW, secret })).rejects.toMatchObject({
      kind: 'conflict',
      message: `The webhook of the App relay-test leads to ${theirs}, which somebody entered there. To have it here, enter ${NOW} in the settings of the App`,
    })
    expect((await readAppHook(store, host.url))?.url).toBe(BEFORE)
    expect((await apps.hook.show(app)).url).toBe(theirs)
  })

  it.each([
    ['after the code host has changed it', 'reset-after', NOW],
    ['before', 'reset', BEFORE],
  ] as const)('is known again when the change was interrupted %s', async (_, fault, left) => {
    const host = await startHost()
    const { own, store, apps, app } = await profile(host)
    host.faults.next('hook', { kind: 'slow', ms: 0 })
    host.faults.next('hook', fault)
    await expect(own.repair({ url: NOW, secret })).rejects.toMatchObject({ kind: 'provider_failed' })
    expect((await apps.hook.show(app)).url).toBe(left)
    const later = 'http://127.0.0.1:9/later'
    expect(await (await found(store, host.url)).repair({ url: later, secret })).toEqual([`it led to ${left}`])
  })

  it('keeps its address when the code host cannot reach the new one', async () => {
    const host = await startHost()
    const { app, client } = await profile(host)
    const { store } = closing.use(await open())
    const url = 'https://github.example.com'
    await storeApp(store, url, { app, client }, BEFORE)
    const { registration } = providerAt(host.url)
    const own = await findOwnApp(store, { url, registration })
    await expect(own?.repair({ url: NOW, secret })).rejects.toMatchObject({
      kind: 'settings',
      message: `${url} cannot reach ${NOW}, an address of this machine alone. Receive through relay serve --tunnel, or set --public-url to an address that it can reach`,
    })
    expect(host.requests.filter(({ path }) => path.endsWith('/app/hook/config'))).toEqual([])
  })

  it('knows where it is installed', async () => {
    const host = await startHost()
    const { own, installUrl } = await profile(host)
    expect(await own.isInstalledOn(REPO)).toBe(false)
    await installApp(installUrl)
    expect(await own.isInstalledOn(REPO)).toBe(true)
    expect(await own.isInstalledOn({ owner: 'octo', repo: 'nowhere' })).toBe(false)
  })
})

describe('an App that cannot be asked', () => {
  /** The App of a profile, as it is stored with changes. */
  async function changed(host: TestSandbox, over: Partial<AppIdentity>): Promise<OwnApp> {
    const made = await makeApp(host.url)
    const { store } = closing.use(await open())
    await storeApp(store, host.url, { ...made, app: { ...made.app, ...over } }, BEFORE)
    return found(store, host.url)
  }

  it('was deleted', async () => {
    const host = await startHost()
    const own = await changed(host, { id: 999 })
    const gone = {
      kind: 'gone',
      message: `${host.url} has no App relay-test any more: it was deleted there. Register another with relay setup`,
    }
    await expect(own.hook()).rejects.toMatchObject(gone)
    await expect(own.repair({ url: NOW, secret })).rejects.toMatchObject(gone)
    await expect(own.log.page(undefined, {})).rejects.toMatchObject(gone)
    await expect(own.log.redeliver('1', {})).rejects.toMatchObject(gone)
    expect(await own.isInstalledOn(REPO)).toBe(false)
  })

  it('lost its key', async () => {
    const host = await startHost()
    const { app: stranger } = await makeApp((await startHost()).url)
    const own = await changed(host, { privateKey: stranger.privateKey })
    await expect(own.log.page(undefined, {})).rejects.toMatchObject({
      kind: 'forbidden',
      message: `${host.url} refused the key of the App relay-test: it was removed there. Delete the App there, and register another with relay setup`,
    })
    expect(await own.isInstalledOn(REPO)).toBe(false)
  })

  it.each([
    ['behind', 3_600_000, 'exp'],
    ['ahead', -3_600_000, 'exp'],
    ['a little ahead', -90_000, 'exp'],
  ])('is asked by a machine whose clock is %s', async (_, ahead, claim) => {
    const { own } = await profile(await startHost({ clock: () => Date.now() + ahead }))
    const error: unknown = await own.hook().catch((thrown: unknown) => thrown)
    expect(error).toMatchObject({ kind: 'forbidden' })
    expect(String(error)).toContain(`('${claim}')`)
    expect(String(error)).toMatch(/Set this machine's clock; relay doctor compares it$/)
  })

  it('has no webhook any more', async () => {
    const host = await startHost()
    const { own } = await profile(host, { hook: false })
    await expect(own.hook()).rejects.toMatchObject({
      kind: 'gone',
      message: `The App relay-test has no webhook at ${host.url} any more. Enter ${BEFORE} in its settings there`,
    })
  })
})
