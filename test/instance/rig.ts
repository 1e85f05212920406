import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders, type RequestListener } from 'node:http'
import { isAlive, isProven, type ProbeOptions } from '../../src/instance/probe.js'
import { INSTANCE_KEY, type InstanceRecord, parseInstanceRecord } from '../../src/instance/record.js'
import type { Json, Store } from '../../src/store/contract.js'
import { openDatabase } from '../../src/store/open.js'

export interface Request {
  readonly line: string
  readonly headers: IncomingHttpHeaders
}

export interface Served extends AsyncDisposable {
  readonly url: string
  readonly requests: Request[]
}

/** A real server on any free port of this machine, which records its requests. */
export async function serve(listener: RequestListener): Promise<Served> {
  const requests: Request[] = []
  const server = createServer((request, response) => {
    requests.push({ line: `${request.method} ${request.url}`, headers: request.headers })
    listener(request, response)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  const port = typeof address === 'object' && address ? address.port : 0
  return {
    url: `http://127.0.0.1:${port}`,
    requests,
    async [Symbol.asyncDispose]() {
      server.close()
      server.closeAllConnections()
      await once(server, 'close')
    },
  }
}

/** Answers the health check as an instance does. */
export function answer(prove: (challenge: string) => string): RequestListener {
  return (request, response) => {
    response.setHeader('X-Relay-Instance', prove(String(request.headers['x-relay-challenge'])))
    response.end('{"status":"ok"}')
  }
}

export interface Profile extends AsyncDisposable {
  readonly store: Store
}

/** A profile with this instance record. */
export async function profile(record?: Json): Promise<Profile> {
  const database = await openDatabase({ kind: 'memory', folder: '' })
  if (record !== undefined) await database.store.put('instance', record)
  return { store: database.store, [Symbol.asyncDispose]: () => database[Symbol.asyncDispose]() }
}

/** The id of a process that has ended. */
export function deadPid(): number {
  return spawnSync(process.execPath, ['-e', '']).pid
}

/** The instance that the store names, once it has proved itself. */
export async function findInstance(
  store: Store,
  options: ProbeOptions = {},
): Promise<InstanceRecord | undefined> {
  const record = parseInstanceRecord(await store.get(INSTANCE_KEY))
  return record && isAlive(record.pid) && (await isProven(record, options)) ? record : undefined
}
