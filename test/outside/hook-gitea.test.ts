import { beforeEach, describe, expect, it, vi } from 'vitest'
import { push, sendQueued } from '../kit/gitea-hooks.js'
import { place, type Serving } from '../kit/place.js'
import { closedPort } from '../kit/ports.js'
import { prints, type Ran } from '../kit/run.js'
import { checkOf, objects } from './example.js'
import { fresh, json } from './fixture.js'

const EVERY_EVENT = (
  'create delete fork issue_assign issue_comment issue_label issue_milestone issues package pull_request ' +
  'pull_request_assign pull_request_comment pull_request_label pull_request_milestone pull_request_review ' +
  'pull_request_review_request pull_request_sync push release repository status wiki workflow_job'
).split(' ')

const here = fresh(() => place({ host: 'gitea', signedIn: true }))
let serving: Serving
let url: string
const hooks = () => here.gitea.state.hooks
const hook = (...argv: string[]) => here.run('hook', ...argv)
/** A hook that is replaced is removed soon. */
const seams = { limits: { hookLeaves: 300 } }
const again = (...argv: string[]) => here.runWith({ seams }, 'hook', ...argv)
const REPLACED =
  /^hooks? [\d and]+ of octo\/demo (?:was|were) replaced, since Gitea cannot change a secret\. /
const unwrapped = ({ code, out, err }: Ran) => ({ code, out, err: err.replaceAll(/\s+/g, ' ').trim() })

beforeEach(async () => {
  serving = await here.serve()
  url = `${serving.address}/webhook`
})

describe('relay hook add on Gitea', () => {
  it('creates a hook with every event, and the same again with the secret of the profile', async () => {
    const { events, ...added } = await json(hook('add', 'octo/demo', '--json'))
    const unknown = { hasSecret: null, lastResponse: null }
    const object = { v: 1, type: 'hook', id: 1, url, ours: true, active: true, contentType: 'json' }
    expect(added).toEqual({ ...object, ...unknown, created: true, repaired: [], found: false })
    expect(events.toSorted()).toEqual(EVERY_EVENT)
    hooks().all.splice(0, 1, ...hooks().all.map((hook) => ({ ...hook, secret: 'other', active: false })))
    const repaired = `hook of octo/demo repaired (it was inactive): ${url}\n`
    const err = expect.stringMatching(REPLACED)
    expect(await again('add', 'octo/demo')).toEqual({ ...prints(repaired), err })
    expect(hooks().all.map(({ id, active }) => [id, active])).toEqual([[2, true]])
    expect(await hook('test', 'octo/demo')).toEqual(prints('push of octo/demo arrived: #1\n'))
    expect(await Promise.all(hooks().sent)).toEqual([200])
  })

  it('finds its own among more than a page, at the new address of the relay', async () => {
    await hook('add', 'octo/demo', '--events', 'push')
    const [own] = hooks().all
    const others = Array.from({ length: 60 }, (_, i) => ({ id: 100 + i, url: `http://127.0.0.1:9/${i}` }))
    if (own) hooks().all.unshift(...others.map((other) => ({ ...own, ...other })))
    await serving.stop()
    serving = await here.serve()
    const moved = `${serving.address}/webhook`
    const moving = await again('add', 'octo/demo', '--events', 'push')
    expect(moving.out).toBe(`hook of octo/demo repaired (it led to ${url}): ${moved}\n`)
    expect(hooks().all.filter((hook) => hook.url === moved || hook.url === url)).toHaveLength(1)
    const listed = objects(await hook('list', 'octo/demo', '--json'))
    expect(listed).toHaveLength(61)
    expect(listed.filter(({ ours }) => ours)).toMatchObject([{ url: moved, events: ['push'] }])
  })

  it('finds a repository under its former name', async () => {
    expect((await hook('list', 'octo/old')).code).toBe(0)
    expect(await hook('add', 'octo/old')).toMatchObject({ code: 0 })
    expect(hooks().all).toHaveLength(1)
  })

  const NEEDS =
    'Managing hooks needs admin rights on the repository, and a token with the scope write:repository'
  const fails = (status: number, body: string | object) => () => void hooks().faults.push({ status, body })

  it.each<[string, () => void, string]>([
    [
      'a user without admin rights',
      () => void (hooks().role = 'reader'),
      `refused: user should be an owner or a collaborator with admin write of a repository. ${NEEDS}`,
    ],
    [
      'a repository that the user may not see',
      () => void (hooks().role = 'stranger'),
      `refused: The target couldn't be found. (no such repository or number, or no access to it). ${NEEDS}. Check the name, or sign in as another user`,
    ],
    [
      'a token without the scope',
      () => void (hooks().scoped = false),
      `refused: token does not have at least one of required scope(s): [write:repository]. ${NEEDS}`,
    ],
    [
      'a server without webhooks',
      fails(403, { message: 'webhooks disabled by administrator' }),
      'refused: webhooks disabled by administrator. Ask the administrator of the code host for webhooks',
    ],
    ['a failure', fails(502, 'Bad Gateway'), 'failed (502). Try again later'],
  ])('is refused to %s', async (_, spoil, text) => {
    spoil()
    const ran = unwrapped(await hook('add', 'octo/demo'))
    expect(ran).toEqual({ code: 8, out: '', err: `error: Gitea ${text}` })
    expect([hooks().all, (await hook('list')).out]).toEqual([[], ''])
  })

  it('still knows what it made when Gitea then refuses a call: looking for another, removing the one before', async () => {
    await serving.stop()
    const refused = { status: 403, body: { message: 'no more' } }
    const add = (to: string, secret: string) =>
      here.runWith({ seams, env: { RELAY_WEBHOOK_SECRET: secret } }, 'hook', 'add', 'octo/demo', '--url', to)
    const addresses = () => hooks().all.map((hook) => hook.url)
    const failed = { code: 8, err: expect.stringContaining('Gitea refused: no more') }
    hooks().faults.push(undefined, undefined, refused)
    expect(await add('http://127.0.0.1:9/one', 'the first secret')).toMatchObject(failed)
    expect(await add('http://127.0.0.1:9/two', 'the second secret')).toMatchObject({ code: 0 })
    expect(addresses()).toEqual(['http://127.0.0.1:9/two'])
    // Two pages of the list, the hook's own settings and a new one, before the old one is removed.
    hooks().faults.push(undefined, undefined, undefined, undefined, refused)
    expect(await add('http://127.0.0.1:9/three', 'the third secret')).toMatchObject(failed)
    expect(addresses()).toEqual(['http://127.0.0.1:9/two', 'http://127.0.0.1:9/three'])
    expect(await add('http://127.0.0.1:9/four', 'the third secret')).toMatchObject({ code: 0 })
    expect(addresses()).toEqual(['http://127.0.0.1:9/four'])
  })
})

