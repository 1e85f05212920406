import { describe, expect, it } from 'vitest'
import { repository } from '../kit/code-host.js'
import { post, SECRET } from '../kit/delivery.js'
import { openInspector } from '../kit/inspector.js'
import { place } from '../kit/place.js'
import { receiver } from '../kit/receiver.js'
import { requestOf, SENDERS } from '../kit/senders.js'
import { objects } from './example.js'
import { fresh } from './fixture.js'

const target = fresh(() => receiver())
const here = fresh(() => place({ signedIn: true }))
const relay = fresh(() => here.serve())
const inspector = fresh(() => openInspector(here, relay))

const change = async (path: string, body: object) => {
  const response = await inspector.send(path, body)
  return [response.status, await response.json()]
}
const state = async () => JSON.parse(await (await inspector.get('state')).text())
const choices = async () => JSON.parse(await (await inspector.get('choices')).text())
const routes = async () => objects((await here.run('routes', '--json')).out)

describe('a route', () => {
  it('is added as relay routes add does, forwards at once and after a restart, and is removed', async () => {
    const forward = `${target.url}/hooks?token=hidden`
    const given = { name: 'app', match: 'push,issues', where: 'zen==one', forward }
    const label = `push,issues[zen==one]=${target.url}/hooks?…`
    expect(await change('routes', given)).toEqual([200, { text: `Added the route ${label}` }])
    await relay.deliver({ id: 'one', body: '{"zen":"one"}' })
    await relay.deliver({ id: 'two', body: '{"zen":"two"}' })
    await relay.object({ type: 'attempt', n: 1 })
    expect(target.received).toHaveLength(1)
    const listed = { type: 'route', target: label, name: 'app', from: 'profile' }
    expect(await routes()).toEqual([expect.objectContaining(listed)])

    const { targets } = await state()
    expect(targets).toEqual([expect.objectContaining({ name: 'app', ofProfile: true })])
    expect(JSON.stringify(targets)).not.toContain('hidden')
    const [{ id }] = targets
    expect(await change('routes/remove', { target: id })).toEqual([
      200,
      { text: `Removed the route ${label}` },
    ])
    expect([await routes(), (await state()).targets]).toEqual([[], []])
    const gone = 'The profile stores no such route any more. Reload the page'
    expect(await change('routes/remove', { target: id })).toEqual([400, { error: gone }])
  })

  it.each([
    [{ forward: './deploy.sh' }, "Invalid route: './deploy.sh' names no http:// or https:// address"],
    [
      { forward: 'exec:./deploy.sh' },
      "Invalid route: 'exec:./deploy.sh' names no http:// or https:// address",
    ],
    [
      { forward: '3000', match: 'push[main' },
      'The route.match must be events alone: write the condition as where',
    ],
    [{ forward: '3000', exec: './deploy.sh' }, 'Invalid request'],
    [{ forward: '3000', headers: { 'X-Key': '$HOME' } }, 'Invalid request'],
    [{ exec: './deploy.sh' }, 'Invalid request'],
  ])('is refused where it would run a command, or is none: %j', async (given, error) => {
    expect(await change('routes', given)).toEqual([400, { error }])
    expect(await routes()).toEqual([])
  })
})

describe('a source', () => {
  it('is added as relay source add does, receives at once, and its secret is nowhere', async () => {
    const [name, sender] = ['stripe', SENDERS['stripe']]
    if (!sender) throw new Error('no sender')
    const { secret } = sender
    const text = `Stored the secret of stripe. The address to enter at the sender: ${relay.address}/webhook/stripe`
    const added = await change('sources', { scheme: name, secret })
    expect(added).toEqual([200, { text }])
    expect((await post(`${relay.address}/webhook/stripe`, await requestOf(sender, Date.now()))).status).toBe(
      200,
    )
    expect((await state()).sources).toEqual([expect.objectContaining({ name, scheme: 'stripe' })])
    const again = await change('sources', { scheme: name, secret: `${secret}2` })
    expect(again).toEqual([200, { text: expect.stringContaining('The secret before it is accepted too') }])
    const listed = await here.run('source', 'list', '--json')
    const shown = JSON.stringify([added, again, await state()]) + relay.err + relay.out + listed.out
    expect(shown).not.toContain(secret)
  })

  it.each([
    [{ scheme: 'stripe', secret: '' }, 'The field Secret has no secret'],
    [
      { scheme: 'stripe', secret: 'one\ntwo' },
      'The field Secret is not one secret: it has several lines or control characters',
    ],
    [
      { scheme: 'strip', secret: SECRET },
      expect.stringMatching(/^Scheme: must be a scheme.*did you mean stripe/),
    ],
    [
      { scheme: 'none', name: 'door', secret: SECRET },
      expect.stringMatching(/^Nothing proves deliveries of the scheme none/),
    ],
    [{ scheme: 'stripe', secret: 'x'.repeat(4097) }, 'Invalid request'],
  ])('is refused in words of the page: %j', async (given, error: unknown) => {
    expect(await change('sources', given)).toEqual([400, { error }])
    expect((await here.run('source', 'list')).out).toBe('')
    expect(relay.err + relay.out).not.toContain(SECRET)
  })
})

describe('a hook', () => {
  it('is made as relay hook add does, as the user who is signed in, and shown', async () => {
    const demo = await repository(here.sandbox)
    const { users, schemes } = await choices()
    expect([users, schemes]).toEqual([[expect.any(String)], expect.arrayContaining(['stripe', 'hmac'])])
    const [user] = users
    const url = `${relay.address}/webhook`
    const text = `Created the hook of octo/demo, to ${url}`
    expect(await change('hooks', { repo: 'octo/demo', user, events: 'push,issues' })).toEqual([200, { text }])
    expect(await demo.hooks()).toEqual([expect.objectContaining({ events: ['push', 'issues'] })])
    expect((await state()).hooks).toEqual([{ repo: 'octo/demo', url, permanent: true, problem: null }])
    expect((await here.run('hook', 'list')).out).toContain(`octo/demo  ${url}`)
    const found = `Found the hook of octo/demo, to ${url}`
    expect(await change('hooks', { repo: 'octo/demo', user, events: 'push,issues' })).toEqual([
      200,
      { text: found },
    ])
  })

  it.each([
    [{ repo: 'octo' }, 400, '"octo" is not a repository. Give for example octo/demo'],
    [{ repo: 'octo/demo', url: 'nothing' }, 400, expect.stringMatching(/^Address: /)],
    [
      { repo: 'octo/demo', events: 'Push!' },
      400,
      'Events: must be names of events, separated by commas: push,pull_request',
    ],
    [{ repo: 'octo/none' }, 404, expect.stringContaining('no such repository')],
  ])('is refused in words of the page: %j', async (given, status, error: unknown) => {
    const [user] = (await choices()).users
    expect(await change('hooks', { user, ...given })).toEqual([status, { error }])
  })
})

it('needs the key for each change', async () => {
  for (const path of ['routes', 'routes/remove', 'sources', 'hooks'])
    expect([path, (await inspector.send(path, {}, { 'X-Relay-Key': '' })).status]).toEqual([path, 403])
})
