// Receives deliveries at /webhook, and reports when they arrived: in milliseconds of a clock that all processes share.
//   /reset           counts from nothing again
//   /hold            the same, but answers none until /release, which returns its time
//   /held?count=n    waits until n wait for their answer
//   /received?count=n    waits until n have arrived: when the last one arrived, and their median latency
//                        on their way, for those whose id begins with the instant at which they were sent
import { EventEmitter, once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { median } from '../rig/statistics.js'
import { now } from './clock.js'
import { listenHere } from './listen.js'

let holding = false
const held: ServerResponse[] = []
const arrivals: number[] = []
const latencies: number[] = []
const taken = new EventEmitter()

const controls: Readonly<Record<string, (count: number) => Promise<object> | object>> = {
  '/reset': () => reset(false),
  '/hold': () => reset(true),
  '/release': release,
  async '/held'(count) {
    while (held.length < count) await once(taken, 'delivery')
    return {}
  },
  async '/received'(count) {
    while (arrivals.length < count) await once(taken, 'delivery')
    return { at: arrivals[count - 1], p50: median(latencies) }
  },
}

listenHere((request, response) => {
  request.resume()
  request.once('end', () => {
    if (request.url === '/webhook') take(request, response)
    else void control(request.url, response)
  })
})

function take({ headers }: IncomingMessage, response: ServerResponse): void {
  const at = now()
  arrivals.push(at)
  latencies.push(at - Number.parseFloat(String(headers['x-github-delivery'])))
  if (holding) held.push(response)
  else response.end()
  taken.emit('delivery')
}

async function control(url: string | undefined, response: ServerResponse): Promise<void> {
  const { pathname, searchParams } = new URL(url ?? '', 'http://target')
  response.end(JSON.stringify(await controls[pathname]?.(Number(searchParams.get('count')))))
}

function reset(hold: boolean): object {
  holding = hold
  arrivals.length = 0
  latencies.length = 0
  return {}
}

function release(): object {
  holding = false
  const at = now()
  for (const response of held.splice(0)) response.end()
  return { at }
}
