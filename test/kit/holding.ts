import { CLIENT, hostVariables, place, USER } from './place.js'
import { receiver } from './receiver.js'
import { requestText } from './http.js'
import type { StartOptions } from './run.js'

const TOKEN = 'gho_of-a-user-whose-comments-wait'
const COMMENT = { id: 7, html_url: 'https://github.com/octo/demo/issues/1#issuecomment-7' }

/** A relay whose code host answers comments only once it may. */
export async function holding(options: Omit<StartOptions, 'built'> = {}) {
  let release = (): void => {}
  const released = new Promise<void>((resolve) => (release = resolve))
  const host = await receiver(async ({ path }) => {
    if (path.endsWith('/user')) return { headers: { 'X-OAuth-Scopes': 'repo' }, body: { login: USER, id: 1 } }
    await released
    return { status: 201, body: COMMENT }
  })
  const here = await place({ host: 'none', env: hostVariables('github', host.url, CLIENT) })
  await here.useToken(TOKEN)
  const before = host.received.length
  const body = JSON.stringify({ owner: 'octo', repo: 'demo', issueNumber: 1, body: 'hello' })
  return {
    relay: await here.serveWith(options),
    /** A request, as text, whose answer waits for the code host. */
    request: requestText(
      'POST',
      '/api/comment',
      { Authorization: `Bearer ${TOKEN}`, 'Content-Type': 'application/json' },
      body,
    ),
    /** The body of its answer. */
    answer: JSON.stringify({ ok: true, id: COMMENT.id, url: COMMENT.html_url }),
    /** How many such requests have reached the code host. */
    get begun() {
      return host.received.length - before
    },
    /** Once so many have. */
    has: (count: number): Promise<void> => host.has(before + count),
    /** Lets the code host answer, from now on at once. */
    release,
    async [Symbol.asyncDispose]() {
      release()
      await here[Symbol.asyncDispose]()
      await host[Symbol.asyncDispose]()
    },
  }
}