describe('relay hook test on Gitea', () => {
  it('needs a hook with a push', async () => {
    await hook('add', 'octo/demo', '--events', 'issues')
    const { code, err } = await hook('test', 'octo/demo')
    expect([code, err]).toEqual([8, expect.stringContaining('relay hook add octo/demo --events push,')])
  })

  it('says where to look when nothing comes, as for a repository without a commit', async () => {
    await hook('add', 'octo/demo')
    hooks().hasCommit = false
    const seams = { limits: { arrival: 500 } }
    const ran = await here.runWith({ seams }, 'hook', 'test', 'octo/demo')
    const hosts =
      'Gitea sends nothing to private addresses unless its setting webhook.ALLOWED_HOST_LIST has them, and no test of a repository without a commit or of a branch that the hook leaves out'
    const shows = `${here.gitea.url}/octo/demo/settings/hooks/1 shows what it sent. relay log --refused shows what was refused; relay hook add octo/demo repairs the hook; relay doctor checks the rest`
    const err = `error: The delivery did not arrive within 0.5 s. ${hosts}; ${shows}`
    expect(unwrapped(ran)).toEqual({ code: 7, out: '', err })
  })
})

describe('relay hook list and remove on Gitea', () => {
  it('list without the last answers, and remove what leads here', async () => {
    await hook('add', 'octo/demo', '--events', 'push')
    expect((await hook('list', 'octo/demo')).out).toMatch(
      /^leads {2}id {2}last answer {2}settings +address\nhere +1 +unknown +json, push +http:\S+\n$/,
    )
    const listed = { v: 1, type: 'hook', repo: 'octo/demo', id: 1, url, permanent: true }
    expect(objects(await hook('list', '--json'))).toEqual([listed])
    expect(await hook('remove', 'octo/demo')).toEqual(prints(`hook of octo/demo removed: ${url}\n`))
    expect(hooks().all).toEqual([])
    expect(await hook('remove', 'octo/demo')).toMatchObject({ code: 6 })
  })
})

