import { describe, expect, it } from 'vitest'
import { Secret } from '../../../src/base/secret.js'
import { createProvider } from '../../../src/providers/open.js'
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
      () => ({ status: 201, body: hook(4) }),
      (hooks) => hooks.create(TOKEN, REPO, { ...SETTINGS, events: undefined }),
    )
    expect(result).toEqual(shown(4))
    expect(sent).toEqual([
      [
        'POST',
        HOOKS,
        {
          type: 'gitea',
          active: true,
          events: expect.arrayContaining(['issue_comment', 'issues', 'pull_request', 'push', 'release']),
          config: { url: SETTINGS.url, content_type: 'json', secret: 'hush' },
        },
      ],
    ])
  })

  it('are changed by a new hook and the removal of the old, since Gitea keeps the secret of a hook', async () => {
    const { result, sent } = await ask(
      ({ method }) => (method === 'POST' ? { status: 201, body: hook(5) } : { status: 204 }),
      (hooks) => hooks.change(TOKEN, REPO, 4, SETTINGS),
    )
    expect(result).toEqual(shown(5))
    expect(sent.map(([method, path]) => `${method} ${path}`)).toEqual([`POST ${HOOKS}`, `DELETE ${HOOKS}/4`])
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
