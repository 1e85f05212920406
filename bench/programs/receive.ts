import { createHmac, timingSafeEqual } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { listenHere } from './listen.js'

const secret = process.env['RELAY_WEBHOOK_SECRET'] ?? ''

/** A webhook server on node:http that verifies and parses each delivery, has it stored, and answers. */
export function receive(store: (body: Buffer) => Promise<void> | void): void {
  listenHere((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => void answer(Buffer.concat(chunks), request, response, store))
  })
}

async function answer(
  body: Buffer,
  { headers }: IncomingMessage,
  response: ServerResponse,
  store: (body: Buffer) => Promise<void> | void,
): Promise<void> {
  const status = judge(body, String(headers['x-hub-signature-256']))
  if (status === 200) await store(body)
  const text = `{"ok":${status === 200}}`
  // With its length: Node would send it in chunks otherwise, which takes longer.
  response.writeHead(status, { 'content-type': 'application/json', 'content-length': text.length }).end(text)
}

function judge(body: Buffer, signature: string): number {
  const expected = Buffer.from(`sha256=${createHmac('sha256', secret).update(body).digest('hex')}`)
  const given = Buffer.from(signature)
  if (given.length !== expected.length || !timingSafeEqual(given, expected)) return 401
  try {
    JSON.parse(body.toString())
    return 200
  } catch {
    return 400
  }
}
