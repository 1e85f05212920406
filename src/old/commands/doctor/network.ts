import { once } from 'node:events'
import { createServer } from 'node:net'
import type { Cancellable } from '../../../base/abort.js'
import { errorReason } from '../../../base/errno.js'
import { DEFAULTS } from '../../../base/settings.js'
import { findRunning, registered } from '../../../instance/running.js'
import type { OptionValues } from '../../settings/options.js'
import { type CheckContext, commandFor } from './context.js'
import { type CheckResult, fail, ok, skip } from './result.js'

/** Whether the profile's instance answers, and proves to be the one in its record. */
export async function checkInstance({ instance, options }: CheckContext): Promise<CheckResult> {
  if (instance) return ok(`process ${instance.pid} at ${instance.url} has proved itself`)
  const record = registered(options.home, options.profile)
  const start = commandFor(options, 'serve')
  if (!record) return skip(`not running; start it with ${start}`)
  return fail(`process ${record.pid} does not prove itself at ${record.url}`, start)
}

/** Whether relay can listen on the port, unless the instance does. Listens for a moment, and answers nothing. */
export async function checkPort(
  { instance, options }: CheckContext,
  { signal }: Cancellable,
): Promise<CheckResult> {
  if (instance) return ok(`the instance listens on ${new URL(instance.url).port}`)
  const { host, port } = options
  if (port === 0) return skip('any free port')
  const code = await tryPort(host, port)
  if (code === undefined) return ok(`${port} is free`)
  if (code === 'EADDRINUSE')
    return fail(
      `${port} is in use by ${await userOfPort(options, { signal })}`,
      commandFor(options, `serve --port ${await freePort(host, port)}`),
    )
  if (code === 'EACCES')
    return fail(
      `${port} is not permitted`,
      commandFor(options, `serve --port ${await freePort(host, DEFAULTS.port - 1)}`),
    )
  return fail(
    `relay cannot listen on ${host} (${code})`,
    commandFor(options, `serve --host ${DEFAULTS.host}`),
  )
}

/** How many ports after one in use are tried. */
const TRIED_PORTS = 20
const MAX_PORT = 65_535

/** The first of the next ports that is free; 0, for any, when none is. */
async function freePort(host: string, after: number): Promise<number> {
  for (let port = after + 1; port <= Math.min(after + TRIED_PORTS, MAX_PORT); port++)
    if ((await tryPort(host, port)) === undefined) return port
  return 0
}

/** Listens on the port for a moment, and answers nothing. Returns the code of the error if that fails. */
async function tryPort(host: string, port: number): Promise<string | undefined> {
  const server = createServer((socket) => socket.destroy())
  try {
    server.listen(port, host)
    await once(server, 'listening')
  } catch (error) {
    return errorReason(error)
  }
  server.close()
  await once(server, 'close')
  return undefined
}

/** What listens on the port, as far as relay can find out. */
async function userOfPort({ home, port }: OptionValues, options: Cancellable): Promise<string> {
  const running = await findRunning(home, options)
  const relay = running.find(({ url }) => new URL(url).port === String(port))
  return relay
    ? `relay itself: process ${relay.pid} serves profile ${relay.profile} there`
    : 'another program'
}
