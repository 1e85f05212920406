// What ingest is compared with: node:http, HMAC and JSON.parse, and nothing stored.
import { createHmac, timingSafeEqual } from 'node:crypto'
import { listenHere } from './listen.js'

const secret = process.env['RELAY_WEBHOOK_SECRET'] ?? ''

listenHere((request, response) => {
  const chunks: Buffer[] = []
  request.on('data', (chunk: Buffer) => chunks.push(chunk))
  request.on('end', () => {
    const status = judge(Buffer.concat(chunks), String(request.headers['x-hub-signature-256']))
    const answer = `{"ok":${status === 200}}`
    // With its length: Node would send it in chunks otherwise, which takes longer.
    const headers = { 'content-type': 'application/json', 'content-length': answer.length }
    response.writeHead(status, headers).end(answer)
  })
})

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
