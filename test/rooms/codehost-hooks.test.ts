import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { RelayError } from '../../src/base/errors.js'
import { Secret } from '../../src/base/secret.js'
import { type HookPlace, registerHook, SavedHooks } from '../../src/codehost/hooks.js'
import type { Hooks, HookSettings, Repo, RepoHook } from '../../src/codehost/host.js'
import { HOST_KINDS } from '../../src/codehost/hosts.js'
import { openDatabase } from '../../src/store/open.js'
import { failure, REPO } from './codehost-rig.js'

const URL = 'http://127.0.0.1:8787/webhook'
const OTHER = 'https://ci.example/hook'
const SETTINGS: HookSettings = { url: URL, secret: new Secret('hush'), events: ['push', 'issues'] }

interface Stored extends Omit<RepoHook, 'hasSecret'> {
  readonly secret: string | undefined
}

/** The hooks of a repository, as a code host has them: `github` changes them in place, `gitea` replaces them for another secret. */
class FakeHooks implements Hooks {
  readonly all: Stored[]
  writes = 0
  readonly #kind: 'github' | 'gitea'

  constructor(kind: 'github' | 'gitea', all: readonly Stored[] = []) {
    this.#kind = kind
    this.all = [...all]
  }

  #show({ secret, ...hook }: Stored): RepoHook {
    const hasSecret = this.#kind === 'gitea' ? undefined : secret !== undefined
    return { ...hook, hasSecret }
  }

  #make({ url, events, secret }: HookSettings): Stored {
    const id = Math.max(0, ...this.all.map((hook) => hook.id)) + 1
    const common = { active: true, contentType: 'json', lastResponse: undefined }
    return { ...common, id, url, events: events ?? ['*'], secret: secret.reveal() }
  }

  async list(): Promise<readonly RepoHook[]> {
    return this.all.map((hook) => this.#show(hook))
  }

  async create(_: Repo, settings: HookSettings): Promise<RepoHook> {
    this.writes++
    const made = this.#make(settings)
    this.all.push(made)
    return this.#show(made)
  }

  async change(
    _: Repo,
    id: number,
    settings: HookSettings,
    { sameSecret }: { sameSecret: boolean },
  ): Promise<RepoHook> {
    this.writes++
    const at = this.all.findIndex((hook) => hook.id === id)
    const before = this.all[at]
    const made = this.#make(settings)
    const isInPlace = this.#kind === 'github' || sameSecret
    const secret = this.#kind === 'github' ? made.secret : before?.secret
    const changed = isInPlace ? { ...made, id, secret } : made
    this.all.splice(at, 1, changed)
    return this.#show(changed)
  }

  async remove(_: Repo, id: number): Promise<void> {
    this.writes++
    const at = this.all.findIndex((hook) => hook.id === id)
    if (at === -1) throw new RelayError('not_found', 'Not Found')
    this.all.splice(at, 1)
  }

  async test(): Promise<void> {}
}

/** The calls as functions, so that a test can replace some. */
function bound(hooks: FakeHooks): Hooks {
  return {
    list: () => hooks.list(),
    create: (...call) => hooks.create(...call),
    change: (...call) => hooks.change(...call),
    remove: (...call) => hooks.remove(...call),
    test: () => hooks.test(),
  }
}

const HOST = { url: 'http://127.0.0.1:3000', origin: 'http://127.0.0.1:3000' }

async function placeWith(kind: 'github' | 'gitea', all: readonly Stored[] = []) {
  const database = await openDatabase({ kind: 'memory', folder: '' })
  const hooks = new FakeHooks(kind, all)
  const saved = new SavedHooks(database.store, HOST)
  const place = {
    host: { ...HOST, words: HOST_KINDS[kind].words },
    hooks,
    saved,
    repo: REPO,
  } satisfies HookPlace
  return { hooks, saved, place, [Symbol.asyncDispose]: () => database[Symbol.asyncDispose]() }
}

const wanted = { settings: SETTINGS, permanent: false, chosen: false }
const stored = fc
  .record({
    url: fc.constantFrom(URL, OTHER, 'http://127.0.0.1:9/before'),
    active: fc.boolean(),
    contentType: fc.constantFrom('json', 'form'),
    events: fc.constantFrom(['*'], ['push'], ['push', 'issues']),
    secret: fc.constantFrom(undefined, 'hush', 'other'),
  })
  .map((hook): Omit<Stored, 'id'> => ({ ...hook, lastResponse: undefined }))
const repository = fc
  .array(stored, { maxLength: 4 })
  .map((all) => all.map((hook, i): Stored => ({ ...hook, id: i + 1 })))
const kind = fc.constantFrom<'github' | 'gitea'>('github', 'gitea')

