// Measures the testing kit of a build, given as its folder, in a process of its own. Prints the figures as JSON.
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { createRequire } from 'node:module'
import path from 'node:path'

const [, , build = '.', times = '20'] = process.argv
const COUNT = Number(times)

const timed = async (work) => {
  const begun = performance.now()
  const result = await work()
  return [performance.now() - begun, result]
}
const median = (values) => values.toSorted((one, other) => one - other)[Math.floor(values.length / 2)]
/** Anonymous memory in MB, without what can be freed. */
const memory = () => {
  global.gc?.()
  const [, kB] = /RssAnon:\s+(\d+)/.exec(readFileSync('/proc/self/status', 'utf8')) ?? []
  return Number(kB) / 1000
}

const app = createServer((_, res) => res.end()).listen(0, '127.0.0.1')
await once(app, 'listening')
const forward = [`http://127.0.0.1:${app.address().port}/`]
const require = createRequire(import.meta.url)
const [load, { fixtureOf, startRelay }] = await timed(() =>
  require(path.resolve(build, 'dist/bin/testing.cjs')),
)
const end = (relay) => relay[Symbol.asyncDispose]()

const [first, warm] = await timed(() => startRelay({ forward }))
await warm.deliver(fixtureOf('push'))
const delivered = []
for (let i = 0; i < 5 * COUNT; i++) delivered.push((await timed(() => warm.deliver(fixtureOf('push'))))[0])
await end(warm)

const [started, ended] = [[], []]
for (let i = 0; i < COUNT; i++) {
  const [ms, relay] = await timed(() => startRelay({ forward }))
  await relay.deliver(fixtureOf('push'))
  started.push(ms)
  ended.push((await timed(() => end(relay)))[0])
}

const before = memory()
const all = []
for (let i = 0; i < COUNT; i++) {
  const relay = await startRelay({ forward })
  await relay.deliver(fixtureOf('push'))
  all.push(relay)
}
const held = (memory() - before) / COUNT
for (const relay of all) await end(relay)
app.close()
app.closeAllConnections()
process.stdout.write(
  JSON.stringify({
    'loading the kit, ms': load,
    'the first start, ms': first,
    'each further start, ms': median(started),
    'a delivery, ms': median(delivered),
    'disposal, ms': median(ended),
    'memory of each relay, MB': held,
  }),
)
