// Imported into a program under test: SIGUSR2 has a socket fail that no part of the program listens to, the next one is a
// defect.
import { Socket } from 'node:net'

const failSocket = () =>
  new Socket().destroy(Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET', syscall: 'read' }))
const fail = () => {
  throw new TypeError('a secret detail')
}
process.once('SIGUSR2', () => {
  process.once('SIGUSR2', () => setImmediate(fail))
  failSocket()
})
process.on('newListener', (event) => {
  if (event === 'uncaughtException') process.stderr.write('listens for uncaught exceptions\n')
})
