import { describe, expect, it } from 'vitest'
import { startRelay } from './auth-rig.js'

/** But for the style, and the white space at the beginning of lines. */
const PAGE = `<!doctype html>
<html lang="en">
<meta charset="utf-8" />
<meta name="viewport" content="width=device-width, initial-scale=1" />
<title>relay</title>
<style/>  <h1>relay is running</h1>
<p>If you came here from signing in, you can close this page and go back to your terminal.</p>
<p>
This page’s address says how it went: <code>auth=success</code> means you are signed in,
<code>auth=error</code> that you are not, and its <code>reason</code> says why.
</p>
</html> `

describe('GET /', () => {
  it.each(['/', '/?auth=error&reason=%3Cscript%3Ealert(1)%3C/script%3E&userId=someone'])(
    'is the same page, which may run and load nothing, at %s',
    async (path) => {
      await using relay = await startRelay()
      const { status, headers, body } = await relay.ask('GET', path)
      expect(status).toBe(200)
      expect(headers).toMatchObject({
        'content-type': 'text/html; charset=utf-8',
        'content-security-policy': expect.stringMatching(
          /^default-src 'none'; style-src 'sha256-[^']+'; form-action 'none';/,
        ),
        'cache-control': 'no-store',
      })
      expect(body.replace(/<style>[^]*<\/style>/, '<style/>').replace(/^ +/gm, '')).toBe(PAGE)
    },
  )
})
