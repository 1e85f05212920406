import { describe, expect, it } from 'vitest'
import { homeRoutes } from '../../src/server/routes/home.js'

describe('GET /', () => {
  it('is a page for people that may run and load nothing', async () => {
    const response = await homeRoutes().request('/')
    expect(response.status).toBe(200)
    expect(response.headers.get('content-type')).toBe('text/html; charset=utf-8')
    expect(response.headers.get('content-security-policy')).toMatch(
      /^default-src 'none'; style-src 'sha256-[^']+';/,
    )
    expect(await response.text()).toContain('<h1>relay is running</h1>')
  })

  it('is the same whatever the query says', async () => {
    const bare = await (await homeRoutes().request('/')).text()
    const query = '?auth=error&reason=%3Cscript%3Ealert(1)%3C/script%3E&userId=someone'
    expect(await (await homeRoutes().request(`/${query}`)).text()).toBe(bare)
  })
})
