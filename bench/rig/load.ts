import { randomUUID } from 'node:crypto'
import { signatureOf } from './push.js'
import { drive, type Rate } from './wrk.js'

export interface Load {
  readonly url: string
  readonly body: Uint8Array
  readonly seconds: number
}

/** Posts signed deliveries with unique ids for so long. @throws Error when any was not answered with 2xx. */
export async function post({ url, body, seconds }: Load): Promise<Rate> {
  const head = [
    'POST /webhook HTTP/1.1',
    `Host: ${new URL(url).host}`,
    'User-Agent: GitHub-Hookshot/bench',
    'Accept: */*',
    'Content-Type: application/json',
    `Content-Length: ${body.length}`,
    'X-GitHub-Event: push',
    `X-Hub-Signature-256: ${signatureOf(body)}`,
    `X-GitHub-Delivery: ${randomUUID()}-`,
  ].join('\r\n')
  const request = [head, Buffer.concat([Buffer.from('\r\n\r\n'), body])] as const
  const rate = await drive({ url, request, seconds })
  if (rate.refused > 0) throw new Error(`${url} refused ${rate.refused} of ${rate.requests} deliveries`)
  return rate
}
