import { describe, expect, it } from 'vitest'
import { exchange, requestText } from '../kit/http.js'
import { answerOf, call, refusal, signIn, start } from './rig.js'

describe('a sandbox', () => {
  it('listens on the loopback interface at the given port', async () => {
    await using first = await start()
    expect(first.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/)
    const port = Number(new URL(first.url).port)
    await expect(start({ port })).rejects.toMatchObject({ kind: 'unavailable' })
    await first[Symbol.asyncDispose]()
    await using second = await start({ port })
    expect(second.url).toBe(first.url)
  })

  it.each(['evil.example', 'evil.example:8788', '192.0.2.1'])(
    'refuses the foreign Host %s everywhere',
    async (Host) => {
      await using sandbox = await start()
      const port = Number(new URL(sandbox.url).port)
      for (const path of ['/', '/login/oauth/authorize', '/api/v3/user']) {
        const { status, body } = await exchange(port, requestText('GET', path, { Host }))
        expect({ status, body: JSON.parse(body) }).toEqual(refusal(403, 'Forbidden host'))
      }
      expect((await exchange(port, requestText('GET', '/'))).status).toBe(200)
    },
  )

  it('responds to an unknown path like GitHub', async () => {
    await using sandbox = await start()
    for (const path of [
      '/nothing',
      '/octo/nothing',
      '/octo/demo/issues/99',
      '/octo/no-issues/issues/1',
      '/a/b/c',
    ]) {
      expect(await answerOf(await fetch(sandbox.url + path))).toEqual(refusal(404, 'Not Found'))
    }
  })

  it('records the last thousand requests, without queries', async () => {
    await using sandbox = await start()
    await fetch(`${sandbox.url}/?code=secret`)
    expect(sandbox.state.requests).toEqual([{ method: 'GET', path: '/' }])
    await Promise.all(Array.from({ length: 1000 }, () => fetch(`${sandbox.url}/x`, { method: 'HEAD' })))
    expect(sandbox.state.requests).toEqual(
      Array.from({ length: 1000 }, () => ({ method: 'HEAD', path: '/x' })),
    )
  })

  it('works without a webhook', async () => {
    await using sandbox = await start()
    await sandbox.ping()
    const headers = await signIn(sandbox)
    const answer = await call(sandbox, 'POST /repos/octo/demo/issues/1/comments', headers, { body: 'x' })
    expect(answer.status).toBe(201)
    await sandbox.idle()
  })
})
