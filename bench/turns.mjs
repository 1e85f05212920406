// Loaded into `relay serve` by `--import`: how long the longest turn of its event loop takes, in milliseconds of processor time, so
// that other load on the machine does not count. The first request begins to measure, the next one answers and ends it, and so on.
import { createServer } from 'node:http'

let isMeasuring = false
let longest = 0
let last = process.cpuUsage()

function turn() {
  const { user, system } = process.cpuUsage(last)
  longest = Math.max(longest, (user + system) / 1000)
  last = process.cpuUsage()
  if (isMeasuring) setImmediate(turn)
}

if (process.argv.includes('serve'))
  createServer((_, response) => {
    response.end(String(longest))
    isMeasuring = !isMeasuring
    setImmediate(() => {
      longest = 0
      last = process.cpuUsage()
      turn()
    })
  })
    .listen(Number(process.env['TURNS_PORT']), '127.0.0.1')
    .unref()
