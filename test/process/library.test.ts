import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { once } from 'node:events'
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

/** Embeds a relay in a program until its input ends. */
const EMBEDDING = `
import { DEFAULTS, mount, Secret } from 'webhook-relay'
const [, , folder] = process.argv
const relay = await mount({
  ...DEFAULTS,
  providerUrl: 'https://github.com',
  webhookSecrets: { current: new Secret('a secret') },
  folder,
  allowedHosts: [],
  routes: [],
})
console.log('mounted')
process.stdin.resume().on('end', () => relay[Symbol.asyncDispose]())
`

/** Makes the folder of a program that has relay. */
function programFolder(): string {
  const folder = emptyFolder()
  mkdirSync(path.join(folder, 'node_modules'))
  symlinkSync(path.resolve('.'), path.join(folder, 'node_modules/webhook-relay'))
  writeFileSync(path.join(folder, 'package.json'), '{"type":"module"}')
  return folder
}

it('a folder that another program serves is refused, in true words', async () => {
  const cwd = programFolder()
  const folder = path.join(cwd, 'data')
  writeFileSync(path.join(cwd, 'program.js'), EMBEDDING)
  const first = execFile(process.execPath, ['program.js', folder], { cwd })
  const ended = once(first, 'exit')
  assert(first.stdout && first.stdin)
  await once(first.stdout, 'data')
  const again = run(process.execPath, ['program.js', folder], { cwd })
  const message = `The folder ${folder} is already served by another process. Stop it, or choose another folder with the setting folder`
  await expect(again).rejects.toThrow(message)
  first.stdin.end()
  expect(await ended).toEqual([0, null])
})

it('embed.ts of the documentation is a relay for GitHub that listens on one port', async () => {
  const folder = programFolder()
  writeFileSync(path.join(folder, 'embed.ts'), codeBlocks('docs/library.md').get('embed.ts') ?? '')
  writeFileSync(path.join(folder, 'program.ts'), PROGRAM)
  const argv = ['--import', import.meta.resolve('tsx'), 'program.ts', path.join(folder, 'data')]
  const { stdout } = await run(process.execPath, argv, { cwd: folder })
  const { url, listening, ...is } = JSON.parse(stdout)
  expect(is).toEqual({ provider: 'github', providerUrl: 'https://github.com', client: null })
  const { port } = new URL(url)
  expect(listening).toEqual([{ address: '127.0.0.1', family: 'IPv4', port: Number(port) }])
})
