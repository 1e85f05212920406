import { describe, expect, it } from 'vitest'
import { gitlabEvent, gitlabPush } from '../kit/gitlab-hooks.js'
import { post } from '../kit/delivery.js'
import { contentsOf } from '../kit/folder.js'
import { type Place, place, type PlaceOptions } from '../kit/place.js'
import { receiver } from '../kit/receiver.js'
import { fails, prints } from '../kit/run.js'
import { events, fixtureOf, signedRequest } from 'webhook-relay/testing'
import { smee } from '../kit/smee.js'
import { checkOf, objects } from './example.js'
import { fresh, json } from './fixture.js'

const SIGNING = `whsec_${Buffer.alloc(32, 7).toString('base64')}`
const REPO = 'group/sub/demo'

function atGitLab(options: PlaceOptions = {}): Promise<Place> {
  const env = { RELAY_WEBHOOK_SECRET: SIGNING, ...options.env }
  return place({ host: 'gitlab', signedIn: true, ...options, env })
}

const here = fresh(() => atGitLab())
const hooks = () => here.gitlab.state.hooks
const hook = (...argv: string[]) => here.run('hook', ...argv)
const send = (trigger: string, data: object) => gitlabEvent(hooks(), trigger, data)

const project = { path_with_namespace: REPO }
const mergeRequest = (action: string) => ({
  object_kind: 'merge_request',
  event_type: 'merge_request',
  project,
  object_attributes: { iid: 2, action, url: `http://x/${REPO}/-/merge_requests/2` },
})

