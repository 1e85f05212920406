import { parseUrl } from './address.js'
import { RelayError } from './errors.js'
import type { Secret } from './secret.js'

/** The two URL schemes that PostgreSQL's own tools accept. */
const SCHEMES = ['postgres:', 'postgresql:']
const DEFAULT_PORT = 5432
/**
 * TLS modes with libpq's meaning (PostgreSQL 16, 34.19.1). `require` encrypts, but accepts any server unless
 * `sslrootcert` is given. `verify-ca` requires a certificate of that authority. `verify-full` also requires it to be
 * for that host.
 */
const SSL_MODES = ['disable', 'require', 'verify-ca', 'verify-full'] as const
export type SslMode = (typeof SSL_MODES)[number]

/** Address of a shared store as written in the settings. */
export type SharedAddress = `postgres://${string}` | `postgresql://${string}`

/** Encryption keys of a shared store's records, 32 bytes each. */
export interface TokenKeys {
  readonly current: Secret
  /** Previous key during a rotation. Records that it encrypted can still be read. */
  readonly previous?: Secret | undefined
}

export interface SharedStoreSecrets {
  readonly password?: Secret | undefined
  readonly keys?: TokenKeys | undefined
}

/** A PostgreSQL database that several relays share. As text or as JSON it is its address, without the password. */
export class SharedStore {
  readonly host: string
  readonly port: number
  readonly user: string
  readonly database: string
  readonly sslMode: SslMode
  /** File with the trusted certificates. Default: those that Node trusts. */
  readonly sslRootCert: string | undefined
  readonly secrets: SharedStoreSecrets
  readonly #address: SharedAddress

  /**
   * @param address `postgres://user@host[:port]/database`, with `sslmode` and `sslrootcert` as its only parameters
   * @throws RelayError `usage` that says what is wrong and repeats nothing of the address
   */
  constructor(address: string, secrets: SharedStoreSecrets = {}) {
    const { address: own, password } = splitPassword(address)
    const { hostname, port, username, pathname, searchParams } = new URL(own)
    const { sslmode, sslrootcert, ...others } = Object.fromEntries(searchParams)
    this.host = decodeURIComponent(hostname.replaceAll(/^\[|\]$/g, ''))
    this.port = port === '' ? DEFAULT_PORT : Number(port)
    this.user = decodeURIComponent(username)
    this.database = decodeURIComponent(pathname.slice(1))
    this.sslRootCert = sslrootcert
    if (password !== '') throw invalid('it must have no password')
    if (this.host === '') throw invalid('it has no host')
    if (this.user === '') throw invalid('it has no user')
    if (!/^[^/]+$/.test(this.database)) throw invalid('it has no database')
    if (Object.keys(others).length > 0) throw invalid('its only parameters are sslmode and sslrootcert')
    // By default, TLS is off for a database on this machine and fully verified for any other.
    const isLocal = /^(?:\/.*|localhost|127(?:\.\d{1,3}){3}|::1)$/.test(this.host)
    const mode = SSL_MODES.find((each) => each === (sslmode ?? (isLocal ? 'disable' : 'verify-full')))
    if (!mode) throw invalid(`sslmode must be one of ${SSL_MODES.join(', ')}`)
    // Any public authority signs certificates for anybody, so `verify-ca` with those would check nothing.
    if (mode === 'verify-ca' && sslrootcert === undefined)
      throw invalid('sslmode=verify-ca needs sslrootcert=FILE')
    this.sslMode = mode
    this.#address = own
    this.secrets = secrets
  }

  toString(): SharedAddress {
    return this.#address
  }

  toJSON(): string {
    return this.#address
  }
}

/** True if a setting looks like the address of a shared store. */
export function isSharedAddress(text: string): text is SharedAddress {
  return SCHEMES.some((scheme) => text.startsWith(`${scheme}//`))
}

/** Splits the password off an address. @throws RelayError `usage` that repeats nothing of it */
export function splitPassword(address: string): {
  readonly address: SharedAddress
  readonly password: string
} {
  const url = isSharedAddress(address) ? parseUrl(address) : undefined
  const password = decodeURIComponent(url?.password ?? '')
  if (url) url.password = ''
  if (!url || !isSharedAddress(url.href)) throw invalid('it cannot be read')
  return { address: url.href, password }
}

function invalid(why: string): RelayError {
  return new RelayError('usage', `must be like postgres://user@host/database: ${why}`)
}
