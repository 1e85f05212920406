import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { Secret } from '../../src/base/secret.js'
import { findOwnHooks, registerHook, unregisterHook } from '../../src/hooks/registration.js'
import { listSavedHooks, readHook } from '../../src/hooks/saved.js'
import { Journal } from '../../src/journal/journal.js'
import { createProvider } from '../../src/providers/open.js'
import type { Provider } from '../../src/providers/provider.js'
import type { Fault, FaultName } from '../../src/sandbox/faults.js'
import type { Database } from '../../src/store/open.js'
import { startSandbox, type TestSandbox } from '../../src/testing/start-sandbox.js'
import { NOWHERE } from '../helpers/journal.js'
import { delivery, open } from '../journal/rig.js'

const REPO = { owner: 'octo', repo: 'demo' }
const HERE = 'http://127.0.0.1:9/webhook'
const ELSEWHERE = 'http://127.0.0.1:9/elsewhere'

/** A profile of the same user. */
interface Relay {
  readonly database: Database
  readonly journal: Journal
}

let sandbox: TestSandbox & AsyncDisposable
let provider: Provider
let token: string
let relays: Relay[]
beforeEach(async () => {
  sandbox = await startSandbox()
  provider = createProvider({ name: 'sandbox', url: sandbox.url })
  token = await sandbox.token('repo')
  relays = []
})
afterEach(async () => {
  for (const { database } of relays) await database[Symbol.asyncDispose]()
  await sandbox[Symbol.asyncDispose]()
})

async function startRelay(): Promise<Relay> {
  const database = await open()
  const relay = { database, journal: new Journal(database.sql) }
  relays.push(relay)
  return relay
}

const partsOf = ({ database, journal }: Relay) => ({ provider, store: database.store, journal })
const register = (relay: Relay, url = HERE, more: { permanent?: boolean; token?: string } = {}) =>
  registerHook(partsOf(relay), {
    token,
    repo: REPO,
    settings: { url, secret: new Secret('hush'), events: undefined },
    permanent: false,
    chosen: false,
    ...more,
  })
const unregister = (relay: Relay, url: string | undefined = HERE) =>
  unregisterHook(partsOf(relay), { token, repo: REPO, url })
const urls = async (): Promise<string[]> => (await provider.hooks.list(token, REPO)).map(({ url }) => url)
const make = (url: string) =>
  provider.hooks.create(token, REPO, { url, secret: new Secret('other'), events: ['push'] })

describe('a hook that relay registers', () => {
  it('is saved in the profile, and forgotten when it is removed', async () => {
    const relay = await startRelay()
    const { hook, created, permanent } = await register(relay)
    expect({ created, permanent }).toEqual({ created: true, permanent: false })
    const { store } = relay.database
    const saved = { v: 1, ...REPO, id: hook.id, url: HERE, chosen: false, events: null, permanent: false }
    expect(await listSavedHooks(store, provider)).toEqual([saved])
    expect(await readHook(store, provider, { owner: 'Octo', repo: 'DEMO' })).toEqual(saved)
    expect(await listSavedHooks(store, { origin: 'https://elsewhere.test' })).toEqual([])
    expect((await unregister(relay)).map(({ id }) => id)).toEqual([hook.id])
    expect([await urls(), await listSavedHooks(store, provider)]).toEqual([[], []])
    expect(await unregister(relay)).toEqual([])
  })

  it('is moved to a new address, and keeps its id and so its log', async () => {
    const relay = await startRelay()
    const { hook } = await register(relay, ELSEWHERE)
    expect(await register(relay)).toMatchObject({
      hook: { id: hook.id, url: HERE },
      created: false,
      repaired: [`it led to ${ELSEWHERE}`],
    })
    expect(await urls()).toEqual([HERE])
  })

  it('is not ours any more once someone gave it another address', async () => {
    const relay = await startRelay()
    const { hook } = await register(relay, ELSEWHERE)
    const theirs = { url: 'http://127.0.0.1:9/theirs', secret: new Secret('x'), events: undefined }
    await provider.hooks.change(token, REPO, hook.id, theirs)
    expect(await register(relay)).toMatchObject({ created: true })
    expect(await unregister(relay)).toHaveLength(1)
    expect(await urls()).toEqual([theirs.url])
  })

  it('is permanent if it was there before, or the user wants it, and stays so', async () => {
    await make(HERE)
    const [one, two] = [await startRelay(), await startRelay()]
    expect(await register(one)).toMatchObject({ created: false, permanent: true })
    expect(await register(two, ELSEWHERE)).toMatchObject({ created: true, permanent: false })
    expect(await register(two, ELSEWHERE, { permanent: true })).toMatchObject({ permanent: true })
    expect(await register(two, ELSEWHERE)).toMatchObject({ created: false, permanent: true })
  })

  it('is found by its address when its creation was interrupted', async () => {
    const relay = await startRelay()
    sandbox.faults.next('hook', { kind: 'slow', ms: 0 })
    sandbox.faults.next('hook', 'reset-after')
    await expect(register(relay)).rejects.toMatchObject({ kind: 'provider_failed' })
    expect(await urls()).toEqual([HERE])
    const { store } = relay.database
    expect(await readHook(store, provider, REPO)).toMatchObject({ id: null, url: HERE, permanent: false })
    expect(await findOwnHooks(partsOf(relay), { token, repo: REPO, url: undefined })).toHaveLength(1)
    expect(await register(relay)).toMatchObject({ created: false, permanent: false })
  })

  it('leaves alone the one of another relay', async () => {
    const [one, two] = [await startRelay(), await startRelay()]
    await register(one)
    await register(two, ELSEWHERE)
    await register(one)
    expect((await urls()).toSorted()).toEqual([ELSEWHERE, HERE])
    await unregister(one)
    expect(await urls()).toEqual([ELSEWHERE])
    expect(await register(two, ELSEWHERE)).toMatchObject({ created: false, repaired: [] })
  })

  it('is gone also when someone removes it at the same moment', async () => {
    const relay = await startRelay()
    const { hook } = await register(relay)
    const racing: Provider = {
      ...provider,
      hooks: {
        ...provider.hooks,
        async remove(...args) {
          await provider.hooks.remove(token, REPO, hook.id)
          await provider.hooks.remove(...args)
        },
      },
    }
    expect(
      await unregisterHook({ ...partsOf(relay), provider: racing }, { token, repo: REPO, url: HERE }),
    ).toHaveLength(1)
    expect(await listSavedHooks(relay.database.store, provider)).toEqual([])
  })
})