describe('relay hook at a GitLab', () => {
  it('adds one with a signing token and every event, tests, lists and removes it', async () => {
    const { address } = await here.serve()
    const url = `${address}/webhook`
    const added = await json(hook('add', REPO, '--json'))
    expect(added).toMatchObject({ id: 1, url, created: true, hasSecret: true, active: true, repaired: [] })
    expect(added.events).toContain('merge_request')
    const { switches, all } = hooks()
    expect(all.map((each) => each.events)).toEqual([Object.fromEntries(switches.map((name) => [name, true]))])
    expect(added.events).toHaveLength(switches.length)
    expect(hooks().all).toMatchObject([{ url, signingToken: SIGNING, token: '' }])
    expect(await hook('test', REPO)).toEqual(prints(`push of ${REPO} arrived: #1\n`))
    const [listed] = objects(await hook('list', REPO, '--json'))
    expect(listed).toMatchObject({ id: 1, url, ours: true, hasSecret: true })
    expect(await hook('remove', REPO)).toEqual(prints(`hook of ${REPO} removed: ${url}\n`))
    expect(hooks().all).toEqual([])
  })

  it('leaves one alone that has every event that an older GitLab has', async () => {
    await using old = await atGitLab({
      gitlab: { version: '17.4.0' },
      env: { RELAY_WEBHOOK_SECRET: 'a-plain-secret' },
    })
    const { address } = await old.serve()
    const added = await json(old.run('hook', 'add', REPO, '--json'))
    expect(added.events).toHaveLength(old.gitlab.state.hooks.switches.length)
    expect(added.events).not.toContain('resource_deploy_token')
    const ready = prints(`hook of ${REPO} is ready: ${address}/webhook\n`)
    expect(await old.run('hook', 'add', REPO)).toEqual(ready)
    expect(await checkOf(old, 'hook')).toMatchObject({ state: 'ok' })
  })

  it('changes it in place, and leaves its custom headers alone', async () => {
    const { address } = await here.serve()
    await hook('add', REPO, '--events', 'push,note')
    const [own] = hooks().all
    Object.assign(own ?? {}, { customHeaders: { 'X-Mine': '1' } })
    const { out } = await hook('add', REPO)
    expect(out).toBe(`hook of ${REPO} repaired (it had other events): ${address}/webhook\n`)
    expect(hooks().all).toMatchObject([{ id: 1, signingToken: SIGNING, customHeaders: { 'X-Mine': '1' } }])
  })

  it('says what GitLab forgets where the address changes', async () => {
    const first = await here.serve()
    await hook('add', REPO)
    for (const each of hooks().all) each.customHeaders = { 'X-Mine': '1' }
    await first.stop()
    const { address } = await here.serve()
    const lost = 'its custom headers X-Mine have to be entered again there'
    const { out } = await hook('add', REPO)
    expect(out).toBe(
      `hook of ${REPO} repaired (it led to ${first.address}/webhook, ${lost}): ${address}/webhook\n`,
    )
    expect(hooks().all).toMatchObject([{ id: 1, signingToken: SIGNING, customHeaders: {} }])
  })

  it('is refused to who is no maintainer, and for names that are no repository', async () => {
    await here.serve()
    hooks().notMaintainers.add('mona')
    const needs = 'Managing hooks needs the role Maintainer in the project, and a token with the scope api'
    expect(await hook('add', REPO)).toEqual(fails(8, `GitLab refused: 403 Forbidden. ${needs}`))
    const { code, err } = await hook('add', 'group//demo')
    expect([code, err]).toEqual([2, expect.stringContaining('"group//demo" is not a repository')])
  })

  it('says that a repository without a commit cannot be tested', async () => {
    await here.serve()
    await hook('add', REPO)
    hooks().hasCommit = false
    const { code, err } = await hook('test', REPO)
    expect([code, err]).toEqual([8, expect.stringContaining('Ensure the project has at least one commit')])
  })

  it.each([
    ['before 19.0', '17.4.0', true],
    ['of 19.0 where they are off', '19.0.2', false],
  ])(
    'makes no hook without a proof at a GitLab %s, and names what works there',
    async (_, version, signs) => {
      await using old = await atGitLab({ gitlab: { version } })
      old.gitlab.state.hooks.signs = signs
      await old.serve()
      const why =
        'This GitLab takes no signing token: they need version 19.0, where an administrator can have them off, or later. Set RELAY_WEBHOOK_SECRET to a text that does not begin with whsec_'
      const { code, err } = await old.run('hook', 'add', REPO)
      expect([code, err]).toEqual([8, expect.stringContaining(why)])
      expect(old.gitlab.state.hooks.all).toEqual([])
    },
  )

  it('tests one that gets other events than the test sends', async () => {
    await here.serve()
    await hook('add', REPO, '--events', 'note')
    expect(await hook('test', REPO)).toEqual(prints(`push of ${REPO} arrived: #1\n`))
  })

  it.each([
    ['removes', false, '', ''],
    ['names, where GitLab keeps it,', true, SIGNING, ' repaired (its signing token has to be removed there)'],
  ])('%s a signing token that a secret token replaces', async (_, keepsSigning, signingToken, said) => {
    const first = await here.serve()
    await hook('add', REPO)
    await first.stop()
    Object.assign(hooks(), { keepsSigning })
    const env = { RELAY_WEBHOOK_SECRET: 'a-plain-secret' }
    await here.serveWith({ env }, '--port', String(first.port))
    const { code, out } = await here.runWith({ env }, 'hook', 'add', REPO)
    expect([code, out]).toEqual([0, expect.stringContaining(`hook of ${REPO}${said}`)])
    expect(hooks().all).toMatchObject([{ id: 1, signingToken, token: 'a-plain-secret' }])
    expect(await send('push_hooks', gitlabPush())).toEqual(['200'])
  })
})

/** What GitLab does with a hook after failures, and how it says so. */
const PAUSES = [
  ['paused', () => ({ recentFailures: 4, disabledUntil: Date.now() + 3_600_000 })],
  ['disabled', () => ({ recentFailures: 40, disabledUntil: Date.now() })],
] as const

const ENDS = { paused: expect.stringMatching(/^[-\d]{10}T[:\d.]{12}Z$/), disabled: null }