describe('whatever hooks a repository has', () => {
  it('one with the address and the settings is there afterwards, the others stay, and a second time changes nothing', async () => {
    await fc.assert(
      fc.asyncProperty(kind, repository, async (host, all) => {
        await using here = await placeWith(host, all)
        const { hook, created, found, permanent } = await registerHook(here.place, wanted)
        const isThere = all.some(({ url }) => url === URL)
        expect({ created, found, permanent }).toEqual({
          created: !isThere,
          found: isThere,
          permanent: isThere,
        })
        const ours = here.hooks.all.filter(({ url }) => url === URL)
        expect(ours).toEqual([
          {
            id: hook.id,
            url: URL,
            active: true,
            contentType: 'json',
            events: SETTINGS.events,
            secret: 'hush',
            lastResponse: undefined,
          },
        ])
        expect(here.hooks.all.filter(({ url }) => url !== URL)).toEqual(all.filter(({ url }) => url !== URL))
        const { writes } = here.hooks
        expect(await registerHook(here.place, wanted)).toMatchObject({
          hook: { id: hook.id },
          created: false,
          repaired: [],
        })
        expect(here.hooks.writes).toBe(writes)
      }),
    )
  })

  it('nothing that is wrong with ours is left, in place if the secret is the one that it has', async () => {
    const harm = fc.record(
      {
        url: fc.constant('http://127.0.0.1:9/moved'),
        active: fc.constant(false),
        contentType: fc.constant('form'),
        events: fc.constant(['push']),
      },
      { requiredKeys: [] },
    )
    await fc.assert(
      fc.asyncProperty(kind, harm, fc.boolean(), async (host, spoilt, changesSecret) => {
        await using here = await placeWith(host)
        const { hook } = await registerHook(here.place, wanted)
        const isTheirs = spoilt.url !== undefined
        here.hooks.all.splice(0, 1, ...here.hooks.all.map((each) => ({ ...each, ...spoilt })))
        const secret = new Secret(changesSecret ? 'another' : 'hush')
        const again = await registerHook(here.place, { ...wanted, settings: { ...SETTINGS, secret } })
        const ours = here.hooks.all.filter(({ url }) => url === URL)
        expect(ours).toMatchObject([
          { active: true, contentType: 'json', events: SETTINGS.events, secret: secret.reveal() },
        ])
        const { url: _, ...others } = spoilt
        const isInPlace = !isTheirs && (host === 'github' || !changesSecret)
        expect([again.created, again.hook.id === hook.id]).toEqual([isTheirs, isInPlace])
        expect(again.repaired).toHaveLength(isTheirs ? 0 : Object.keys(others).length)
      }),
    )
  })
})

describe('a hook of ours', () => {
  it.each(['github', 'gitea'] as const)(
    'is found after a kill while its address and secret were changed: %s',
    async (host) => {
      await using here = await placeWith(host)
      await registerHook(here.place, wanted)
      const killed = new Error('killed')
      const change: Hooks['change'] = async (...call) => {
        const [before] = here.hooks.all
        await here.hooks.change(...call)
        // Gitea makes a new one before it removes the old one.
        if (host === 'gitea' && before) here.hooks.all.push(before)
        throw killed
      }
      const hooks: Hooks = { ...bound(here.hooks), change }
      const settings = { ...SETTINGS, url: 'http://127.0.0.1:9/during', secret: new Secret('another') }
      await expect(registerHook({ ...here.place, hooks }, { ...wanted, settings })).rejects.toBe(killed)
      const next = { ...SETTINGS, url: 'http://127.0.0.1:9/next' }
      await registerHook(here.place, { ...wanted, settings: next })
      expect(here.hooks.all).toMatchObject([{ url: next.url, secret: 'hush' }])
      expect(await here.saved.list()).toMatchObject([{ url: next.url, permanent: false }])
    },
  )

  it('gets its settings again when the user asks for it, or its last delivery was answered 401', async () => {
    await using here = await placeWith('github')
    await registerHook(here.place, wanted)
    const spoil = (more: Partial<Stored>): void =>
      void here.hooks.all.splice(
        0,
        1,
        ...here.hooks.all.map((hook) => ({ ...hook, secret: 'theirs', ...more })),
      )
    spoil({})
    await registerHook(here.place, { ...wanted, permanent: true })
    expect(here.hooks.all).toMatchObject([{ secret: 'hush' }])
    spoil({ lastResponse: { code: 401, message: '' } })
    await registerHook(here.place, wanted)
    expect(here.hooks.all).toMatchObject([{ secret: 'hush' }])
    spoil({ secret: undefined })
    expect((await registerHook(here.place, wanted)).repaired).toEqual(['it had no secret'])
  })

  it('has one record, however its repository is spelled', async () => {
    await using here = await placeWith('github')
    await registerHook(here.place, wanted)
    expect(await here.saved.get({ owner: 'OCTO', repo: 'Demo' })).toMatchObject(REPO)
    expect(JSON.stringify(await here.saved.list())).not.toContain('hush')
  })
})

it.each<[string, string, RegExp | undefined]>([
  [URL, 'https://github.com', /^https:\/\/github.com cannot reach http:\/\/127/],
  [URL, 'http://localhost:3000', undefined],
  ['https://relay.example/webhook', 'https://github.com', undefined],
])('%s is an address that %s cannot reach: %s', async (url, host, message) => {
  await using here = await placeWith('github')
  const place = { ...here.place, host: { ...here.place.host, url: host } }
  const { kind, message: text } = await failure(
    registerHook(place, { ...wanted, settings: { ...SETTINGS, url } }),
  )
  expect(kind).toBe(message ? 'settings' : 'none')
  expect(text).toMatch(message ?? /did not fail/)
})
