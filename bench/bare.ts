// What ingest is compared with: node:http, HMAC and JSON.parse, and nothing stored. Prints its address.
import { createHmac, timingSafeEqual } from 'node:crypto'
import { createServer } from 'node:http'

const secret = process.env['RELAY_WEBHOOK_SECRET'] ?? ''

const server = createServer((request, response) => {
  const chunks: Buffer[] = []
  request.on('data', (chunk: Buffer) => chunks.push(chunk))
  request.on('end', () => {
    const body = Buffer.concat(chunks)
    const expected = Buffer.from(`sha256=${createHmac('sha256', secret).update(body).digest('hex')}`)
    const given = Buffer.from(String(request.headers['x-hub-signature-256']))
    const ok = given.length === expected.length && timingSafeEqual(given, expected)
    JSON.parse(body.toString())
    response.writeHead(ok ? 200 : 401, { 'content-type': 'application/json' }).end(`{"ok":${ok}}`)
  })
})

server.listen(0, '127.0.0.1', () => {
  const address = server.address()
  const port = typeof address === 'object' ? address?.port : undefined
  process.stdout.write(`${JSON.stringify({ type: 'listening', url: `http://127.0.0.1:${port}` })}\n`)
})
