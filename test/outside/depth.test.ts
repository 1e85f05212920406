import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, it } from 'vitest'
import { githubDelivery, post } from '../kit/delivery.js'
import { exchange, requestText } from '../kit/http.js'
import { place } from '../kit/place.js'
import { flagsOf, requestOf, secretsOf, SENDERS } from '../kit/senders.js'
import { fresh } from './fixture.js'

const MIB = 1_048_576
/** Text that a parser without a bound takes long for, of a megabyte; closed, so that it is JSON. */
const DEEP: Readonly<Record<string, string>> = {
  arrays: '['.repeat(MIB / 2) + ']'.repeat(MIB / 2),
  'arrays that stay open': '['.repeat(MIB),
  objects: `${'{"a":'.repeat(MIB / 6)}0${'}'.repeat(MIB / 6)}`,
  'arrays after text with brackets': `["\\"]]","\\\\",${'['.repeat(MIB / 2 - 20)}${']'.repeat(MIB / 2 - 20)}]`,
}
const deep = Object.entries(DEEP)

describe('JSON that is nested a hundred thousand deep', () => {
  const here = fresh(() => place({ signedIn: true, env: secretsOf(Object.entries(SENDERS)) }))
  const relay = fresh(() => here.serve(...flagsOf(Object.entries(SENDERS))))

  it.each(deep)('is refused where a delivery has it: %s', async (_, body) => {
    const sent = githubDelivery({ body })
    expect(await post(`${relay.address}/webhook`, sent)).toMatchObject({ status: 400 })
    const form = `payload=${encodeURIComponent(body.slice(0, 100_000))}`
    const asForm = githubDelivery({ body: form, type: 'application/x-www-form-urlencoded' })
    expect(await post(`${relay.address}/webhook`, asForm)).toMatchObject({ status: 400 })
    const { out } = await here.run('log', '--refused', '--json')
    expect(out.match(/the body is nested too deep/g)).toHaveLength(2)
  })

  it.each(Object.entries(SENDERS))('is no event of %s', async (name, sender) => {
    const body = DEEP['arrays'] ?? ''
    const { status } = await post(
      `${relay.address}/webhook/${name}`,
      await requestOf(sender, Date.now(), { body }),
    )
    // A sender of one's own may send any bytes, which are stored as they are.
    expect(status).toBe(sender.scheme.startsWith('hmac') ? 200 : 400)
  })

  it.each(deep)('is refused where an action has it: %s', async (_, body) => {
    const Authorization = `Bearer ${(await here.run('token')).out.trim()}`
    const headers = { 'Content-Type': 'application/json', Authorization }
    const answer = await exchange(
      relay.port,
      requestText('POST', '/api/comment', headers, body.slice(0, 60_000)),
    )
    expect([answer.status, answer.body]).toEqual([400, '{"error":"Invalid request: not valid JSON"}'])
  })

  it.each(deep)('is refused in every file and argument that has JSON: %s', async (_, body) => {
    const file = path.join(here.cwd, 'deep.json')
    writeFileSync(file, body)
    const runs = [
      ['replay', file],
      ['verify', file],
      ['trigger', 'push', '--body', file, '--set', 'ref=x'],
    ]
    for (const argv of runs) expect([argv, (await here.run(...argv)).code]).not.toEqual([argv, 0])
    writeFileSync(path.join(here.cwd, 'relay.json'), body)
    const { code, err } = await here.run('config')
    expect([code, err]).toEqual([2, expect.stringContaining('relay.json, line 1: not JSON')])
  })
})
