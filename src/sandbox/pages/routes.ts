import { Hono } from 'hono'
import type { HttpEnv } from '../../http/env.js'
import type { View } from '../resources/view.js'

export function pageRoutes(_view: View): Hono<HttpEnv> {
  return new Hono<HttpEnv>()
}
