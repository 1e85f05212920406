import { once } from 'node:events'
import { createServer } from 'node:net'
import { errorCode } from '../../../base/errno.js'
import { DEFAULTS } from '../../../base/settings.js'
import { isAlive } from '../../../instance/probe.js'
import { INSTANCE_KEY, parseInstanceRecord } from '../../../instance/record.js'
import { type CheckContext, commandFor } from './context.js'
import { type CheckResult, fail, ok, skip } from './result.js'

/** Whether the profile's instance answers, and proves to be the one in its record. */
export async function checkInstance({ instance, store, options }: CheckContext): Promise<CheckResult> {
  if (instance) return ok(`process ${instance.pid} at ${instance.url} has proved itself`)
  const record = parseInstanceRecord(await store?.get(INSTANCE_KEY))
  const start = commandFor(options, 'serve')
  if (!record) return skip(`not running; start it with ${start}`)
  if (!isAlive(record.pid))
    return skip(`not running, and the last one did not shut down; start it with ${start}`)
  return fail(`process ${record.pid} does not prove itself at ${record.url}`, start)
}

/** Whether relay can listen on the port, unless the instance does. Listens for a moment, and answers nothing. */
export async function checkPort({ instance, options }: CheckContext): Promise<CheckResult> {
  if (instance) return ok(`the instance listens on ${new URL(instance.url).port}`)
  const { host, port } = options
  if (port === 0) return skip('any free port')
  const server = createServer((socket) => socket.destroy())
  try {
    server.listen(port, host)
    await once(server, 'listening')
  } catch (error) {
    const code = errorCode(error) ?? 'unknown reason'
    if (code === 'EADDRINUSE')
      return fail(`${port} is in use by another program`, commandFor(options, `serve --port ${port + 1}`))
    if (code === 'EACCES')
      return fail(`${port} is not permitted`, commandFor(options, `serve --port ${DEFAULTS.port}`))
    return fail(
      `relay cannot listen on ${host} (${code})`,
      commandFor(options, `serve --host ${DEFAULTS.host}`),
    )
  }
  server.close()
  await once(server, 'close')
  return ok(`${port} is free`)
}
