// Arguments: a channel, the largest body in bytes, and the webhook secret. Listens to the channel. For each refusal and each
// delivery, prints the longest turn of the event loop so far, and the maximum memory since the last line.
import type { Log } from '../../../src/base/log.js'
import { Secret } from '../../../src/base/secret.js'
import { createProvider } from '../../../src/providers/open.js'
import { openDatabase } from '../../../src/store/open.js'
import { createRefusals } from '../../../src/webhook/refusals.js'
import { openTunnel } from '../../../src/tunnel/tunnel.js'
import { watchTurns } from '../../helpers/turns.js'
import { say } from '../../store/programs/talk.js'

const [, , address = '', maxBody = '', secret = ''] = process.argv
const turns = watchTurns()
let maxMemory = 0
setInterval(() => (maxMemory = Math.max(maxMemory, process.memoryUsage.rss())), 5)

function report(line: string): void {
  say({ line, longestTurn: turns.longest(), maxMemory })
  maxMemory = 0
}

const log: Log = { debug: () => {}, info: () => {}, warn: report, error: report }
const { store } = await openDatabase({ kind: 'memory', folder: '' })
const provider = createProvider({ name: 'github', url: 'https://github.com' })
const parts = { secrets: { current: new Secret(secret) }, maxBody: Number(maxBody), log }
openTunnel({
  address,
  intake: {
    receive: ({ body }) => {
      report(`a delivery of ${body.byteLength} bytes`)
      return Promise.resolve({ n: 1, duplicate: false, targets: [] })
    },
  },
  refusals: createRefusals({ ...parts, scheme: provider.webhook }),
  provider,
  store,
  ...parts,
  onStatus: ({ state, roundTrip }) => {
    if (state === 'connected' && roundTrip === null) report(state)
  },
})
