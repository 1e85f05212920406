import { expect, it } from 'vitest'
import { beginSignIn, completeSignIn } from '../../src/auth/sign-in.js'
import { createRig } from './auth-rig.js'

/** A sign-in up to the callback, at a code host that grants fewer scopes than are asked for. */
async function begin() {
  const grant = { access_token: 'gho_x', token_type: 'bearer', scope: 'gist,read:user' }
  const rig = await createRig(({ url }) => ({ body: url.endsWith('/user') ? { login: 'octo' } : grant }))
  const { location, cookie } = await beginSignIn(rig.parts, 'ada', undefined)
  const state = new URL(location).searchParams.get('state') ?? ''
  const query = new URLSearchParams({ code: 'a-code', state })
  return { ...rig, visit: { query, cookies: { [cookie.name]: cookie.value } } }
}

it('a sign-in that began at another code host is not completed', async () => {
  await using rig = await begin()
  const host = { ...rig.host, origin: 'https://elsewhere.example' }
  const { outcome } = await completeSignIn({ ...rig.parts, host }, rig.visit)
  expect([outcome, rig.asked]).toEqual([{ auth: 'error', reason: 'invalid_state' }, []])
})

it('a sign-in warns of scopes that were not granted', async () => {
  await using rig = await begin()
  await completeSignIn(rig.parts, rig.visit)
  expect(rig.log.lines).toEqual(['warn The provider did not grant repo: some actions may be refused'])
})