describe.each(PAUSES)('a hook that GitLab has %s', (how, failing) => {
  const LOST = 'since deliveries to it failed, and what happens meanwhile is never sent'
  const AGAIN = `A successful test makes it send again at once: relay hook test ${REPO}`
  const WOKEN = 'GitLab had paused it, and sends again after a test, a push of the last commits'
  const says = new RegExp(
    `is ${how} by the code host${how === 'paused' ? ' until [-\\d]{10} [:\\d]{8}' : ''}, ${LOST}`,
  )

  /** A relay with a hook, which has custom headers, and has failed. */
  async function withHook() {
    const serving = await here.serve()
    await hook('add', REPO)
    for (const each of hooks().all) Object.assign(each, failing(), { customHeaders: { 'X-Mine': '1' } })
    return serving
  }
  const mine = () =>
    hooks().all.map(({ id, customHeaders, recentFailures }) => [id, customHeaders, recentFailures])
  const woken = [[1, { 'X-Mine': '1' }, 0]]

  it('is so in relay hook list, with what to do', async () => {
    await withHook()
    const { code, out, err } = await hook('list', REPO)
    expect(code).toBe(0)
    expect(out).toMatch(how === 'paused' ? /paused until [-\d]{10} [:\d]{8}, json/ : /disabled, json/)
    expect(err).toMatch(says)
    expect(err).toContain(AGAIN)
    const [listed] = objects(await hook('list', REPO, '--json'))
    expect(listed).toMatchObject({ active: false, paused: { until: ENDS[how] } })
  })

  it('is so in relay doctor, whose advice helps', async () => {
    await withHook()
    const found = await checkOf(here, 'hook')
    expect(found).toMatchObject({ state: 'fail', text: expect.stringMatching(says) })
    expect(found).toMatchObject({ fix: `relay hook test ${REPO}` })
    expect(await hook('test', REPO)).toEqual(prints(`push of ${REPO} arrived: #1\n`))
    expect(mine()).toEqual(woken)
    expect(await checkOf(here, 'hook')).toMatchObject({ state: 'ok' })
  })

  it('sends again after relay hook add, with its custom headers', async () => {
    const { address } = await withHook()
    const { out } = await hook('add', REPO)
    expect(out).toBe(`hook of ${REPO} repaired (${WOKEN}): ${address}/webhook\n`)
    expect(mine()).toEqual(woken)
  })

  it('is left and named where no relay answers the test', async () => {
    const first = await withHook()
    await first.stop()
    const { code, out, err } = await here.runWith(
      { env: { RELAY_PUBLIC_URL: first.address } },
      'hook',
      'add',
      REPO,
    )
    expect([code, out]).toEqual([0, expect.not.stringContaining('sends again')])
    expect(err).toMatch(says)
    expect(err).toContain(`at once: start relay serve, then relay hook test ${REPO}`)
    expect(mine()).toEqual([[1, { 'X-Mine': '1' }, failing().recentFailures]])
  })

  it('sends again once relay serve has it', async () => {
    const first = await withHook()
    await first.stop()
    const again = await here.serve('--port', String(first.port), '--hook', REPO)
    const ready = await again.object({ type: 'hook', state: 'ready' })
    expect(ready).toMatchObject({ id: 1, repaired: [WOKEN] })
    expect(ready).not.toHaveProperty('paused')
    expect(mine()).toEqual(woken)
  })

  it('is named by relay serve where the test fails', async () => {
    const first = await withHook()
    await first.stop()
    hooks().hasCommit = false
    const again = here.start('serve', '--port', String(first.port), '--hook', REPO)
    await again.says(AGAIN)
    const { err } = await again.stop()
    expect(err.replaceAll(/\s+/g, ' ')).toMatch(says)
  })

  it('is tested before relay catches up, which says so', async () => {
    const first = await here.serve()
    await hook('add', REPO)
    await first.stop()
    await send('push_hooks', gitlabPush('missed\n'))
    for (const each of hooks().all) Object.assign(each, failing(), { customHeaders: { 'X-Mine': '1' } })
    await here.serve('--port', String(first.port))
    const { code, out, err } = await here.run('catch-up', REPO)
    expect([code, out]).toEqual([0, `caught up with ${REPO}: 1 missing, 1 arrived\n`])
    expect(err).toContain(`hook of ${REPO}: ${WOKEN}\n`)
    expect(objects(await here.run('log', '--json'))).toHaveLength(2)
    expect(mine()).toEqual(woken)
  })

  it('cannot be caught up with where its test fails, which is said', async () => {
    const first = await here.serve()
    await hook('add', REPO)
    await first.stop()
    await send('push_hooks', gitlabPush('missed\n'))
    for (const each of hooks().all) Object.assign(each, failing())
    hooks().hasCommit = false
    await here.serve('--port', String(first.port))
    const { code, err } = await here.run('catch-up', REPO)
    expect([code, err]).toEqual([
      8,
      expect.stringMatching(
        /^error: GitLab has paused the hook.* Ensure the project has at least one commit/m,
      ),
    ])
  })
})

