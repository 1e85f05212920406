import { execFile } from 'node:child_process'
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'
import { codeBlocks } from '../kit/code-blocks.js'
import { emptyFolder } from '../kit/folder.js'

const run = promisify(execFile)

/** Runs embed.ts of the documentation, and prints what it is and all that the process listens on. Loaded first, so that no listener is missed. */
const PROGRAM = `
import net from 'node:net'
const listening = []
const { listen } = net.Server.prototype
net.Server.prototype.listen = function (...args) {
  this.once('listening', () => listening.push(this.address()))
  return listen.apply(this, args)
}
const { embed } = await import('./embed.js')
const { silentLog } = await import('webhook-relay')
const [, , folder] = process.argv
const options = { folder, secret: 'a secret', log: silentLog, onDelivery() {} }
await using serving = await embed(options)
const { provider, providerUrl, oauthClient } = serving.settings
console.log(JSON.stringify({ provider, providerUrl, client: oauthClient?.id ?? null, url: serving.url, listening }))
`

it('embed.ts of the documentation is a relay for GitHub that listens on one port', async () => {
  const folder = emptyFolder()
  mkdirSync(path.join(folder, 'node_modules'))
  symlinkSync(path.resolve('.'), path.join(folder, 'node_modules/webhook-relay'))
  writeFileSync(path.join(folder, 'package.json'), '{"type":"module"}')
  writeFileSync(path.join(folder, 'embed.ts'), codeBlocks('docs/library.md').get('embed.ts') ?? '')
  writeFileSync(path.join(folder, 'program.ts'), PROGRAM)
  const argv = ['--import', import.meta.resolve('tsx'), 'program.ts', path.join(folder, 'data')]
  const { stdout } = await run(process.execPath, argv, { cwd: folder })
  const { url, listening, ...is } = JSON.parse(stdout)
  expect(is).toEqual({ provider: 'github', providerUrl: 'https://github.com', client: null })
  const { port } = new URL(url)
  expect(listening).toEqual([{ address: '127.0.0.1', family: 'IPv4', port: Number(port) }])
})
