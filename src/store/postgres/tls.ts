import { readFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import type { ConnectionOptions } from 'node:tls'
import { errorCode } from '../../base/errno.js'
import { RelayError } from '../../base/errors.js'
import type { SharedStore } from '../../base/shared-store.js'
import { PostgresFailure, postgresError } from './error.js'

/** Asks whether the server offers TLS: its length, and the code of the request (PostgreSQL 15, 55.7, "SSLRequest"). */
const SSL_REQUEST = Buffer.from([0, 0, 0, 8, 4, 210, 22, 47])
const YES = 0x53

/**
 * How connections to the store are encrypted. With `prefer` the server is asked once, for as long as the store is open.
 * `limit` is for its answer, in milliseconds.
 * @throws RelayError `storage` when the server cannot be asked, or has no TLS where it must; `settings` when the file with the
 * certificates cannot be read.
 */
export async function tlsOf(
  store: SharedStore,
  limit: number,
  name: string,
): Promise<false | ConnectionOptions> {
  const { sslMode, host } = store
  if (sslMode === 'disable' || host.startsWith('/')) return false
  const ca = readAuthorities(store)
  try {
    if (await offersTls(store, limit)) return tlsOptions(store, ca)
  } catch (error) {
    throw postgresError(error, name)
  }
  if (sslMode !== 'prefer') throw postgresError(new PostgresFailure('no-tls'), name)
  return false
}

function tlsOptions({ sslMode }: SharedStore, ca: string | undefined): ConnectionOptions {
  if (sslMode === 'verify-full') return { rejectUnauthorized: true, ...(ca && { ca }) }
  if (ca === undefined || sslMode === 'prefer') return { rejectUnauthorized: false }
  return { rejectUnauthorized: true, ca, checkServerIdentity: () => undefined }
}

/** @throws RelayError `settings` */
function readAuthorities({ sslRootCert }: SharedStore): string | undefined {
  if (sslRootCert === undefined) return undefined
  try {
    return readFileSync(sslRootCert, 'utf8')
  } catch (cause) {
    const why = `The file of sslrootcert, ${sslRootCert}, cannot be read (${errorCode(cause)}). Check its name and its permissions`
    throw new RelayError('settings', why, { cause })
  }
}

async function offersTls({ host, port }: SharedStore, limit: number): Promise<boolean> {
  const socket = connect({ host, port })
  socket.setTimeout(limit, () => socket.destroy(new PostgresFailure('slow')))
  try {
    socket.write(SSL_REQUEST)
    return (await firstByte(socket)) === YES
  } finally {
    socket.destroy()
  }
}

/** Undefined when the server ends the connection. */
async function firstByte(socket: Socket): Promise<number | undefined> {
  for await (const chunk of socket) if (chunk instanceof Buffer) return chunk[0]
  return undefined
}