describe('the events of a hook of GitLab', () => {
  const names = (provider: 'github' | 'gitea') => [
    ...new Set(events({ provider }).map((name) => name.split('.')[0] ?? '')),
  ]
  const own = 'push note job pipeline milestone release deployment'.split(' ')
  const others = [...new Set([...names('github'), ...names('gitea'), 'member', 'subgroup', 'puhs'])]

  it('are its own: those of other hosts are refused, with all that there are', async () => {
    await here.serve()
    for (const name of others.filter((each) => !own.includes(each))) {
      const { code, err } = await hook('add', REPO, '--events', `push,${name}`)
      expect([name, code, err]).toEqual([
        name,
        2,
        expect.stringMatching(
          /^error: Hooks of GitLab have no event \w+\.( Did you mean [\w.]+\?)? They have .*merge_request/,
        ),
      ])
    }
    expect(hooks().all).toEqual([])
    expect(await here.run('hook', 'list')).toMatchObject({ out: '' })
  })

  it.each([
    ['pull_request', 'merge_request'],
    ['issues', 'issue'],
    ['issue_comment', 'note'],
    ['workflow_run', 'pipeline'],
    ['wiki', 'wiki_page'],
  ])('for %s, %s is meant', async (name, meant) => {
    await here.serve()
    expect((await hook('add', REPO, '--events', name)).err).toContain(`Did you mean ${meant}?`)
  })
})

