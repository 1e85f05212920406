import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { temporaryFolder } from './folder.js'
import { type Server, startCommand } from './server.js'

/**
 * Debian's package `webhook` with a hook that checks the signature first and then wants a field that no push has: it
 * verifies and parses each delivery, runs no command, and stores nothing.
 */
export async function startDebianWebhook(secret: string): Promise<Server> {
  const folder = temporaryFolder()
  const hooks = path.join(folder.path, 'hooks.json')
  const header = { source: 'header', name: 'X-Hub-Signature-256' }
  const signed = { match: { type: 'payload-hmac-sha256', secret, parameter: header } }
  const never = { match: { type: 'value', value: 'wanted', parameter: { source: 'payload', name: 'ref' } } }
  const rule = { and: [signed, never] }
  writeFileSync(
    hooks,
    JSON.stringify([{ id: 'webhook', 'execute-command': '/bin/true', 'trigger-rule': rule }]),
  )
  const flags = ['-ip', '127.0.0.1', '-urlprefix', '', '-hooks', hooks]
  const server = await startCommand('webhook', (port) => [...flags, '-port', `${port}`])
  return {
    ...server,
    async [Symbol.asyncDispose]() {
      await server[Symbol.asyncDispose]()
      folder[Symbol.dispose]()
    },
  }
}
