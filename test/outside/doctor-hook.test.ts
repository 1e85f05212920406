import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { repository, type Repository } from '../kit/code-host.js'
import { type Place, place, type Serving } from '../kit/place.js'
import { closedPort } from '../kit/ports.js'
import { checkOf } from './example.js'

const ADD = 'relay hook add octo/demo'
/** Only another delivery shows whether that was enough. */
const ADD_AND_TEST = `${ADD}, then relay hook test octo/demo`

let here: Place
let demo: Repository
let serving: Serving
let url: string
const start = async (...flags: string[]): Promise<void> => {
  serving = await here.serve('--port', String(await closedPort()), ...flags)
  url = `${serving.address}/webhook`
}

beforeEach(async () => {
  here = await place({ signedIn: true })
  demo = await repository(here.sandbox)
  await start()
})
afterEach(() => here[Symbol.asyncDispose]())

/** What `relay doctor` finds about hooks. */
const check = (...flags: string[]) => checkOf(here, 'hook', {}, ...flags)

const ok = (text: string) => ({ check: 'hook', state: 'ok', text })
const skip = (text: string) => ({ check: 'hook', state: 'skip', text })
const fail = (text: string, fix: string) => ({ check: 'hook', state: 'fail', text, fix })

async function receiveOne(): Promise<void> {
  const body = JSON.stringify({ ref: 'refs/heads/main', repository: { full_name: 'octo/demo' } })
  expect((await serving.deliver({ body })).status).toBe(200)
}

async function addHook(config: object, more: object = {}): Promise<void> {
  const body = { config: { url, content_type: 'json', ...config }, active: true, events: ['push'], ...more }
  const { status } = await fetch(`${here.sandbox.url}/api/v3/repos/octo/demo/hooks`, {
    method: 'POST',
    headers: { authorization: `Bearer ${await here.sandbox.token('repo')}` },
    body: JSON.stringify(body),
  })
  expect(status).toBe(201)
  await here.sandbox.idle()
}

describe('the check of the hooks of repositories in the journal', () => {
  it('needs a sign-in, and a delivery of a repository', async () => {
    expect(await check('--user', 'grace')).toEqual(skip('asking about them needs a sign-in'))
    expect(await check()).toEqual(skip('none was made, and the journal has no delivery of a repository'))
    await receiveOne()
    expect(await check()).toEqual(skip(`none of octo/demo sends to ${url}`))
  })

  it.each([
    [{ secret: 's' }, { active: false }, 'is inactive', ADD],
    [
      { secret: 's' },
      {},
      'signs with another secret than this profile: its last delivery was answered 401',
      ADD_AND_TEST,
    ],
  ])('finds what is wrong with %j %j', async (config, more, why, fix) => {
    await receiveOne()
    await addHook(config, more)
    expect(await check()).toEqual(fail(`that of octo/demo ${why}`, fix))
  })

  it('says that one has no secret only where the code host shows those of others', async () => {
    await receiveOne()
    await addHook({})
    const unsigned =
      'that of octo/demo does not sign with the secret of this profile: its last delivery was answered 401'
    expect(await check()).toEqual(fail(unsigned, ADD_AND_TEST))
    await addHook({ url: 'http://127.0.0.1:9/elsewhere', secret: 's' })
    expect(await check()).toEqual(
      fail('that of octo/demo has no secret, so that relay refuses its deliveries', ADD),
    )
  })
})

describe('the check of the hooks that this profile made, or has in --hook', () => {
  it('finds them without a delivery in the journal, and what changed since', async () => {
    await here.run('hook', 'add', 'octo/demo')
    await here.sandbox.idle()
    const fine = ok('that of octo/demo fits, and its last delivery was answered')
    expect(await check()).toEqual(fine)
    const [hook] = await demo.hooks()
    const id = hook?.id ?? 0
    await demo.changeHook(id, { url, secret: 'other', events: ['push', 'issues'] })
    expect(await check()).toEqual(
      fail('that of octo/demo sends push, issues alone, and not every event', ADD),
    )
    await here.run('hook', 'add', 'octo/demo')
    await here.run('hook', 'test', 'octo/demo')
    expect(await check()).toEqual(fine)
    await demo.removeHook(id)
    expect(await check()).toEqual(fail(`none of octo/demo sends to ${url}`, ADD))
  })

  it('finds one that leads to an address of before', async () => {
    await here.run('hook', 'add', 'octo/demo')
    const before = url
    await serving.stop()
    await start()
    expect(await check()).toEqual(
      fail(`that of octo/demo sends to ${before}, which is not the address of the running relay`, ADD),
    )
  })

  it('finds a repository of --hook where none could be made', async () => {
    await serving.stop()
    await start('--hook', 'octo/nowhere')
    await serving.object({ type: 'hook', state: 'failed' })
    expect(await check()).toEqual(
      fail(
        'those of octo/nowhere cannot be seen (The sandbox refused: Not Found (no such repository or number, or no access to it))',
        'relay hook add octo/nowhere, which says what is missing',
      ),
    )
  })
})