describe('deliveries of a GitLab', () => {
  it('are entries by the names of their triggers, each with its action, project and number', async () => {
    await here.serve()
    await hook('add', REPO)
    await send('push_hooks', gitlabPush())
    await send('merge_request_hooks', mergeRequest('open'))
    const note = { iid: 5 }
    const confidential = { object_kind: 'note', event_type: 'confidential_note', project, issue: note }
    await send('confidential_note_hooks', { ...confidential, object_attributes: { action: 'create' } })
    const entries = objects(await here.run('log', '--json'))
    expect(entries.map(({ event, action, repo, number, ref }) => [event, action, repo, number, ref])).toEqual(
      [
        ['push', null, REPO, null, 'refs/heads/main'],
        ['merge_request', 'open', REPO, 2, null],
        ['confidential_note', 'create', REPO, 5, null],
      ],
    )
  })

  it('reach routes and filters by these names, and actions their merge request', async () => {
    const serving = await here.serve('--exec', 'merge_request.open=cat > /dev/null')
    await hook('add', REPO)
    await send('merge_request_hooks', mergeRequest('update'))
    await send('merge_request_hooks', mergeRequest('open'))
    const entry = await json(
      here.run('wait', 'merge_request.open', '--json', '--since', '1m', '--timeout', '10s'),
    )
    expect(entry).toMatchObject({ n: 2, event: 'merge_request', action: 'open' })
    const elsewhere = await here.run('comment', '--from', 'last', 'hello')
    expect(elsewhere.err).toContain(`The address is on http://x, but this profile uses ${here.gitlab.url}`)
    const page = `${here.gitlab.url}/${REPO}/-/merge_requests/2`
    const { object_attributes: about, ...others } = mergeRequest('update')
    await send('merge_request_hooks', { ...others, object_attributes: { ...about, url: page } })
    expect(await here.run('comment', '--from', 'last', 'hello')).toEqual(prints(`${page}#note_1\n`))
    const pipeline = {
      object_kind: 'pipeline',
      project,
      object_attributes: { iid: 9, status: 'success', url: `${page}/x` },
    }
    await send('pipeline_hooks', { ...pipeline, merge_request: { iid: 2, url: page } })
    expect(await here.run('react', '--from', 'last', 'rocket')).toEqual(prints('rocket\n'))
    await serving.stop()
  })

  it('are one under one id, and refused with another signature', async () => {
    const { address } = await here.serve()
    await hook('add', REPO)
    await send('push_hooks', gitlabPush())
    const [first] = hooks().log
    const body = Buffer.from('{}')
    const forged = [
      ['Content-Type', 'application/json'],
      ['X-Gitlab-Event', 'Push Hook'],
      ['Idempotency-Key', 'x'],
      ['X-Gitlab-Token', SIGNING],
    ] as const
    expect(await post(`${address}/webhook`, { headers: forged, body })).toMatchObject({ status: 401 })
    const own = hooks().all[0]
    const again = `${here.gitlab.url}/api/v4/projects/7/hooks/${own?.id}/events/${first?.id}/resend`
    const [token] = [...here.gitlab.state.oauth.tokens.keys()]
    const answer = await fetch(again, { method: 'POST', headers: { 'private-token': token ?? '' } })
    expect(await answer.json()).toEqual({ response_status: 200 })
    expect(objects(await here.run('log', '--json'))).toHaveLength(1)
  })

  it('prove themselves by a secret token where there is no signing token, but not through a public channel', async () => {
    await using old = await atGitLab({
      gitlab: { version: '17.4.0' },
      env: { RELAY_WEBHOOK_SECRET: 'a-plain-secret' },
    })
    const serving = await old.serve()
    expect((await old.run('hook', 'add', REPO)).code).toBe(0)
    expect(await gitlabEvent(old.gitlab.state.hooks, 'push_hooks', gitlabPush())).toEqual(['200'])
    const headers = [
      ['Content-Type', 'application/json'],
      ['X-Gitlab-Event', 'Push Hook'],
      ['Idempotency-Key', 'x'],
    ] as const
    const body = Buffer.from(JSON.stringify(gitlabPush()))
    const with_ = (token: string) => [...headers, ['X-Gitlab-Token', token] as const]
    expect(await post(`${serving.address}/webhook`, { headers: with_('wrong'), body })).toMatchObject({
      status: 401,
    })
    expect(
      await post(`${serving.address}/webhook`, { headers: with_('a-plain-secret'), body }),
    ).toMatchObject({ status: 200 })
    await serving.stop()
    expect(contentsOf(old.home)).not.toContain('a-plain-secret')
    const { code, err } = await old.run('serve', '--port', '0', '--tunnel', 'http://127.0.0.1:9/channel')
    expect([code, err]).toEqual([
      2,
      expect.stringContaining('--tunnel cannot be used with a secret token of the code host'),
    ])
  })

  it('are restored byte for byte behind a server that writes their JSON anew', async () => {
    await using server = await smee()
    await using target = await receiver()
    const relay = await here.serve('--tunnel', server.channel, '--forward', target.url)
    await relay.object({ type: 'tunnel', state: 'connected', roundTrip: 'ok' })
    expect((await hook('add', REPO)).out).toContain(server.channel)
    await send('push_hooks', gitlabPush('\u001b[31m é 😀 <b>\n'))
    await target.has(1)
    expect(target.received[0]?.body.toString()).toContain(String.raw`"message":"\u001B[31m é 😀 <b>\n"`)
    expect(await relay.object({ type: 'delivery' })).toMatchObject({
      event: 'push',
      restored: 'compact-upper',
    })
  })

  it('are restored and prove their events, whichever they are', async () => {
    const names = events({ provider: 'gitlab' })
    await using server = await smee()
    await using target = await receiver()
    const relay = await here.serve('--tunnel', server.channel, '--forward', target.url)
    await relay.object({ type: 'tunnel', state: 'connected', roundTrip: 'ok' })
    await hook('add', REPO)
    for (const name of names) {
      const request = signedRequest(fixtureOf(name, { provider: 'gitlab' }), { secret: SIGNING })
      await send(`${name.split('.')[0]}_hooks`, {
        ...JSON.parse(await request.text()),
        odd: '<é>\u2028 & 1/2',
        f: 0.5,
      })
    }
    await target.has(names.length)
    const entries = objects(await here.run('log', '--json', '-n', '100'))
    const found = entries.map(({ event, action, unproved }) => [
      [event, ...(action === null ? [] : [action])].join('.'),
      unproved,
    ])
    expect(found).toEqual(names.map((name) => [name, false]))
  })

  it('are signed with a secret of the right form where relay makes it', async () => {
    await using fresh = await atGitLab({ env: { RELAY_WEBHOOK_SECRET: undefined } })
    await using _ = await fresh.serve()
    expect((await fresh.run('config', '--reveal', 'webhookSecret')).out).toMatch(
      /^whsec_[A-Za-z0-9+/]{43}=\n$/,
    )
    expect((await fresh.run('hook', 'add', REPO)).code).toBe(0)
    expect(await gitlabEvent(fresh.gitlab.state.hooks, 'push_hooks', gitlabPush())).toEqual(['200'])
  })
})

