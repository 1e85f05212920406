import { type Context, Hono } from 'hono'
import { found } from '../github-error.js'
import type { Hook } from '../hooks/hook.js'
import type { HookInput, Hooks } from '../hooks/hooks.js'
import { injectFault } from '../inject-fault.js'
import type { Repo } from '../model.js'
import { repositoryPing } from '../payloads.js'
import { configResource, hookResource } from '../resources/hook.js'
import { deliveryRoutes } from './deliveries.js'
import { responseSent, type RestEnv, type RestParts } from './env.js'
import { requires } from './guard.js'
import { invalid, readConfig, readHookChanges, readNewHook } from './hook-input.js'
import { findRepo, readObject } from './input.js'
import { pageOf } from './paging.js'

/** Scopes for hooks (https://docs.github.com/apps/oauth-apps/building-oauth-apps/scopes-for-oauth-apps). */
const DELETE_SCOPES = ['admin:repo_hook', 'repo']
const WRITE_SCOPES = [...DELETE_SCOPES, 'write:repo_hook']
const READ_SCOPES = [...WRITE_SCOPES, 'read:repo_hook']

const HOOKS = '/repos/:owner/:repo/hooks'
const HOOK = `${HOOKS}/:hook{\\d+}`

/** Routes for the hooks of a repository (https://docs.github.com/rest/repos/webhooks). */
export function hookRoutes(parts: RestParts): Hono<RestEnv> {
  const { view, faults, webhooks, hooks, deliveries } = parts
  const fault = injectFault(faults, 'hook')
  return new Hono<RestEnv>()
    .use(`${HOOKS}/*`, requires({ scopes: scopesFor, permission: 'repository_hooks' }))
    .get(HOOKS, fault, (c) => {
      const { fullName } = findRepo(c, view.state)
      return c.json(pageOf(c, hooks.of(fullName)).map((hook) => show(fullName, hook)))
    })
    .post(HOOKS, fault, async (c) => {
      const repo = findRepo(c, view.state)
      const hook = hooks.add({
        repo: repo.fullName,
        ...accepted(hooks, repo, readNewHook(await readObject(c))),
      })
      ping(c, repo, hook)
      const resource = show(repo.fullName, hook)
      return c.json(resource, 201, { Location: resource.url })
    })
    .get(HOOK, fault, (c) => c.json(show(findRepo(c, view.state).fullName, findHook(c))))
    .patch(HOOK, fault, async (c) => {
      const [repo, hook] = [findRepo(c, view.state), findHook(c)]
      const input = readHookChanges(await readObject(c), hook)
      return c.json(show(repo.fullName, hooks.change(hook, accepted(hooks, repo, input, hook))))
    })
    .delete(HOOK, fault, (c) => {
      hooks.remove(findHook(c))
      return c.body(null, 204)
    })
    .get(`${HOOK}/config`, fault, (c) => c.json(configResource(findHook(c).config)))
    .patch(`${HOOK}/config`, fault, async (c) => {
      const [repo, hook] = [findRepo(c, view.state), findHook(c)]
      const { active, events } = hook
      const config = readConfig(await readObject(c), hook.config)
      return c.json(
        configResource(hooks.change(hook, accepted(hooks, repo, { active, events, config }, hook)).config),
      )
    })
    .post(`${HOOK}/pings`, fault, (c) => {
      ping(c, findRepo(c, view.state), findHook(c))
      return c.body(null, 204)
    })
    .route(`${HOOK}/deliveries`, deliveryRoutes({ faults, webhooks, deliveries }, findHook))

  function findHook(c: Context<RestEnv>): Hook {
    const { fullName } = findRepo(c, view.state)
    const hook = hooks.get(Number(c.req.param('hook')))
    return found(hook?.repo === fullName ? hook : undefined)
  }

  function ping(c: Context<RestEnv>, { fullName }: Repo, hook: Hook): void {
    const payload = repositoryPing(view, fullName, hook, c.get('grant').login)
    webhooks.send(hook, 'ping', payload, responseSent(c))
  }

  function show(repo: string, hook: Hook) {
    return hookResource(view, repo, hook, deliveries.of(hook.id)[0])
  }
}

function scopesFor(method: string): readonly string[] {
  if (method === 'GET') return READ_SCOPES
  return method === 'DELETE' ? DELETE_SCOPES : WRITE_SCOPES
}

/** Returns the settings. @throws GitHubError 422 when another hook of the repository stands against them */
function accepted(hooks: Hooks, { fullName }: Repo, input: HookInput, itself?: Hook): HookInput {
  const conflicts = hooks.conflicts(fullName, input, itself)
  if (conflicts.length > 0)
    throw invalid(...conflicts.map((message) => ({ code: 'custom' as const, message })))
  return input
}
