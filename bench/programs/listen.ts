import { createServer, type RequestListener } from 'node:http'

/** Serves on 127.0.0.1, on the port that the program was started with, until a signal ends it. */
export function listenHere(listener: RequestListener): void {
  const server = createServer(listener).listen(Number(process.argv[2]), '127.0.0.1')
  process.once('SIGTERM', () => {
    server.close()
    server.closeAllConnections()
  })
}
