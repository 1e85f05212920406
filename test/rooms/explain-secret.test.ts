import { describe, expect, it } from 'vitest'
import { Secret } from '../../src/base/secret.js'
import type { WebhookSecrets } from '../../src/base/settings.js'
import { explain, type Explanation, type Reason } from '../../src/webhook/explain.js'
import { type DeliveryOptions, GITHUB, githubDelivery, SECRET, SECRETS } from '../helpers/delivery.js'

const BODY = '{"action":"opened","zen":"<é> \\u001B & so"}'
const of = (options: DeliveryOptions, secrets: WebhookSecrets = SECRETS) =>
  explain(githubDelivery({ body: BODY, ...options }), { secrets, scheme: GITHUB.webhook })
const because = (reason: Reason, hint: string): Explanation => ({ valid: false, reason, hint })

describe('the secret', () => {
  const secrets = (current: string, previous?: string): WebhookSecrets => ({
    current: new Secret(current),
    previous: previous === undefined ? undefined : new Secret(previous),
  })

  it('differs', async () => {
    const hint = 'signed with another secret, or the body was changed on its way'
    expect(await of({ secret: 'other' })).toEqual(because('wrong_secret', hint))
    expect(await of({ secret: 'other' }, secrets('a\n', 'b '))).toEqual(because('wrong_secret', hint))
    expect(await of({ secret: 'other', body: 'no {JSON' })).toEqual(because('wrong_secret', hint))
    expect(await of({ secret: 'other', body: Buffer.from([0x7b, 0xff, 0x7d]) })).toEqual(
      because('wrong_secret', hint),
    )
  })

  it.each([
    ['\n', 'a newline'],
    ['\r\n', 'a carriage return and newline'],
    [' ', 'a space'],
  ])('ends in white space at the sender: %j', async (end, what) => {
    const hint = `the sender's secret ends in ${what}, relay's does not`
    const options = { secret: SECRET + end }
    expect(await of(options)).toEqual(because('secret_white_space', hint))
    expect(await of(options, secrets('new', SECRET))).toEqual(because('secret_white_space', hint))
  })

  it.each(['\n', ' \t', '\r\n'])('ends in white space in relay: %j', async (end) => {
    const hint = "relay's secret has white space at its end, the sender's does not"
    expect(await of({}, secrets(SECRET + end))).toEqual(because('secret_white_space', hint))
    expect(await of({}, secrets('new', SECRET + end))).toEqual(because('secret_white_space', hint))
  })

  it.each([
    [' ', '', 'begins with a space'],
    ['\n', '', 'begins with a newline'],
    ['\t', '', 'begins with a tab'],
    ['', '\t', 'ends in a tab'],
    [' ', '\n', 'begins with a space and ends in a newline'],
    [' ', ' ', 'begins with a space and ends in a space'],
  ])('has white space on both sides at the sender: %j %j', async (start, end, what) => {
    const hint = `the sender's secret ${what}, relay's does not`
    const options = { secret: start + SECRET + end }
    expect(await of(options)).toEqual(because('secret_white_space', hint))
    expect(await of(options, secrets('new', SECRET))).toEqual(because('secret_white_space', hint))
  })

  it.each([
    [' ', '', 'start'],
    ['\r\n', '', 'start'],
    [' \t', '  ', 'start and end'],
  ])('has white space on both sides in relay: %j %j', async (start, end, sides) => {
    const hint = `relay's secret has white space at its ${sides}, the sender's does not`
    expect(await of({}, secrets(start + SECRET + end))).toEqual(because('secret_white_space', hint))
  })

  it('has different white space at the sender and in relay', async () => {
    const ends = "the sender's secret ends in a newline, relay's does not"
    expect(await of({ secret: `  ${SECRET}\n` }, secrets(`  ${SECRET} `))).toEqual(
      because('secret_white_space', ends),
    )
    const here = "relay's secret has white space at its end, the sender's does not"
    expect(await of({ secret: `  ${SECRET}` }, secrets(`  ${SECRET}\n`))).toEqual(
      because('secret_white_space', here),
    )
  })

  it('is never assumed to be only white space', async () => {
    expect(await of({ secret: '' }, secrets(' '))).toMatchObject({ reason: 'wrong_secret' })
    expect(await of({ secret: '\n' }, secrets(' '))).toMatchObject({ reason: 'wrong_secret' })
  })
})
