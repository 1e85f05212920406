import { describe, expect, it } from 'vitest'
import { type DeliveryOptions, giteaDelivery, githubDelivery, post } from '../helpers/delivery.js'
import { openRig, type Rig } from './rig.js'

const SCOPE = 'It covers the body only: headers, and so the event and the delivery id, are not signed.'

describe('the proof of a signature', () => {
  it('names the header that relay has checked, as it was sent', async () => {
    await using github = await openRig()
    const { 'X-Hub-Signature-256': signature } = Object.fromEntries(githubDelivery().headers)
    const lowerCase = { 'X-Hub-Signature-256': undefined, 'x-hub-signature-256': signature }
    expect(await proofs(github, githubDelivery, {}, { set: lowerCase })).toEqual([
      [
        'X-Hub-Signature-256 is the HMAC-SHA256 of the exact bytes of the body with the current webhook secret.',
        SCOPE,
      ],
      [
        'x-hub-signature-256 is the HMAC-SHA256 of the exact bytes of the body with the current webhook secret.',
        SCOPE,
      ],
    ])
  })

  it('does not name the header of Gitea that relay does not check', async () => {
    await using gitea = await openRig({ provider: 'gitea', providerUrl: 'https://gitea.example' })
    const form = {
      type: 'application/x-www-form-urlencoded',
      body: `payload=${encodeURIComponent('{"ref":"main"}')}`,
      signed: '{"ref":"main"}',
    }
    const other = { 'X-Gitea-Signature': '0'.repeat(64) }
    expect(await proofs(gitea, giteaDelivery, { set: other }, { ...form, set: other })).toEqual([
      [
        'X-Hub-Signature-256 is the HMAC-SHA256 of the exact bytes of the body with the current webhook secret.',
        SCOPE,
      ],
      [
        'X-Hub-Signature-256 is the HMAC-SHA256 of the payload inside the form with the current webhook secret.',
        SCOPE,
      ],
    ])
  })
})

/** The proofs of deliveries that are sent one after the other. */
async function proofs(
  rig: Rig,
  make: typeof githubDelivery,
  ...options: readonly DeliveryOptions[]
): Promise<readonly unknown[]> {
  const found: unknown[] = []
  for (const [i, each] of options.entries()) {
    expect(await post(`${rig.url}/webhook`, make(each))).toMatchObject({ status: 200 })
    const { proof }: { proof: unknown } = JSON.parse(await (await rig.get(`deliveries/${i + 1}`)).text())
    found.push(proof)
  }
  return found
}