describe('a hook is refused', () => {
  it.each([
    [
      'an App',
      { hookId: '77', headers: [['X-GitHub-Hook-Installation-Target-Type', 'integration']] as const },
    ],
    ["the sandbox's own webhook", { hookId: '1', headers: [] }],
  ])('where deliveries already come through %s, until a day without', async (_, from) => {
    const relay = await startRelay()
    const common = { provider: 'sandbox', repo: 'Octo/Demo', ...from }
    await relay.journal.append(delivery('1', { ...common, receivedAt: Date.now() }), NOWHERE)
    await expect(register(relay)).rejects.toMatchObject({
      kind: 'conflict',
      message: expect.stringMatching(/^The deliveries of octo\/demo already come through .* \(#1\)/),
    })
    expect(await urls()).toEqual([])
    const later = await startRelay()
    await later.journal.append(delivery('1', { ...common, receivedAt: Date.now() - 90_000_000 }), NOWHERE)
    await later.journal.append(
      delivery('2', { ...common, repo: 'octo/other', receivedAt: Date.now() }),
      NOWHERE,
    )
    expect(await register(later)).toMatchObject({ created: true })
  })

  it('where the code host cannot reach the address', async () => {
    const relay = await startRelay()
    const github = { ...provider, name: 'github', url: 'https://github.com' } as const
    const wanted = { token, repo: REPO, permanent: false, chosen: false }
    const settings = { url: HERE, secret: new Secret('hush'), events: undefined }
    await expect(
      registerHook({ ...partsOf(relay), provider: github }, { ...wanted, settings }),
    ).rejects.toMatchObject({
      kind: 'settings',
      message: `https://github.com cannot reach ${HERE}, an address of this machine alone. Receive through relay serve --tunnel, or set --public-url to an address that it can reach`,
    })
  })

  const forbidden = {
    kind: 'answer',
    status: 403,
    body: JSON.stringify({ message: 'the `octo` organization has enabled OAuth App access restrictions' }),
  } as const
  it.each<[string, Fault | FaultName, string, RegExp]>([
    ['by an organization', forbidden, 'forbidden', /Ask an owner of octo to approve the OAuth app/],
    ['by a rate limit', 'secondary-limit', 'rate_limited', /Try again in 60 s$/],
    ['by a failure', '502', 'provider_failed', /Try again later$/],
  ])('%s, with the next step', async (_, fault, kind, text) => {
    const relay = await startRelay()
    sandbox.faults.next('hook', fault)
    await expect(register(relay)).rejects.toMatchObject({ kind, message: expect.stringMatching(text) })
    expect(await listSavedHooks(relay.database.store, provider)).toEqual([])
  })

  it('to a token without the scope, which it names', async () => {
    const relay = await startRelay()
    const weak = await sandbox.token('public_repo')
    await expect(register(relay, HERE, { token: weak })).rejects.toMatchObject({
      kind: 'not_found',
      message: expect.stringMatching(
        /The token needs one of the scopes admin:repo_hook, .*; it has public_repo\. Sign in with the scope repo or admin:repo_hook/,
      ),
    })
  })

  it('when there are too many, with the next step', async () => {
    const relay = await startRelay()
    for (let i = 0; i < 20; i++)
      await provider.hooks.create(token, REPO, {
        url: `${ELSEWHERE}/${i}`,
        secret: new Secret('x'),
        events: undefined,
      })
    await expect(register(relay)).rejects.toMatchObject({
      kind: 'unprocessable',
      message: expect.stringMatching(/more than 20 hooks.*Remove one .*: relay hook list octo\/demo$/),
    })
    expect(await listSavedHooks(relay.database.store, provider)).toEqual([])
  })
})
