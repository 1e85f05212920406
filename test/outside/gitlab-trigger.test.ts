import { describe, expect, it } from 'vitest'
import { Webhook } from 'standardwebhooks'
import { events, fixtureOf, signedRequest } from 'webhook-relay/testing'
import { openInspector } from '../kit/inspector.js'
import { place } from '../kit/place.js'
import { receiver, valuesOf } from '../kit/receiver.js'
import { fresh, json } from './fixture.js'
import { objects } from './example.js'

const SIGNING = `whsec_${Buffer.alloc(32, 7).toString('base64')}`
const EVENTS = events({ provider: 'gitlab' })

const here = fresh(() => place({ host: 'gitlab', env: { RELAY_WEBHOOK_SECRET: SIGNING } }))

const project = { path_with_namespace: 'octo/demo' }

describe('relay trigger at a GitLab', () => {
  it('has an example of more than fifteen events, each of which arrives as itself', async () => {
    const { address } = await here.serve()
    expect(new Set(EVENTS.map((name) => name.split('.')[0])).size).toBeGreaterThan(15)
    for (const name of EVENTS) expect((await here.run('trigger', name)).code).toBe(0)
    const entries = objects(await here.run('log', '--json', '-n', '100'))
    const names = entries.map(({ event, action }) => [event, ...(action === null ? [] : [action])].join('.'))
    expect(names).toEqual(EVENTS)
    expect(new Set(entries.map(({ repo }) => repo))).toEqual(new Set(['octo/demo', null]))
    const shown = await json(here.run('show', 'last', '--json'))
    expect(shown).toMatchObject({ source: 'gitlab-host' })
    expect(address).toContain('http://127.0.0.1:')
  })

  it('has the number of issues and merge requests alone, with the sign that GitLab gives it', async () => {
    const relay = await here.serve()
    const inspector = await openInspector(here, relay)
    for (const name of EVENTS) expect((await here.run('trigger', name)).code).toBe(0)
    const NUMBERS: Readonly<Record<string, readonly [number, string, string]>> = {
      'confidential_issue.open': [2, 'issue', '#2'],
      'confidential_note.create': [1, 'issue', '#1'],
      'emoji.award': [1, 'issue', '#1'],
      'emoji.revoke': [1, 'issue', '#1'],
      'issue.open': [1, 'issue', '#1'],
      'issue.close': [1, 'issue', '#1'],
      'note.create': [1, 'pull', '!1'],
      'merge_request.open': [1, 'pull', '!1'],
      'merge_request.update': [1, 'pull', '!1'],
      'merge_request.merge': [1, 'pull', '!1'],
      // That of a merge request.
      pipeline: [1, 'pull', '!1'],
    }
    const entries = objects(await here.run('log', '--json', '-n', '100'))
    const lines = (await here.run('log', '-n', '100')).out.trimEnd().split('\n')
    const listed: unknown = await inspector.json('deliveries?limit=200')
    const subjects = new Map(
      Object(listed).deliveries.map(({ n, subject }: { n: number; subject: string }) => [n, subject]),
    )
    EVENTS.forEach((name, i) => {
      const [number, kind, sign] = NUMBERS[name] ?? [null, undefined, undefined]
      const shown = /octo\/demo([#!]\d+)?/.exec(lines[i] ?? '')?.[1]
      const { n, number: given, kind: ofKind } = entries[i] ?? {}
      expect([name, given, ofKind, shown]).toEqual([name, number, kind, sign])
      expect([name, /^[#!]\d/.exec(String(subjects.get(n)))?.input]).toEqual([name, sign])
    })
    const { err } = await relay.stop()
    const signs = EVENTS.flatMap((name) => NUMBERS[name]?.[2] ?? [])
    expect([...err.matchAll(/octo\/demo([#!]\d+)/g)].map(([, sign]) => sign)).toEqual(signs)
  })

  it('names the addresses of its code host, now', async () => {
    const { out } = await here.run('trigger', 'merge_request.open', '--print')
    const { body, headers } = JSON.parse(out)
    expect(headers['X-Gitlab-Event']).toBe('Merge Request Hook')
    expect(headers['Webhook-ID']).toBe(headers['Idempotency-Key'])
    const { project, object_attributes: about } = JSON.parse(body)
    expect(project.web_url).toBe(`${here.gitlab.url}/octo/demo`)
    expect(about.url).toBe(`${here.gitlab.url}/octo/demo/-/merge_requests/1`)
    const at = Date.parse(String(about.updated_at).replace(' UTC', 'Z').replace(' ', 'T'))
    expect(Math.abs(Date.now() - at)).toBeLessThan(86_400_000)
  })

  it.each(['at rest', 'running'])(
    'is of the code host of the profile, %s, unless this shell names another',
    async (state) => {
      await here.runWith({ stdin: here.gitlab.token() }, 'login', '--with-token')
      if (state === 'running') await here.serve()
      await using target = await receiver()
      const env = { RELAY_PROVIDER: undefined, RELAY_PROVIDER_URL: undefined }
      const listed = async (...more: string[]) =>
        (await here.runWith({ env }, 'trigger', '--list', ...more)).out.trimEnd().split('\n')
      expect(await listed()).toEqual(EVENTS)
      expect(await listed('--provider', 'gitea')).toEqual(events({ provider: 'gitea' }))
      const printed = await json(here.runWith({ env }, 'trigger', 'push', '--print'))
      expect(printed).toMatchObject({ provider: 'gitlab-host', headers: { 'X-Gitlab-Event': 'Push Hook' } })
      expect((await here.runWith({ env }, 'trigger', 'push', '--to', target.url)).code).toBe(0)
      expect(target.received.flatMap((each) => valuesOf(each, 'x-gitlab-event'))).toEqual(['Push Hook'])
    },
  )

  it.each(EVENTS)('keeps the project of %s consistent where --set changes its path', async (name) => {
    const set = ['--set', 'project.path_with_namespace=group/sub/shop']
    const { code, out } = await here.run('trigger', name, '--print', ...set)
    // A vulnerability names no project.
    if (name === 'vulnerability') return
    expect([code, out.includes('octo/demo')]).toEqual([0, false])
    expect(JSON.parse(JSON.parse(out).body).project.web_url).toBe(`${here.gitlab.url}/group/sub/shop`)
  })

  it.each([
    ['merge_request.open', 'object_attributes', 'merge_requests'],
    ['merge_request.merge', 'object_attributes', 'merge_requests'],
    ['note.create', 'merge_request', 'merge_requests'],
    ['pipeline', 'merge_request', 'merge_requests'],
    ['issue.open', 'object_attributes', 'issues'],
    ['confidential_note.create', 'issue', 'issues'],
  ])('keeps the number of %s consistent where --set changes %s.iid', async (name, subject, page) => {
    const { body } = await json(here.run('trigger', name, '--print', '--set', `${subject}.iid=57`))
    const numbers = [...body.matchAll(new RegExp(`/-/${page}/(\\d+)`, 'g'))].map(([, number]) => number)
    expect([JSON.parse(body)[subject].iid, new Set(numbers)]).toEqual([57, new Set(['57'])])
  })

  it('leaves an issue alone that has the number of the merge request', async () => {
    const both = {
      object_kind: 'merge_request',
      project,
      object_attributes: { iid: 1, url: 'https://h/octo/demo/-/merge_requests/1' },
      closes: [{ iid: 1, url: 'https://h/octo/demo/-/issues/1' }],
    }
    const given = { stdin: JSON.stringify(both) }
    const set = ['--set', 'object_attributes.iid=2', '--print']
    const { out } = await here.runWith(given, 'trigger', 'merge_request', '--body', '-', ...set)
    expect(JSON.parse(JSON.parse(out).body)).toEqual({
      ...both,
      object_attributes: { iid: 2, url: 'https://h/octo/demo/-/merge_requests/2' },
    })
  })

  it('says what is meant by a name that is none', async () => {
    const { code, err } = await here.run('trigger', 'merge_request.opened')
    expect([code, err]).toEqual([2, expect.stringContaining('did you mean merge_request.open?')])
  })
})

describe('a project in groups', () => {
  const REPO = 'group/sub/demo'

  it('is found by its whole path, wherever deliveries are filtered', async () => {
    const inspector = await openInspector(here, await here.serve())
    for (const repo of [REPO, 'sub/demo'])
      await here.run('trigger', 'push', '--set', `project.path_with_namespace=${repo}`)
    expect(objects(await here.run('log', '--repo', REPO, '--json')).map(({ n }) => n)).toEqual([1])
    expect(
      await here.run('wait', 'push', '--repo', REPO.toUpperCase(), '--since', '1h', '--json'),
    ).toMatchObject({
      code: 0,
      out: expect.stringContaining('"n":1,'),
    })
    expect(await here.run('replay', '--repo', REPO)).toMatchObject({ code: 0 })
    const listed: unknown = await inspector.json(`deliveries?repo=${encodeURIComponent(REPO)}`)
    expect(Object(listed).deliveries).toMatchObject([{ n: 1, repo: REPO }])
  })

  it('is found among those of the source that its listings name, without a warning', async () => {
    await here.serve()
    await here.run('trigger', 'push')
    const { code, out, err } = await here.run('log', '--source', 'gitlab-host')
    expect([code, out, err]).toEqual([0, expect.stringContaining('push'), ''])
  })

  it.each(['demo', '/demo', 'group/', 'group//demo', 'group/sub demo'])('is not %s', async (repo) => {
    const { code, err } = await here.run('log', '--repo', repo)
    expect([code, err]).toEqual([2, 'error: --repo: must be owner/name\n'])
  })
})

describe('the testing kit', () => {
  it.each(EVENTS)('signs %s as GitLab does, by a package that is not ours', async (name) => {
    const request = signedRequest(fixtureOf(name, { provider: 'gitlab' }), { secret: SIGNING })
    const body = await request.text()
    const headers = Object.fromEntries(request.headers)
    expect(new Webhook(SIGNING).verify(body, headers)).toEqual(JSON.parse(body))
    expect(headers['webhook-id']).toBe(headers['idempotency-key'])
  })

  it('gives a secret token as GitLab does', () => {
    const request = signedRequest(fixtureOf('push', { provider: 'gitlab' }), { secret: 'plain' })
    expect(request.headers.get('x-gitlab-token')).toBe('plain')
    expect(request.headers.get('webhook-signature')).toBeNull()
  })
})
