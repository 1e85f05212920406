import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Sandbox } from '../../src/sandbox/sandbox.js'
import { type ScriptedServer, scriptedServer } from '../helpers/scripted-server.js'
import { answerOf, call, type Converted, jwt, makeApp, NOW, refusal, start } from './sandbox-rig.js'

let sandbox: Sandbox
let receiver: ScriptedServer
let status: number
let app: Converted
beforeEach(async () => {
  status = 200
  receiver = await scriptedServer(() => ({ status }))
  sandbox = await start()
  app = await makeApp(sandbox, { hook_attributes: { url: `${receiver.url}/app` } })
  await sandbox.idle()
})
afterEach(async () => {
  await sandbox[Symbol.asyncDispose]()
  await receiver[Symbol.asyncDispose]()
})

describe('the token of an App', () => {
  const undecodable = 'A JSON web token could not be decoded'
  const expiry =
    "'Expiration time' claim ('exp') must be a numeric value representing the future time at which the assertion expires"
  const issued =
    "'Issued at' claim ('iat') must be an Integer representing the time that the assertion was issued"
  const seconds = NOW / 1000
  it.each([
    ['has expired', { exp: seconds }, 401, expiry],
    ['does not expire', { exp: undefined }, 401, expiry],
    [
      'is valid for over 10 minutes',
      { exp: seconds + 601 },
      401,
      "'Expiration time' claim ('exp') is too far in the future",
    ],
    ['is from the future', { iat: seconds + 1 }, 401, issued],
    ['has no time of issue', { iat: undefined }, 401, issued],
    ['has no issuer', { iss: undefined }, 401, "Missing 'issuer' claim ('iss') in assertion"],
    ['is of an unknown App', { iss: 999 }, 404, 'Integration not found'],
  ])('is refused when it %s', async (_, claims, code, message) => {
    expect(await answerOf(await call(sandbox, 'GET /app', jwt(app, NOW, claims)))).toEqual(
      refusal(code, message),
    )
  })

  it('is refused when another key signed it, or none', async () => {
    await using elsewhere = await start()
    const other = await makeApp(elsewhere)
    expect(await answerOf(await call(sandbox, 'GET /app', jwt(other, NOW)))).toEqual(
      refusal(401, undecodable),
    )
    const { authorization } = jwt(app, NOW)
    const [header, , signature] = authorization.split('.')
    const claims = Buffer.from(JSON.stringify({ iss: app.id, iat: seconds, exp: seconds + 60 })).toString(
      'base64url',
    )
    for (const token of [
      `${header}.${claims}.${signature}`,
      `${header}.${claims}.`,
      authorization.slice(0, -9),
    ])
      expect(await answerOf(await call(sandbox, 'GET /app', { authorization: token }))).toEqual(
        refusal(401, undecodable),
      )
    const none = jwt(app, NOW, {}, { alg: 'none' })
    expect(await answerOf(await call(sandbox, 'GET /app', none))).toEqual(refusal(401, undecodable))
  })
})
