// Arguments: the URL of an event stream, and one or more numbers of bytes. Reads the stream byte by byte, as from packets
// of one byte each. Prints the memory in use after each of these numbers of bytes.
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { sendOnce } from '../../../src/net/send-once.js'
import { openConnection } from '../../../src/tunnel/connection.js'
import { say } from '../../store/programs/talk.js'

const [, , url = '', ...marks] = process.argv
let bytes = 0

async function* counted(stream: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  for await (const chunk of stream) {
    for (const byte of chunk) {
      yield new Uint8Array([byte])
      if (++bytes !== Number(marks[0])) continue
      marks.shift()
      say(memoryInUse())
    }
  }
}

function memoryInUse(): number {
  setFlagsFromString('--expose-gc')
  runInNewContext('gc')()
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}

const { closed } = openConnection({
  url,
  lastEventId: undefined,
  sendOnce: async (address, request) => {
    const response = await sendOnce(address, request)
    return { ...response, body: counted(response.body) }
  },
  clock: Date.now,
  limits: { opening: 10_000, silence: 60_000, linger: 1000, tick: 1000, event: 52_428_800 },
  onEvent: () => undefined,
  onTooLarge: () => {},
  signal: new AbortController().signal,
})
await closed
