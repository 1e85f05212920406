import { describe, expect, it } from 'vitest'
import { post, type WebhookRequest } from '../kit/delivery.js'
import { place } from '../kit/place.js'
import { type Received, receiver } from '../kit/receiver.js'
import { flagsOf, requestOf, secretsOf, type Sender, SENDERS, sentLines } from '../kit/senders.js'
import { shared } from './fixture.js'

const HOUR = 3_600_000
const verifying = Object.entries(SENDERS).filter(([, { verify }]) => verify)

/** What the sender's own package says of a request at this time. */
async function verdictOf({ verify }: Sender, request: WebhookRequest, now: number): Promise<string> {
  try {
    return (await verify?.(request, now)) === false ? 'refused' : 'accepted'
  } catch (error) {
    return `refused: ${String(error)}`
  }
}

describe.each(verifying)('the package of %s', (name, sender) => {
  // Ends at the time at which `relay replay` sends. It runs: what is tried again waits by it.
  let later = -2 * HOUR
  const now = (): number => Date.now() + later
  const seams = { clock: now, limits: { retries: [10] } }
  const verdicts: string[] = []
  const judge = async (request: WebhookRequest): Promise<number> => {
    const verdict = await verdictOf(sender, request, now())
    verdicts.push(verdict)
    return verdict === 'accepted' ? 200 : 401
  }
  const here = shared(() => place({ host: 'none', env: secretsOf([[name, sender]]) }))
  const target = shared(() => receiver(judge))
  const relay = shared(() => here.serveWith({ seams }, ...flagsOf([[name, sender]], target.url)))
  let sent: WebhookRequest = { headers: [], body: Buffer.of() }

  /** That a request is the one that was sent, but for its signature and the signed time. */
  const expectAlike = (received: Received | undefined): void => {
    expect(received && sentLines(received).map(([each]) => each)).toEqual(sent.headers.map(([each]) => each))
    const text = received?.body.toString() ?? ''
    const time: unknown = sender.bodyAt && JSON.parse(text).webhookTimestamp
    expect(text).toBe(sender.bodyAt?.(Number(time)) ?? sent.body.toString())
  }

  it('accepts what is forwarded at once, as it came, and signed again once its target is back after an hour', async () => {
    sent = await requestOf(sender, now())
    expect(await verdictOf(sender, sent, now())).toBe('accepted')
    target.answers(async (received) => {
      await judge(received)
      later += HOUR
      return 503
    })
    expect(await post(`${relay.address}/webhook/${name}`, sent)).toMatchObject({ status: 200 })
    await relay.object({ type: 'attempt', outcome: 'succeeded' })
    expect(verdicts).toEqual(['accepted', 'accepted'])
    const [first, second] = target.received
    expect(first && sentLines(first)).toEqual(sent.headers)
    expect(first?.body).toEqual(sent.body)
    expectAlike(second)
  })

  it('accepts what is replayed an hour later, and refuses it as it came where its time is signed', async () => {
    const replay = (...flags: string[]) => here.run('replay', '1', '--keep-id', '--to', target.url, ...flags)
    later += HOUR
    expect(await replay()).toMatchObject({ code: 0 })
    expectAlike(target.received.at(-1))
    expect(verdicts).toEqual(['accepted', 'accepted', 'accepted'])
    await replay('--keep-signature')
    expect(target.received.slice(-1).map(sentLines)).toEqual([sent.headers])
    expect(target.received.at(-1)?.body).toEqual(sent.body)
    expect(verdicts.at(-1)).toMatch(sender.tolerance === undefined ? /^accepted$/ : /^refused/)
  })
})
