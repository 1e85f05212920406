import { randomUUID } from 'node:crypto'
import { RelayError } from '../../src/base/errors.js'
import { invalidReason } from '../../src/webhook/refusal-detail.js'
import { describe, expect, it } from 'vitest'
import { createLargeMessages, LARGE_LIMITS } from '../../src/tunnel/large.js'
import { sign } from '../../src/webhook/signature.js'
import { GITEA, GITHUB, githubDelivery, giteaDelivery, post, SECRET, SECRETS } from '../helpers/delivery.js'
import { gosmee as startGosmee, smee as startSmee } from '../kit/smee.js'
import { startTunnel } from './rig.js'
import { entriesOf, entryOf } from '../helpers/journal.js'

const MIB = 1_048_576

describe('a large delivery', () => {
  const long = { title: 'é \u001b[1m <b> & co', text: 'x'.repeat(100_000), list: Array(5000).fill('"\\/') }
  const compact = JSON.stringify({ action: 'opened', ...long })
  const indented = JSON.stringify(long, null, 2)
    .replaceAll('<', String.raw`\u003c`)
    .replaceAll('>', String.raw`\u003e`)
    .replaceAll('&', String.raw`\u0026`)

  it.each([
    ['GitHub', GITHUB, githubDelivery, compact, 'compact'],
    ['Gitea', GITEA, giteaDelivery, indented, 'indented-go'],
  ] as const)('of %s is restored, in order', async (_, provider, deliver, body, how) => {
    await using smee = await startSmee()
    await using rig = await startTunnel(smee.channel, { provider })
    await rig.status({ roundTrip: 'ok' })
    for (const one of ['{"n":1}', body, '{"n":2}', `${body}\n`, '{"n":3}'])
      await post(smee.channel, deliver({ body: one, id: randomUUID() }))
    await rig.stored(5)
    const entries = await entriesOf(rig.journal)
    expect(entries.map((entry) => Buffer.from(entry.body).toString())).toEqual([
      '{"n":1}',
      body,
      '{"n":2}',
      `${body}\n`,
      '{"n":3}',
    ])
    expect(entries.map(({ restored }) => restored?.how).filter((one) => one !== 'compact')).toEqual(
      [how, `${how}-newline`].filter((one) => one !== 'compact'),
    )
    expect(rig.logged).toEqual([])
  })

  it('from a server that sends the bytes is accepted, or refused with the reason', async () => {
    await using smee = await startGosmee()
    await using rig = await startTunnel(smee.channel)
    await rig.status({ roundTrip: 'ok' })
    const body = `{"a": 1.0, "b": "${'x'.repeat(40_000)}"}\n`
    await post(smee.channel, githubDelivery({ body }))
    await rig.stored(1)
    expect(Buffer.from((await entryOf(rig.journal, 1)).body).toString()).toBe(body)
    await post(smee.channel, githubDelivery({ body, id: 'd-1', secret: 'another' }))
    expect(await rig.logLine('refused')).toBe(
      'a tunnel message was refused: invalid signature (signed with another secret, or the body was changed on its way) (unproved: event push, delivery d-1; relay show refused:1)',
    )
  })
})

describe('the thread that reads large messages', () => {
  const body = `{"text":"${'x'.repeat(40_000)}"}`
  const event = () => {
    const text = `{"x-hub-signature-256":"${sign(SECRET, Buffer.from(body))}","body":${body}}`
    const block = new Uint8Array(Buffer.from(`data: ${text}\n\n`))
    return { blocks: [block], length: block.length }
  }
  const parts = { secrets: SECRETS, scheme: GITHUB.webhook, maxBody: MIB }
  const outcomeOf = async (reading: ReturnType<ReturnType<typeof createLargeMessages>['read']>) => {
    const unpacked = await reading
    if (!unpacked || !('refused' in unpacked)) return unpacked
    const { refused } = unpacked
    return refused instanceof RelayError ? invalidReason(refused) : refused.reason()
  }

  it('is terminated if it takes too long, and another reads the next message', async () => {
    const never = new AbortController().signal
    const limits = { ...LARGE_LIMITS, time: 1 }
    await using slow = createLargeMessages(parts, never, limits)
    expect(await outcomeOf(slow.read(event()))).toBe('reading it took over 0.001 s')
    limits.time = LARGE_LIMITS.time
    expect(await outcomeOf(slow.read(event()))).toMatchObject({ how: 'compact' })
  })

  it('is terminated when idle, and started again', async () => {
    await using large = createLargeMessages(parts, new AbortController().signal, {
      ...LARGE_LIMITS,
      idle: 0,
    })
    for (const _ of [1, 2]) expect(await outcomeOf(large.read(event()))).toMatchObject({ how: 'compact' })
  })

  it('is terminated soon after relay stops, even while it reads', async () => {
    const stop = new AbortController()
    await using large = createLargeMessages(parts, stop.signal, { ...LARGE_LIMITS, closing: 1 })
    const reading = outcomeOf(large.read(event()))
    stop.abort()
    expect(await reading).toBe('relay is stopping')
    expect(await outcomeOf(large.read(event()))).toBe('relay is stopping')
  })
})
