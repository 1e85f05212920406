import { describe, expect, it } from 'vitest'
import { Secret } from '../../../src/base/secret.js'
import { createProvider } from '../../../src/providers/open.js'
import { fakeGitea } from '../../kit/gitea.js'
import { type Answer, type Received, scriptedServer } from '../../helpers/scripted-server.js'

const TOKEN = 'gitea_canary'
const REPO = { owner: 'octo', repo: 'demo' }
const SETTINGS = { url: 'http://127.0.0.1:8787/webhook', secret: new Secret('hush'), events: ['push'] }
const HOOKS = '/api/v1/repos/octo/demo/hooks'

const hook = (id: number) => ({
  id,
  type: 'gitea',
  config: { content_type: 'json', url: SETTINGS.url },
  events: ['push'],
  active: true,
})
const shown = (id: number) => ({
  id,
  url: SETTINGS.url,
  active: true,
  contentType: 'json',
  events: ['push'],
  hasSecret: undefined,
  lastResponse: undefined,
})

function theOnly<T>(all: readonly T[]): T {
  const [one, ...others] = all
  if (one === undefined || others.length > 0) throw new Error(`there are ${all.length}`)
  return one
}

async function ask<T>(
  answer: (request: Received) => Answer,
  act: (hooks: ReturnType<typeof createProvider>['hooks']) => Promise<T>,
) {
  await using server = await scriptedServer(answer)
  const result = await act(createProvider({ name: 'gitea', url: server.url }).hooks)
  return {
    result,
    sent: server.received.map(({ method, path, body }) => [method, path, body && JSON.parse(body)]),
  }
}

describe('the hooks of a Gitea repository', () => {
  it('are listed until a page is empty, whatever its size', async () => {
    const pages = [[hook(1), hook(2)], [hook(3)], []]
    const { result, sent } = await ask(
      () => ({ body: pages.shift() ?? [] }),
      (hooks) => hooks.list(TOKEN, REPO),
    )
    expect(result).toEqual([shown(1), shown(2), shown(3)])
    expect(sent).toEqual([1, 2, 3].map((page) => ['GET', `${HOOKS}?limit=50&page=${page}`, '']))
  })

  it('are created active, with every event named', async () => {
    const { result, sent } = await ask(
      ({ method }) => (method === 'POST' ? { status: 201, body: hook(4) } : { body: [] }),
      (hooks) => hooks.create(TOKEN, REPO, { ...SETTINGS, events: undefined }),
    )
    expect(result).toEqual(shown(4))
    expect(sent[0]).toEqual([
      'POST',
      HOOKS,
      {
        type: 'gitea',
        active: true,
        events: [
          'action_run_failure',
          'action_run_recover',
          'action_run_success',
          'create',
          'delete',
          'fork',
          'issue_comment',
          'issues',
          'package',
          'pull_request',
          'push',
          'release',
          'repository',
          'status',
          'wiki',
          'workflow_job',
          'workflow_run',
        ],
        config: { url: SETTINGS.url, content_type: 'json', secret: 'hush' },
        branch_filter: '',
        authorization_header: '',
      },
    ])
  })

  it('are changed by a new hook and the removal of the old, since Gitea keeps the secret of a hook', async () => {
    await using gitea = await fakeGitea('')
    const { hooks } = createProvider({ name: 'gitea', url: gitea.url })
    const { token } = gitea.state
    const made = await hooks.create(token, REPO, { ...SETTINGS, secret: new Secret('before') })
    const { all } = gitea.state.hooks
    all.splice(0, 1, { ...theOnly(all), branchFilter: 'main', authorization: 'Bearer theirs' })
    const elsewhere = `${SETTINGS.url}/moved`
    expect(await hooks.change(token, REPO, made.id, { ...SETTINGS, url: elsewhere })).toEqual({
      ...shown(made.id + 1),
      url: elsewhere,
    })
    expect(all).toEqual([
      {
        id: made.id + 1,
        type: 'gitea',
        url: elsewhere,
        contentType: 'json',
        secret: 'hush',
        events: ['push'],
        branchFilter: 'main',
        authorization: 'Bearer theirs',
        active: true,
      },
    ])
  })

  it('are one for an address, although Gitea makes a second, also when two relays make them at once', async () => {
    await using gitea = await fakeGitea('')
    const { hooks } = createProvider({ name: 'gitea', url: gitea.url })
    const { token } = gitea.state
    await Promise.all([1, 2, 3].map(() => hooks.create(token, REPO, SETTINGS)))
    const { id } = theOnly(gitea.state.hooks.all)
    const changed = await Promise.all([1, 2].map(() => hooks.change(token, REPO, id, SETTINGS)))
    expect(changed.map((hook) => hook.id)).toContain(theOnly(gitea.state.hooks.all).id)
  })

  it('are tested with a push, and have no log', async () => {
    const { result, sent } = await ask(
      () => ({ status: 204 }),
      async (hooks) => {
        await hooks.test(TOKEN, REPO, 4)
        return hooks.log
      },
    )
    expect([result, sent]).toEqual([undefined, [['POST', `${HOOKS}/4/tests`, '']]])
  })

  it('are refused with what Gitea says', async () => {
    const answer: Answer = { status: 404, body: { message: 'Not Found', url: 'x' } }
    await expect(
      ask(
        () => answer,
        (hooks) => hooks.list(TOKEN, REPO),
      ),
    ).rejects.toMatchObject({
      kind: 'not_found',
    })
  })
})
