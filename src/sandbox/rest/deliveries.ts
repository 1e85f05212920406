import { type Context, Hono } from 'hono'
import type { HttpEnv } from '../../http/body.js'
import { found, GitHubError } from '../github-error.js'
import type { LoggedDelivery } from '../hooks/delivery-log.js'
import type { Hook } from '../hooks/hook.js'
import { injectFault } from '../inject-fault.js'
import { deliveryDetailText, deliveryText } from '../resources/delivery.js'
import { responseSent, type RestParts } from './env.js'
import { cursorPageOf } from './paging.js'

/** Routes for the delivery log of a hook, which `findHook` finds (https://docs.github.com/rest/repos/webhooks). */
export function deliveryRoutes(
  { faults, webhooks, deliveries }: Pick<RestParts, 'faults' | 'webhooks' | 'deliveries'>,
  findHook: (c: Context) => Hook,
): Hono<HttpEnv> {
  return new Hono<HttpEnv>()
    .get('/', injectFault(faults, 'deliveries'), (c) => {
      const page = cursorPageOf(c, deliveries.of(findHook(c).id).filter(statusFilter(c)))
      if (!page) throw new GitHubError(400, 'Invalid cursor')
      return json(c, `[${page.map(deliveryText).join(',')}]`)
    })
    .get('/:delivery{\\d+}', injectFault(faults, 'deliveries'), (c) =>
      json(c, deliveryDetailText(find(c, findHook(c)))),
    )
    .post('/:delivery{\\d+}/attempts', injectFault(faults, 'redeliver'), (c) => {
      const hook = findHook(c)
      webhooks.redeliver(hook, find(c, hook), responseSent(c))
      return c.json({}, 202)
    })

  function find(c: Context, hook: Hook): LoggedDelivery {
    return found(deliveries.find(hook.id, BigInt(c.req.param('delivery') ?? '')))
  }
}

/** Filter for the query's `status`: `success` is 200 to 399, `failure` 400 to 599, as in GitHub's description. */
function statusFilter(c: Context): (delivery: LoggedDelivery) => boolean {
  switch (c.req.query('status')) {
    case undefined:
      return () => true
    case 'success':
      return ({ statusCode }) => statusCode < 400
    case 'failure':
      return ({ statusCode }) => statusCode >= 400
    default:
      throw new GitHubError(422, 'Validation Failed', [
        { resource: 'Delivery', code: 'invalid', field: 'status' },
      ])
  }
}

function json(c: Context, text: string): Response {
  return c.body(text, 200, { 'Content-Type': 'application/json; charset=utf-8' })
}
