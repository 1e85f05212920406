// What the loop of a coding agent costs: a handler that answers 500, is mended, and answers 200.
import { createServer } from 'node:http'
import { once } from 'node:events'
import { codingAgent } from '../test/kit/mcp.js'
import { tokensOf } from '../test/kit/tokens.js'
import { portOf } from '../test/kit/ports.js'
import { load } from './load.js'
import { type Benchmark, type Figures, HERE, measure, Relay } from './rig.js'

const ROUNDS = 10
const ENTRIES = 20
const EVENT = 'pull_request.opened'

export const agent: Benchmark = {
  about: `
The loop of a coding agent over \`relay mcp\`, with a client that is not relay's: read the state, make up a delivery (${EVENT}), read the 500 with
its stack trace, read one part of the payload where the answer has none, mend the handler, send the delivery again, read the 200. Tokens
are those of o200k_base, of the text of each result; a client shows its model the list of tools once. ${ENTRIES} deliveries in the list. ${ROUNDS} rounds.
Of this relay alone: with an earlier one, the mended handler may get nothing for a minute, since the 500 asks for that.`,

  async run({ rounds }, scope) {
    let isMended = false
    const handler = createServer((request, response) => {
      request.resume().once('end', () => {
        response.writeHead(isMended ? 200 : 500, isMended ? {} : { 'Retry-After': '60' })
        response.end(isMended ? 'ok' : TRACE)
      })
    })
    await once(handler.listen(0, '127.0.0.1'), 'listening')
    scope.defer(() => void handler.close())
    const target = `pull_request=http://127.0.0.1:${portOf(handler)}/hook`
    const relay = await new Relay(scope, HERE).serve('--forward', target)
    await load(relay.url, { count: ENTRIES })
    const { env, home: cwd, program } = relay
    const sides = { relay: scope.use(await codingAgent({ env, cwd, program })), earlier: undefined }
    return measure(rounds(ROUNDS), sides, async (each): Promise<Figures> => {
      isMended = false
      const began = performance.now()
      const results = [await each.call('relay_state'), await each.call('trigger_delivery', { event: EVENT })]
      const [tools, list] = [await each.client.listTools(), await each.call('list_deliveries')]
      isMended = true
      const mended = performance.now()
      results.push(await each.call('replay_delivery', { entry: 'last' }))
      const end = performance.now()
      if (!JSON.stringify(results.at(-1)).includes('succeeded')) throw new Error('the replay did not succeed')
      return {
        'the loop, ms': end - began,
        'from the mended handler to its 200, ms': end - mended,
        'the loop, tokens': results.reduce((sum, result) => sum + tokensOf(result), 0),
        'the list of tools, tokens': tokensOf(tools),
        [`a list of ${ENTRIES} deliveries, tokens`]: tokensOf(list),
      }
    })
  },
}

const TRACE = `TypeError: Cannot read properties of undefined (reading 'login')
${'    at handle (/home/octo/app/server.js:12:34)\n'.repeat(20)}`
