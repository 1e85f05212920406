// The limit for a durable server: verifies, parses, and appends each batch of deliveries to a file with one flush.
import { open } from 'node:fs/promises'
import path from 'node:path'
import { receive } from './receive.js'

const file = await open(path.join(process.env['RELAY_HOME'] ?? '', 'deliveries'), 'a')
let waiting: { readonly body: Buffer; readonly stored: () => void }[] = []
let isFlushing = false

receive(
  (body) =>
    new Promise((stored) => {
      waiting.push({ body, stored })
      if (!isFlushing) setImmediate(() => void flush())
      isFlushing = true
    }),
)

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
