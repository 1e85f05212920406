import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { RelayError } from '../../src/base/errors.js'
import { Secret } from '../../src/base/secret.js'
import { type HookContext, registerHook, removeFormer, SavedHooks } from '../../src/codehost/hooks.js'
import type { RepoHooks, HookSettings, RepoHook } from '../../src/codehost/host.js'
import { hostKind } from '../../src/codehost/hosts.js'
import { openDatabase } from '../../src/store/open.js'
import { failure, REPO } from './codehost-rig.js'

const URL = 'http://127.0.0.1:8787/webhook'
const OTHER = 'https://ci.example/hook'
const SETTINGS: HookSettings = { url: URL, secret: new Secret('hush'), events: ['push', 'issues'] }

const wanted = { settings: SETTINGS, permanent: false, chosen: false }

interface Stored extends Omit<RepoHook, 'hasSecret'> {
  secret: string | undefined
}

/** The hooks of a repository, as a code host has them: `github` changes them in place, `gitea` replaces them for another secret. */
function fakeHooks(kind: 'github' | 'gitea', all: Stored[]) {
  const state = { all, writes: 0 }
  const show = ({ secret, ...hook }: Stored): RepoHook => ({
    ...hook,
    hasSecret: kind === 'gitea' ? undefined : secret !== undefined,
  })
  const common = { active: true, contentType: 'json', lastResponse: undefined }
  const make = ({ url, events = ['*'], secret }: HookSettings, id: number): Stored => {
    return { ...common, id, url, events, secret: secret.reveal() }
  }
  const nextId = (): number => Math.max(0, ...all.map((hook) => hook.id)) + 1
  const hooks: RepoHooks = {
    list: async () => all.map(show),
    async create(_, settings) {
      state.writes++
      const made = make(settings, nextId())
      all.push(made)
      return show(made)
    },
    async change(_, id, settings, { sameSecret }) {
      state.writes++
      const at = all.findIndex((hook) => hook.id === id)
      const before = all[at]
      const isInPlace = kind === 'github' || sameSecret
      const changed = make(settings, isInPlace ? id : nextId())
      if (kind === 'gitea' && sameSecret && before) changed.secret = before.secret
      all.splice(isInPlace ? at : all.length, isInPlace ? 1 : 0, changed)
      return show(changed)
    },
    ...(kind === 'gitea' && {
      async retire(_: unknown, id: number) {
        state.writes++
        all.splice(
          0,
          all.length,
          ...all.map((hook) => (hook.id === id ? { ...hook, events: ['repository'] } : hook)),
        )
      },
    }),
    async remove(_, id) {
      state.writes++
      const at = all.findIndex((hook) => hook.id === id)
      if (at === -1) throw new RelayError('not_found', 'Not Found')
      all.splice(at, 1)
    },
    test: async () => {},
  }
  return { state, hooks }
}

const HOST = { url: 'http://127.0.0.1:3000', origin: 'http://127.0.0.1:3000' }

async function placeWith(kind: 'github' | 'gitea', all: readonly Stored[] = []) {
  const database = await openDatabase({ kind: 'memory', folder: '' })
  const { state, hooks } = fakeHooks(kind, [...all])
  const saved = new SavedHooks(database.store, HOST)
  const host = { ...(await hostKind(kind)), ...HOST }
  const place: HookContext = {
    host,
    hooks,
    saved,
    repo: REPO,
    login: 'relay login',
    command: (line) => `relay ${line}`,
  }
  const register = async (changes: Partial<HookSettings> = {}, over: Partial<HookContext> = {}) => {
    const settings = { ...SETTINGS, ...changes }
    const registered = await registerHook({ ...place, ...over }, { ...wanted, settings })
    await removeFormer(place, registered.former, { after: 0, stop: new AbortController().signal })
    return registered
  }
  const close = () => database[Symbol.asyncDispose]()
  return { state, hooks, saved, place, register, [Symbol.asyncDispose]: close }
}

const MOVED = 'http://127.0.0.1:9/moved'
const theirHook = fc.record({
  url: fc.constantFrom(URL, OTHER, 'http://127.0.0.1:9/before'),
  active: fc.boolean(),
  contentType: fc.constantFrom('json', 'form'),
  events: fc.constantFrom(['*'], ['push'], ['push', 'issues']),
  secret: fc.constantFrom(undefined, 'hush', 'other'),
  lastResponse: fc.constant(undefined),
})
const repository = fc
  .array(theirHook, { maxLength: 4 })
  .map((all) => all.map((hook, i): Stored => ({ ...hook, id: i + 1 })))
const kind = fc.constantFrom<'github' | 'gitea'>('github', 'gitea')

