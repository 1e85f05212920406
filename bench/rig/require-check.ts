import { PUSH, signatureOf } from './push.js'
import type { Server } from './server.js'

/** @throws Error unless the server takes a delivery and refuses it with another's signature: one that does not check is no comparison. */
export async function requireCheck({ url }: Server): Promise<void> {
  const genuine = await deliver(url, signatureOf(PUSH))
  const forged = await deliver(url, signatureOf(Buffer.from('another')))
  if (genuine !== 200 || forged < 400) throw new Error(`${url} answers ${genuine}, and ${forged} when forged`)
}

async function deliver(url: string, signature: string): Promise<number> {
  const headers = {
    'content-type': 'application/json',
    'x-github-event': 'push',
    'x-github-delivery': `check-${signature}`,
    'x-hub-signature-256': signature,
  }
  const answer = await fetch(`${url}/webhook`, { method: 'POST', headers, body: PUSH })
  await answer.arrayBuffer()
  return answer.status
}
