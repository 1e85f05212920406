// @octokit/webhooks' middleware as its documentation shows it: verifies, parses, and stores nothing.
import { createNodeMiddleware, Webhooks } from '@octokit/webhooks'
import { listenHere } from './listen.js'

const webhooks = new Webhooks({ secret: process.env['RELAY_WEBHOOK_SECRET'] ?? '' })
const middleware = createNodeMiddleware(webhooks, { path: '/webhook' })

listenHere((request, response) => void middleware(request, response))
