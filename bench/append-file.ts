// What the disk allows: a server that verifies and parses deliveries and appends them to a file, with one
// flush for all that came meanwhile. Its arguments are port and file.
import { createHmac, timingSafeEqual } from 'node:crypto'
import { open } from 'node:fs/promises'
import { createServer, type IncomingHttpHeaders } from 'node:http'

const [, , port, name = ''] = process.argv
const secret = process.env['RELAY_WEBHOOK_SECRET'] ?? ''
const file = await open(name, 'a')
let waiting: { readonly body: Buffer; readonly stored: () => void }[] = []
let isFlushing = false

createServer((request, response) => {
  const chunks: Buffer[] = []
  request.on('data', (chunk: Buffer) => chunks.push(chunk))
  request.on('end', () => {
    const body = Buffer.concat(chunks)
    const answer = (status: number) => response.writeHead(status, { 'content-length': 0 }).end()
    if (isGenuine(body, request.headers)) waiting.push({ body, stored: () => answer(200) })
    else answer(401)
    if (!isFlushing) setImmediate(() => void flush())
    isFlushing = true
  })
}).listen(Number(port), '127.0.0.1')

function isGenuine(body: Buffer, headers: IncomingHttpHeaders): boolean {
  const expected = Buffer.from(`sha256=${createHmac('sha256', secret).update(body).digest('hex')}`)
  const given = Buffer.from(String(headers['x-hub-signature-256']))
  if (given.length !== expected.length || !timingSafeEqual(given, expected)) return false
  JSON.parse(body.toString())
  return true
}

async function flush(): Promise<void> {
  while (waiting.length > 0) {
    const batch = waiting
    waiting = []
    await file.appendFile(Buffer.concat(batch.map(({ body }) => body)))
    await file.datasync()
    for (const { stored } of batch) stored()
  }
  isFlushing = false
}