describe('relay serve --hook on Gitea', () => {
  it('leaves it alone after a kill: what Gitea has queued for it still comes', async () => {
    await serving.stop()
    const port = String(await closedPort())
    const again = (): Promise<Serving> =>
      here.serveWith({ built: true }, '--hook', 'octo/demo', '--port', port)
    serving = await again()
    await serving.object({ type: 'hook', state: 'ready' })
    const before = [...hooks().all]
    await serving.stop('SIGKILL')
    const asked = here.gitea.received.length
    serving = await again()
    await serving.object({ type: 'hook', state: 'ready' })
    expect(hooks().all).toEqual(before)
    expect(new Set(here.gitea.received.slice(asked).map(({ method }) => method))).toEqual(new Set(['GET']))
    await serving.stop()
    expect(hooks().all).toEqual([])
  })

  it('moves it in place, with what a person has set, and replaces it for another secret, removing the old once', async () => {
    await hook('add', 'octo/demo', '--events', 'push')
    const own = { branchFilter: 'main', authorization: 'Bearer theirs' }
    hooks().all.splice(0, 1, ...hooks().all.map((hook) => ({ ...hook, ...own })))
    await serving.stop()
    serving = await here.serve('--hook', 'octo/demo')
    await serving.object({ type: 'hook', state: 'ready' })
    const moved = { id: 1, url: `${serving.address}/webhook`, events: ['push'], ...own }
    expect(hooks().all).toEqual([expect.objectContaining(moved)])
    await serving.stop()
    const asked = here.gitea.received.length
    const env = { RELAY_WEBHOOK_SECRET: 'another secret of the profile' }
    serving = await here.serveWith({ env, seams }, '--hook', 'octo/demo')
    await serving.object({ type: 'hook', state: 'ready' })
    const secret = env.RELAY_WEBHOOK_SECRET
    await vi.waitFor(() =>
      expect(hooks().all).toEqual([expect.objectContaining({ id: 2, events: ['push'], ...own, secret })]),
    )
    const removed = here.gitea.received.slice(asked).filter(({ method }) => method === 'DELETE')
    expect(removed).toHaveLength(1)
  })

  it('loses nothing of what Gitea has queued when the secret changes, and gets nothing twice', async () => {
    await hook('add', 'octo/demo', '--events', 'push')
    await serving.stop()
    for (let n = 0; n < 40; n++) push(hooks())
    const former = here.env['RELAY_WEBHOOK_SECRET']
    const env = { RELAY_WEBHOOK_SECRET: 'the next secret', RELAY_WEBHOOK_SECRET_PREVIOUS: former }
    const slow = { limits: { hookLeaves: 60_000 } }
    serving = await here.serveWith({ env, seams: slow }, '--hook', 'octo/demo')
    await serving.object({ type: 'hook', state: 'ready' })
    for (let n = 0; n < 20; n++) push(hooks())
    expect(await sendQueued(hooks())).toEqual(Array.from({ length: 60 }, () => 200))
    const entries = objects(await here.run('log', '--last', '100', '--json'))
    expect(entries).toHaveLength(60)
    // The end of relay does not wait for it.
    await serving.stop()
    expect(hooks().all).toEqual([expect.objectContaining({ id: 2, secret: 'the next secret' })])
    expect(serving.err).toMatch(/hook 1 of octo\/demo was replaced, since Gitea .* still comes for 60 s"?/)
    expect(serving.err).not.toContain('RELAY_WEBHOOK_SECRET_PREVIOUS')
  })

  it('says that what is queued is refused without the former secret', async () => {
    await hook('add', 'octo/demo')
    await serving.stop()
    serving = await here.serveWith({ env: { RELAY_WEBHOOK_SECRET: 'unlike' }, seams }, '--hook', 'octo/demo')
    await serving.object({ type: 'hook', state: 'ready' })
    await vi.waitFor(() =>
      expect(serving.err).toContain('refused unless RELAY_WEBHOOK_SECRET_PREVIOUS has the former secret'),
    )
  })

  it('cannot catch up, and says so at once', async () => {
    const asked = here.gitea.received.length
    const serve = await here.run('serve', '--hook', 'octo/demo', '--catch-up')
    expect(serve.err).toMatch(/^error: --catch-up cannot be used with gitea, which shows programs no log/)
    const catchUp = await here.run('catch-up', 'octo/demo')
    expect(catchUp.err).toContain('gitea shows programs no log of what it sent')
    expect(catchUp.err).toContain('From Gitea 1.17 on, and in Forgejo, each delivery can be sent again')
    expect([serve.code, catchUp.code]).toEqual([2, 8])
    expect(here.gitea.received).toHaveLength(asked)
  })
})

it('the check of hooks says nothing of a last answer or a secret, which Gitea does not show', async () => {
  await hook('add', 'octo/demo')
  const check = await checkOf(here, 'hook', { RELAY_PUBLIC_URL: serving.address })
  expect(check).toMatchObject({ state: 'ok', text: 'that of octo/demo fits' })
})
