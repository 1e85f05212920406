import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Sandbox } from '../../../src/sandbox/sandbox.js'
import { answerOf, call, CLIENT, refusal, signIn, start } from '../rig.js'

let sandbox: Sandbox
beforeAll(async () => {
  sandbox = await start()
})
afterAll(() => sandbox[Symbol.asyncDispose]())

describe('revocation by the application', () => {
  const basic = `Basic ${Buffer.from(`${CLIENT.id}:${CLIENT.secret}`).toString('base64')}`
  const revoke = (body: unknown, authorization = basic, client = CLIENT.id): Promise<Response> =>
    call(sandbox, `DELETE /applications/${client}/token`, { authorization }, body)

  it('ends the token at once, and responds 404 the second time', async () => {
    const headers = await signIn(sandbox)
    const access_token = headers.authorization.replace('Bearer ', '')
    const answer = await revoke({ access_token })
    expect([answer.status, await answer.text()]).toEqual([204, ''])
    const user = await call(sandbox, 'GET /user', headers)
    expect(await answerOf(user)).toEqual(refusal(401, 'Bad credentials'))
    expect(await answerOf(await revoke({ access_token }))).toEqual(refusal(404, 'Not Found'))
  })

  it("requires the application's credentials and a token", async () => {
    const wrong = `Basic ${Buffer.from(`${CLIENT.id}:wrong`).toString('base64')}`
    expect(await answerOf(await revoke({ access_token: 'x' }, wrong))).toEqual(
      refusal(401, 'Bad credentials'),
    )
    expect(await answerOf(await revoke({ access_token: 'x' }, basic, 'other'))).toEqual(
      refusal(404, 'Not Found'),
    )
    const missing = [{ resource: 'OauthAccess', code: 'missing_field', field: 'access_token' }]
    expect(await answerOf(await revoke({}))).toEqual(refusal(422, 'Validation Failed', missing))
  })
})
