import { expect, it } from 'vitest'
import { authorize, callback } from '../../src/auth/sign-in.js'
import { createRig } from './auth-rig.js'

it('a sign-in that began at another code host is not completed', async () => {
  await using rig = await createRig(() => ({ body: { access_token: 'gho_x', token_type: 'bearer' } }))
  const { location, cookie } = await authorize(rig.parts, 'ada', undefined)
  const state = new URL(location).searchParams.get('state') ?? ''
  const query = new URLSearchParams({ code: 'a-code', state })
  const visit = { query, cookies: { [cookie.name]: cookie.value } }
  const elsewhere = { ...rig.host, origin: 'https://elsewhere.example' }
  const { outcome } = await callback({ ...rig.parts, host: elsewhere }, visit)
  expect(outcome).toEqual({ auth: 'error', reason: 'invalid_state' })
  expect(rig.asked).toEqual([])
})
