// A process of its own, so that its memory and its event loop are not shared with the clients. Prints its port.
import { startEdge } from './edge.js'

const edge = await startEdge()
process.stdout.write(`${edge.port}\n`)
process.stdin.resume().on('end', () => void edge.close())
