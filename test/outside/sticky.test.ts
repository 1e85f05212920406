import { expect, it } from 'vitest'
import { place } from '../kit/place.js'
import { receiver } from '../kit/receiver.js'

it('relay comment --sticky edits the comment that it made, and adds one for another key or issue', async () => {
  await using here = await place({ signedIn: true })
  const stick = async (subject: string, text: string, key: string): Promise<number> =>
    JSON.parse((await here.run('comment', subject, text, '--sticky', key, '--json')).out).id
  const first = await stick('octo/demo#1', 'one', 'ci')
  expect(await stick('octo/demo#1', 'two', 'ci')).toBe(first)
  const other = await stick('octo/demo#1', 'three', 'docs')
  const elsewhere = await stick('octo/demo#2', 'four', 'ci')
  expect(new Set([first, other, elsewhere]).size).toBe(3)
  expect(here.sandbox.comments.map(({ issueNumber, body }) => [issueNumber, body])).toEqual([
    [1, '<!-- relay-sticky: ci -->\ntwo'],
    [1, '<!-- relay-sticky: docs -->\nthree'],
    [2, '<!-- relay-sticky: ci -->\nfour'],
  ])
})

it('relay comment --sticky leaves the comments of other accounts alone', async () => {
  const body = '<!-- relay-sticky: ci -->\nfrom somebody else'
  const written: string[] = []
  await using host = await receiver(({ method, path }) => {
    if (path.endsWith('/user'))
      return { status: 200, headers: { 'x-oauth-scopes': 'repo' }, body: { login: 'ada' } }
    if (method === 'GET')
      return { status: 200, body: [{ id: 5, html_url: 'http://127.0.0.1/5', user: { login: 'eve' }, body }] }
    written.push(`${method} ${path}`)
    return { status: 201, body: { id: 9, html_url: 'http://127.0.0.1/9' } }
  })
  await using here = await place({
    host: 'none',
    env: { RELAY_PROVIDER: 'github', RELAY_PROVIDER_URL: host.url },
  })
  await here.useToken('ghp_token')
  expect(await here.run('comment', 'octo/demo#1', 'mine', '--sticky', 'ci')).toMatchObject({
    code: 0,
    err: '',
  })
  expect(written).toEqual(['POST /api/v3/repos/octo/demo/issues/1/comments'])
})
