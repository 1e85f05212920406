import { Hono } from 'hono'
import { GitHubError } from '../github-error.js'
import { hashOf } from '../commits.js'
import { injectFault } from '../inject-fault.js'
import { pushEvent, synchronizeEvent } from '../payloads.js'
import { responseSent, type RestEnv, type RestParts } from './env.js'
import { mayWrite } from './guard.js'
import { findRepo, readObject, readText } from './input.js'

/**
 * Writing a file, which pushes a commit to a branch and starts its check. The file itself is not stored
 * (https://docs.github.com/rest/repos/contents#create-or-update-file-contents).
 */
export function contentRoutes({ view, faults, webhooks, ci }: RestParts): Hono<RestEnv> {
  const { state } = view
  const fault = injectFault(faults, 'push')
  return new Hono<RestEnv>().put(
    '/repos/:owner/:repo/contents/:path{.+}',
    mayWrite('contents'),
    fault,
    async (c) => {
      const { fullName: repo } = findRepo(c, state)
      const body = await readObject(c)
      const [message, content] = [readText(body, 'message'), readText(body, 'content')]
      if (message === undefined || content === undefined)
        throw new GitHubError(422, 'Invalid request.\n\n"message" and "content" weren\'t supplied.')
      const branch = readText(body, 'branch') ?? 'main'
      const { login } = c.get('grant')
      const commit = state.push(repo, branch, login, message)
      if (!commit) throw new GitHubError(404, `Branch ${branch} not found`)
      const sent = responseSent(c)
      webhooks.publish('push', repo, () => pushEvent(view, commit), sent)
      for (const issue of state.pullsFrom(repo, branch))
        webhooks.publish('pull_request', repo, () => synchronizeEvent(view, issue, commit), sent)
      ci.start(commit)
      const path = c.req.param('path')
      return c.json({ content: fileOf(path, content), commit: commitOf(repo, commit) }, 201)
    },
  )

  function fileOf(path: string, content: string) {
    const bytes = Buffer.from(content, 'base64')
    return {
      type: 'file',
      name: path.split('/').at(-1),
      path,
      sha: hashOf(`blob ${bytes.byteLength}\0${bytes.toString('latin1')}`),
      size: bytes.byteLength,
    }
  }

  function commitOf(
    repo: string,
    { sha, message, before }: { sha: string; message: string; before: string },
  ) {
    const html = `${view.web}/${repo}/commit/${sha}`
    return { sha, html_url: html, message, parents: [{ sha: before }] }
  }
}
