import { createHmac } from 'node:crypto'
import { Pool } from 'undici'

export interface Load {
  readonly url: string
  readonly secret: string
  readonly body: Buffer
  readonly requests: number
  readonly connections: number
}

/** Deliveries answered per second, and the 99th percentile of their latency in milliseconds. */
export interface Rate {
  readonly perSecond: number
  readonly p99: number
}

let sent = 0

/** Posts signed deliveries with unique ids. @throws Error at the first answer that is not 200. */
export async function post({ url, secret, body, requests, connections }: Load): Promise<Rate> {
  const signature = `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`
  await using pool = new ClosingPool(url, { connections, pipelining: 1 })
  const latencies: number[] = []
  let left = requests
  const started = performance.now()
  async function worker(): Promise<void> {
    while (left-- > 0) {
      const begun = performance.now()
      const answer = await pool.request({
        method: 'POST',
        path: '/webhook',
        headers: {
          'content-type': 'application/json',
          'x-github-event': 'push',
          'x-github-delivery': `bench-${process.pid}-${sent++}`,
          'x-hub-signature-256': signature,
        },
        body,
      })
      await answer.body.dump()
      if (answer.statusCode !== 200) throw new Error(`answered ${answer.statusCode}`)
      latencies.push(performance.now() - begun)
    }
  }
  await Promise.all(Array.from({ length: connections }, worker))
  const seconds = (performance.now() - started) / 1000
  latencies.sort((a, b) => a - b)
  return { perSecond: requests / seconds, p99: latencies[Math.floor(latencies.length * 0.99)] ?? 0 }
}

class ClosingPool extends Pool implements AsyncDisposable {
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }
}
