import { Writable } from 'node:stream'
import pgpass from 'pgpass'
import type { SharedStore } from '../../base/shared-store.js'
import { PostgresFailure } from './error.js'

/** Servers listen on a socket in one of these folders by default: upstream, and Debian. libpq looks their passwords up as `localhost`. */
const DEFAULT_SOCKETS: ReadonlySet<string> = new Set(['/tmp', '/var/run/postgresql'])

/**
 * The password that was given, else the one in `~/.pgpass`; looked up for each connection that the server asks one of.
 * @throws PostgresFailure where there is none, and for a file that other users can read, which libpq ignores too (PostgreSQL 15, 34.16).
 */
export async function passwordOf({ host, port, user, database, secrets }: SharedStore): Promise<string> {
  if (secrets.password) return secrets.password.reveal()
  pgpass.warnTo(warnings)
  const server = DEFAULT_SOCKETS.has(host) ? 'localhost' : host
  const found = await new Promise<string | undefined>((resolve) => {
    pgpass({ host: server, port, user, database }, resolve)
  })
  if (found) return found
  throw new PostgresFailure(refused ? 'open-password-file' : 'password')
}

/** The package warns of a file that it does not use, on stderr unless it is given a stream. */
let refused = false
const warnings = new Writable({
  write(_chunk, _encoding, done) {
    refused = true
    done()
  },
})
