import { createServer, type RequestListener } from 'node:http'

/** Serves on the port of 127.0.0.1 that the program was started with, until it is told to end. */
export function listenHere(listener: RequestListener): void {
  const server = createServer(listener).listen(Number(process.argv[2]), '127.0.0.1')
  process.once('SIGTERM', () => {
    server.close()
    server.closeAllConnections()
  })
}