describe('a delivery of another code host', () => {
  it.each([
    [
      'gitlab',
      'X-GitHub-Event',
      'those of GitHub, but this relay receives from gitlab: set RELAY_PROVIDER=github',
    ],
    [
      'github',
      'X-Gitlab-Event',
      'those of GitLab, but this relay receives from github: set RELAY_PROVIDER=gitlab',
    ],
  ])('is explained at a relay for %s', async (provider, header, why) => {
    const env = {
      RELAY_PROVIDER: provider,
      RELAY_PROVIDER_URL: 'https://git.example.org',
      RELAY_WEBHOOK_SECRET: SIGNING,
    }
    await using other = await place({ host: 'none', env })
    const serving = await other.serve()
    const headers = [
      ['Content-Type', 'application/json'],
      [header, 'push'] as const,
      ['X-Hub-Signature-256', `sha256=${'0'.repeat(64)}`],
    ] as const
    expect(await post(`${serving.address}/webhook`, { headers, body: Buffer.from('{}') })).toMatchObject({
      status: 401,
    })
    const { err } = await serving.stop()
    expect(err.replaceAll(/\s+/g, ' ')).toContain(why)
  })
})

describe('relay serve --hook at a GitLab', () => {
  it('has a hook while it runs', async () => {
    const serving = await here.serve('--hook', REPO)
    await serving.says(`hook of ${REPO} created`)
    expect(hooks().all).toHaveLength(1)
    await serving.stop()
    expect(hooks().all).toEqual([])
  })
})

describe('relay catch-up at a GitLab', () => {
  it('has what was missed sent again, oldest first, and waits where GitLab limits that', async () => {
    const first = await here.serve()
    await hook('add', REPO)
    const port = String(first.port)
    await first.stop()
    for (const n of [1, 2, 3]) await send('push_hooks', gitlabPush(`missed ${n}\n`))
    expect(hooks().log.map(({ status }) => status)).toEqual([
      'internal error',
      'internal error',
      'internal error',
    ])
    await here.serve('--port', port)
    const ran = await here.run('catch-up', REPO)
    expect(ran.code).toBe(0)
    const entries = objects(await here.run('log', '--json'))
    expect(entries).toHaveLength(3)
    expect(hooks().log).toHaveLength(6)
    expect(
      hooks()
        .log.slice(3)
        .map(({ key }) => key),
    ).toEqual(
      hooks()
        .log.slice(0, 3)
        .map(({ key }) => key),
    )
    expect((await here.run('catch-up', REPO)).out).toContain('nothing')
  })

  it('says how many GitLab sends in a minute, and waits for the next', async () => {
    const first = await here.serve()
    await hook('add', REPO)
    await first.stop()
    for (const n of [1, 2, 3, 4, 5, 6]) {
      await send('push_hooks', gitlabPush(`missed ${n}\n`))
      // So far apart that the pause has ended.
      for (const each of hooks().all) each.disabledUntil = null
    }
    await here.serve('--port', String(first.port))
    const running = here.start('catch-up', REPO)
    await running.says('Continues in 60 s: GitLab refused: This endpoint has been requested too many times')
    const { err } = await running.stop('SIGINT')
    const pace =
      'GitLab sends at most 5 a minute again for a repository and user, so this takes about 2 minutes'
    expect(err).toContain(`${REPO}: 6 missing. ${pace}\n`)
    expect(hooks().log).toHaveLength(11)
  })

  it('does not ask for what went to another address', async () => {
    await here.serve()
    await hook('add', REPO)
    const [own] = hooks().all
    const url = own?.url ?? ''
    if (own) own.url = 'http://127.0.0.1:9/'
    await send('push_hooks', gitlabPush())
    if (own) own.url = url
    const { code, err } = await here.run('catch-up', REPO)
    expect([code, err]).toEqual([8, expect.stringContaining('The hook URL has changed')])
  })
})
