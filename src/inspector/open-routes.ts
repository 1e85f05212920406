import { Hono } from 'hono'
import { setCookie } from 'hono/cookie'
import { RelayError } from '../base/errors.js'
import { readBody, type HttpEnv } from '../http/body.js'
import type { Access } from './access.js'
import type { AssetPaths } from './document.js'
import { cookieName, isSameOrigin } from './guard.js'
import { accessPage, OPEN_PATH, OPENED_SCRIPT, openedPage, SCRIPT_PATH } from './open-page.js'

/** 4 KiB: a form with a code. */
const MAX_FORM = 4096

/**
 * POST /inspect/open: a one-time code (`code`), and what to show (`entry`: a number, or `last`), as a form. 200 with the cookie and a page
 * that leads on | 401 with the form for another code | 403 from another site's page.
 */
export function openRoutes(access: Access, assets: AssetPaths, newest: () => Promise<number>) {
  return new Hono<HttpEnv>()
    .get(OPEN_PATH, (c) => c.html(accessPage(assets)))
    .post(OPEN_PATH, async (c) => {
      // `relay inspect` posts from a file, whose origin is `null`.
      const isFile = (c.req.header('origin') ?? 'null') === 'null'
      if (!isFile && !isSameOrigin(c))
        throw new RelayError('forbidden', 'This request came from another page')
      const form = new URLSearchParams(Buffer.from(await readBody(c, MAX_FORM)).toString())
      const session = access.open(form.get('code') ?? '')
      const entry = form.get('entry') ?? undefined
      if (!session) return c.html(accessPage(assets, { problem: PROBLEM, entry }), 401)
      setCookie(c, cookieName(c), session.cookie, { path: '/inspect', httpOnly: true, sameSite: 'Strict' })
      return c.html(openedPage(assets, session.key, await pageOf(entry, newest)))
    })
    .get(SCRIPT_PATH, (c) => c.body(OPENED_SCRIPT, 200, { 'Content-Type': 'text/javascript; charset=utf-8' }))
}

const PROBLEM = 'That code is wrong, was used before, or is older than 5 minutes.'

/** The address of the page to open: that of an entry, or the list. */
async function pageOf(entry: string | undefined, newest: () => Promise<number>): Promise<string> {
  const n = entry === 'last' ? String((await newest()) || '') : (entry ?? '')
  return /^[1-9]\d{0,14}$/.test(n) ? `/inspect/deliveries/${n}` : '/inspect/'
}
