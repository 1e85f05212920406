// Delivers to a command and an address where no file can be opened any more, and again where that is over, and writes the
// results as JSON.
import { closeSync, openSync } from 'node:fs'
import { createServer } from 'node:http'
import { once } from 'node:events'
import { setImmediate } from 'node:timers/promises'
import { openCommandTarget } from '../../../src/dispatch/command-target.js'
import { openHttpTarget } from '../../../src/dispatch/http-target.js'
import type { OpenTarget } from '../../../src/dispatch/target.js'
import { portOf } from '../../helpers/scripted-server.js'
import { entryOf } from '../entry.js'

const env = { PATH: process.env['PATH'] }
const server = createServer((_, response) => response.end()).listen(0, '127.0.0.1')
await once(server, 'listening')
await using command = openCommandTarget('true', { env, limit: 10_000, grace: 1000 })
await using address = openHttpTarget(`http://127.0.0.1:${portOf(server)}`, { clock: Date.now, limit: 10_000 })
// Its modules are read when it is opened.
await import('undici')

const held: number[] = []
try {
  for (;;) held.push(openSync('/dev/null', 'r'))
} catch {
  // None is left.
}
const without = [await outcomeOf(command), await outcomeOf(address)]
for (const descriptor of held) closeSync(descriptor)
const within = [await outcomeOf(command), await outcomeOf(address)]
server.close()
process.stdout.write(JSON.stringify({ without, within }))

async function outcomeOf(target: OpenTarget): Promise<unknown> {
  const { outcome, error } = await target.deliver(entryOf(), 1, { signal: new AbortController().signal })
  // An error of a turn later would end this process.
  await setImmediate()
  return { outcome, error }
}
