import { once } from 'node:events'
import { createServer } from 'node:net'
import { isAlive } from '../../instance/probe.js'
import { INSTANCE_KEY, parseRow } from '../../instance/row.js'
import { commandFor, type Facts } from './facts.js'
import { none, ok, wrong, type Verdict } from './finding.js'

/** Whether the profile's instance is reached, and is the one that wrote the row. */
export async function checkInstance({ instance, store, options }: Facts): Promise<Verdict> {
  if (instance) return ok(`process ${instance.pid} at ${instance.url} has proved itself`)
  const row = parseRow(await store?.get(INSTANCE_KEY))
  const start = commandFor(options, 'serve')
  if (!row) return none(`none runs: ${start}`)
  if (!isAlive(row.pid)) return none(`none runs, and the last one did not end properly: ${start}`)
  return wrong(`process ${row.pid} should be at ${row.url}, but nothing there proves to be it`, start)
}

/** Whether the port can be listened on, unless the instance has it. Listens for a moment, and answers nothing. */
export async function checkPort({ instance, host, port, options }: Facts): Promise<Verdict> {
  if (instance) return ok(`${new URL(instance.url).port} is the instance's`)
  if (port === 0) return none('any free one is taken')
  const server = createServer((socket) => socket.destroy())
  try {
    server.listen(port, host)
    await once(server, 'listening')
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'it is refused'
    if (code === 'EADDRINUSE')
      return wrong(`${port} is in use by another program`, commandFor(options, `serve --port ${port + 1}`))
    if (code === 'EACCES') return wrong(`${port} may not be used`, commandFor(options, 'serve --port 8787'))
    return wrong(`${host} cannot be listened on (${code})`, commandFor(options, 'serve --host 127.0.0.1'))
  }
  server.close()
  await once(server, 'close')
  return ok(`${port} is free`)
}