describe('whatever hooks a repository has', () => {
  it('one with the address and the settings is there afterwards, the others stay, and a second time changes nothing', async () => {
    await fc.assert(
      fc.asyncProperty(kind, repository, async (host, all) => {
        await using here = await placeWith(host, all)
        const { hook, ...how } = await here.register()
        const isThere = all.some(({ url }) => url === URL)
        expect(how).toMatchObject({ created: !isThere, found: isThere, permanent: isThere })
        const { events } = SETTINGS
        const { id, lastResponse } = hook
        const whole = {
          id,
          url: URL,
          active: true,
          contentType: 'json',
          events,
          secret: 'hush',
          lastResponse,
        }
        expect(here.state.all.filter(({ url }) => url === URL)).toEqual([whole])
        expect(here.state.all.filter(({ url }) => url !== URL)).toEqual(all.filter(({ url }) => url !== URL))
        const { writes } = here.state
        expect(await here.register()).toMatchObject({ hook: { id }, created: false, repaired: [] })
        expect(here.state.writes).toBe(writes)
      }),
    )
  })

  it('nothing that is wrong with ours is left, in place if the secret is the one that it has', async () => {
    const wrong = { url: MOVED, active: false, contentType: 'form', events: ['push'] }
    const harm = fc.subarray(['url', 'active', 'contentType', 'events'] as const)
    await fc.assert(
      fc.asyncProperty(kind, harm, fc.boolean(), async (host, fields, changesSecret) => {
        await using here = await placeWith(host)
        const { hook } = await here.register()
        const isTheirs = fields.includes('url')
        for (const each of here.state.all)
          for (const field of fields) Object.assign(each, { [field]: wrong[field] })
        const secret = changesSecret ? 'another' : 'hush'
        const again = await here.register({ secret: new Secret(secret) })
        expect(here.state.all.filter(({ url }) => url === URL)).toMatchObject([
          { active: true, contentType: 'json', events: SETTINGS.events, secret },
        ])
        const isInPlace = !isTheirs && (host === 'github' || !changesSecret)
        expect([again.created, again.hook.id === hook.id]).toEqual([isTheirs, isInPlace])
        expect(again.repaired).toHaveLength(isTheirs ? 0 : fields.length)
      }),
    )
  })
})

describe('a hook of ours', () => {
  it.each(['github', 'gitea'] as const)(
    'is found after a kill while its address and secret were changed: %s',
    async (host) => {
      await using here = await placeWith(host)
      await here.register()
      const killed = new Error('killed')
      const change: RepoHooks['change'] = async (...call) => {
        const [before] = here.state.all
        await here.hooks.change(...call)
        // Gitea makes a new one before it removes the old one.
        if (host === 'gitea' && before) here.state.all.push(before)
        throw killed
      }
      const during = { url: 'http://127.0.0.1:9/during', secret: new Secret('another') }
      await expect(here.register(during, { hooks: { ...here.hooks, change } })).rejects.toBe(killed)
      await here.register({ url: MOVED })
      expect(here.state.all).toMatchObject([{ url: MOVED, secret: 'hush' }])
      expect(await here.saved.list()).toMatchObject([{ url: MOVED, permanent: false }])
    },
  )

  it('gets its settings again when its last delivery was answered 401, or it has no secret', async () => {
    await using here = await placeWith('github')
    await here.register()
    const [hook] = here.state.all
    if (!hook) throw new Error('there is no hook')
    const isOurs = () => here.state.all[0]?.secret === 'hush'
    const spoil = (more: Partial<Stored>): void =>
      void here.state.all.splice(0, 1, { ...hook, secret: 'theirs', ...more })
    spoil({ lastResponse: { code: 401, message: '' } })
    await here.register()
    expect(isOurs()).toBe(true)
    spoil({ secret: undefined })
    expect((await here.register()).repaired).toEqual(['it had no secret'])
  })

  it('has one record, however its repository is spelled', async () => {
    await using here = await placeWith('github')
    await here.register()
    expect(await here.saved.get({ owner: 'OCTO', repo: 'Demo' })).toMatchObject(REPO)
    expect(JSON.stringify(await here.saved.list())).not.toContain('hush')
  })
})

it.each<[string, string, kind: string, RegExp]>([
  [URL, 'https://github.com', 'settings', /^https:\/\/github.com cannot reach http:\/\/127/],
  [URL, 'http://localhost:3000', 'none', /did not fail/],
  ['https://relay.example/webhook', 'https://github.com', 'none', /did not fail/],
])('whether %s can be reached from %s: %s', async (url, from, error, message) => {
  await using here = await placeWith('github')
  const host = { ...here.place.host, url: from }
  const failed = await failure(here.register({ url }, { host }))
  expect([failed.kind, failed.message]).toEqual([error, expect.stringMatching(message)])
})
