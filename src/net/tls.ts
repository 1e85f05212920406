import type { ClientRequest } from 'node:http'
import type { DetailedPeerCertificate, PeerCertificate } from 'node:tls'
import { errorCode, isError } from '../base/errors.js'
import { printable } from '../base/text.js'
import { NetFailure } from './failure.js'

/**
 * Error for a failed TLS connection, or for a server that perhaps expects TLS. The message says why and what to do, and
 * quotes no library.
 */
export class TlsError extends NetFailure {
  override readonly name = 'TlsError'
  /** Error code of Node. */
  readonly code: string
  /** True if the server cannot have read any part of the request. */
  readonly isUnreached: boolean

  constructor(message: string, { cause, isUnreached = false }: { cause: Error; isUnreached?: boolean }) {
    super(message, { cause })
    this.code = errorCode(cause) ?? ''
    this.isUnreached = isUnreached
  }
}

/** Information about a server whose TLS failed. */
interface Peer {
  /** Host in the requested address. */
  readonly host?: string
  /** File of additional trusted certificates. */
  readonly authorities?: string | undefined
  /** The server's certificate and its signers, as far as they were sent or are trusted. */
  readonly chain?: readonly PeerCertificate[]
}

/**
 * Watches the TLS connection of a request. Returns a function that converts a TLS error to a {@link TlsError}, and
 * returns any other error unchanged. The certificate is recorded while connecting, because Node's error does not have
 * it and the connection is closed by then.
 * @param authorities the file of NODE_EXTRA_CA_CERTS
 */
export function watchTls(
  request: ClientRequest,
  { protocol, hostname }: URL,
  authorities: string | undefined,
): (error: Error) => Error {
  if (protocol !== 'https:')
    return (error) => (isHungUp(request, error) ? new TlsError(WANTS_TLS, { cause: error }) : error)
  const { TLSSocket } = process.getBuiltinModule('node:tls')
  let chain: readonly PeerCertificate[] | undefined
  let [isBegun, isSecure] = [false, false]
  request.once('socket', (socket) => {
    isBegun = true
    isSecure = request.reusedSocket
    if (isSecure || !(socket instanceof TLSSocket)) return
    // Node emits `secure` before it checks the certificate, and its own listener closes the connection. The event is
    // undocumented (lib/_tls_wrap.js); without it, the message names no certificate.
    socket.prependOnceListener('secure', () => {
      isSecure = true
      chain = chainOf(socket.getPeerCertificate(true))
    })
  })
  return (error) => {
    const words = describeTls(error, {
      host: hostname.replace(/^\[|\]$/g, ''),
      authorities,
      ...(chain && { chain }),
    })
    if (words !== undefined) {
      const isRefused = CERTIFICATE_WANTED.has(alertOf(error) ?? 0)
      return new TlsError(words, { cause: error, isUnreached: !isSecure || isInvalid(error) || isRefused })
    }
    const isClosed = isBegun && !isSecure && errorCode(error) === 'ECONNRESET'
    return isClosed ? new TlsError(CLOSED, { cause: error, isUnreached: true }) : error
  }
}

const CLOSED =
  'connection closed before an answer, while TLS was set up: set http:// in the address if the server expects plain HTTP, or check the port'
const WANTS_TLS = 'connection closed before an answer: set https:// in the address if the server expects TLS'
const NO_TLS =
  'its answer is not TLS: set http:// in the address if the server expects plain HTTP, or check the port'
const NO_COMMON =
  'it has no TLS version or cipher in common with relay, which needs TLS 1.2, or it wants a certificate of its client, which relay does not have'
const TOO_OLD = 'it speaks only a version of TLS before 1.2, which relay does not use: update that server'
const CERTIFICATE =
  'it wants a certificate of its client, which relay does not have: use an address that asks for none'

/** True if the server closed a new connection without sending a byte, as most servers that expect TLS do. */
function isHungUp({ socket, reusedSocket }: ClientRequest, error: Error): boolean {
  const isEnded = socket?.readableEnded === true && socket.bytesRead === 0
  return errorCode(error) === 'ECONNRESET' && !reusedSocket && isEnded
}

/** TLS alerts that ask for a client certificate, or reject it (RFC 8446 section 6.2). */
const CERTIFICATE_WANTED: ReadonlySet<number> = new Set([41, 42, 43, 44, 45, 46, 48, 49, 116])

/** Explains why TLS failed, from the error of Node or OpenSSL, without quoting it. Undefined for any other error. */
export function describeTls(error: unknown, peer: Peer = {}): string | undefined {
  const code = errorCode(error) ?? ''
  if (isInvalid(error)) return describeCertificate(code, peer)
  if (!/^(?:EPROTO$|ERR_O?SSL_)/.test(code)) return undefined
  const alert = alertOf(error)
  const host = peer.host ?? 'this host'
  if (alert !== undefined) {
    if (CERTIFICATE_WANTED.has(alert)) return CERTIFICATE
    return ALERTS[alert]?.(host) ?? `it ended the TLS handshake (alert ${alert})`
  }
  const reason = reasonOf(error)
  if (NOT_TLS.test(reason)) return NO_TLS
  if (/unsupported protocol|version too low/.test(reason)) return TOO_OLD
  if (/too small|too weak|insecure|unsafe|disabled|legacy/.test(reason))
    return `its TLS is weaker than relay allows (${reason}): update that server`
  return `no TLS connection${reason && ` (${reason})`}: check that the address is https and the port right`
}

/** Explanations of a server's TLS alerts, for the requested host. */
const ALERTS: Readonly<Record<number, (host: string) => string>> = {
  40: () => NO_COMMON,
  70: () => TOO_OLD,
  71: () => NO_COMMON,
  80: (host) => `it failed while TLS was set up: does it serve the name ${host}?`,
  112: (host) => `it does not serve the name ${host}: check the address`,
  120: () => 'it does not speak HTTP/1.1 over TLS',
}

/** OpenSSL's reasons for bytes of another protocol. */
const NOT_TLS =
  /wrong version number|packet length too long|record layer failure|unknown protocol|http request/

/** Number of the alert that the server sent. OpenSSL's wording has been the same since 1.0. */
function alertOf(error: unknown): number | undefined {
  const [, number] = /SSL alert number (\d+)/.exec(messageOf(error)) ?? []
  return number === undefined ? undefined : Number(number)
}

/** OpenSSL's reason, from `80DC…:error:0A00010B:SSL routines:function:reason:file:line:` or from Node's code. */
function reasonOf(error: unknown): string {
  const [, reason] = /error:[\dA-F]+:[^:]*:[^:]*:([^:]*):/i.exec(messageOf(error)) ?? []
  const words = reason ?? (errorCode(error) ?? '').replace(/^ERR_O?SSL_|^EPROTO$/, '')
  return words
    .toLowerCase()
    .replaceAll(/[^a-z\d]+/g, ' ')
    .trim()
}

function messageOf(error: unknown): string {
  return isError(error) ? error.message : ''
}

/**
 * Error codes for an invalid certificate: X509_V_ERR_… of OpenSSL (nodejs.org/api/tls.html, "X509 certificate error
 * codes").
 */
const INVALID =
  /^(?!ERR_O?SSL_)(?:(?:.+_)?(?:CERT|CRL)(?:_.+)?|UNABLE_TO_.+|INVALID_(?:CA|PURPOSE)|PATH_LENGTH_EXCEEDED|HOSTNAME_MISMATCH|UNSPECIFIED)$/

function isInvalid(error: unknown): boolean {
  return INVALID.test(errorCode(error) ?? '')
}

/** Error codes for a certificate of an untrusted signer. */
const UNKNOWN =
  /^(?:DEPTH_ZERO_SELF_SIGNED_CERT|SELF_SIGNED_CERT_IN_CHAIN|UNABLE_TO_GET_ISSUER_CERT(?:_LOCALLY)?|UNABLE_TO_VERIFY_LEAF_SIGNATURE|CERT_UNTRUSTED)$/

function describeCertificate(code: string, peer: Peer): string {
  const { host, chain = [] } = peer
  const [own] = chain
  if (UNKNOWN.test(code)) return describeUnknown(code, peer)
  const now = Date.now()
  if (code === 'CERT_HAS_EXPIRED') {
    const expired = chain.find(({ valid_to: end }) => Date.parse(end) < now)
    const since = expired ? `: ${which(expired, own)} was valid until ${dateOf(expired.valid_to)}` : ''
    return `its certificate has expired${since}; renew it on that server, or set this machine's clock right`
  }
  if (code === 'CERT_NOT_YET_VALID') {
    const early = chain.find(({ valid_from: start }) => Date.parse(start) > now)
    const from = early ? `: ${which(early, own)} is valid from ${dateOf(early.valid_from)}` : ''
    return `its certificate is not valid yet${from}: is this machine's clock right?`
  }
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID' || code === 'HOSTNAME_MISMATCH') {
    const names = own ? namesOf(own) : []
    const has = names.length > 0 ? `it is for ${listOf(names)}` : 'it names none'
    return own
      ? `its certificate is for another host: ${has}, not for ${host}; use such a name in the address`
      : 'its certificate is for another host'
  }
  const reason = code.toLowerCase().replaceAll('_', ' ')
  return `its certificate${own ? ` ${signed(own)}` : ''} is not valid (${reason})`
}

function describeUnknown(code: string, { chain = [], authorities }: Peer): string {
  const [own] = chain
  const last = chain.at(-1)
  const whose = own ? `: ${signed(own)}` : ''
  const signer = last ? quoted(last.issuer) : 'your company'
  const wanted = own && isSelfSigned(own) ? 'that certificate' : `the certificate of ${signer}`
  const set = authorities
    ? `put ${wanted} into ${printable(authorities)}, which NODE_EXTRA_CA_CERTS names`
    : `set NODE_EXTRA_CA_CERTS to a file with ${wanted}`
  const sent = code === 'UNABLE_TO_VERIFY_LEAF_SIGNATURE' ? ', unless that server ought to send it' : ''
  return `its certificate is from an unknown authority${whose}; ${set}, and start relay again${sent}`
}

/** Formats a certificate: `"server.test" (signed by "Company CA")`. */
function signed(certificate: PeerCertificate): string {
  const name = quoted(certificate.subject, namesOf(certificate)[0])
  return `${name} (signed by ${isSelfSigned(certificate) ? 'itself' : quoted(certificate.issuer)})`
}

/** Formats a certificate of the chain, with its role. */
function which(certificate: PeerCertificate, own: PeerCertificate | undefined): string {
  return certificate === own ? signed(certificate) : `${quoted(certificate.subject)}, which signed it,`
}

function isSelfSigned({ subject, issuer }: PeerCertificate): boolean {
  return JSON.stringify(subject) === JSON.stringify(issuer)
}

/** Formats a name such as `"Company CA"`: the common name, else the organization, as for public authorities. */
function quoted(
  { CN: name, O: organization, OU: unit }: Partial<PeerCertificate['subject']>,
  other?: string,
): string {
  const [given] = [name, other, organization, unit].flatMap(
    (each: string | string[] | undefined) => each ?? [],
  )
  return given === undefined ? 'a certificate without a name' : `"${clean(given)}"`
}

/** Host names in a certificate. */
function namesOf({ subjectaltname: names = '', subject }: PeerCertificate): string[] {
  const listed = names.split(', ').flatMap((name) => /^(?:DNS|IP Address):"?(.+?)"?$/.exec(name)?.[1] ?? [])
  const common = [subject.CN].flat().flatMap((name: string | undefined) => name ?? [])
  return (listed.length > 0 ? listed : common).map(clean)
}

/** Most host names in a message. Public certificates have up to a hundred. */
const MAX_NAMES = 5

function listOf(names: readonly string[]): string {
  const more = names.length - MAX_NAMES
  return names.slice(0, MAX_NAMES).join(', ') + (more > 0 ? ` and ${more} more` : '')
}

/** Longest name in characters, which is that of a host name. */
const MAX_NAME = 253

/** Limits and escapes a name that a server gives itself. */
function clean(name: string): string {
  return printable(name.slice(0, MAX_NAME))
}

/** Formats a date: `2026-11-20 12:00 UTC`. */
function dateOf(text: string): string {
  return `${new Date(text).toISOString().slice(0, 16).replace('T', ' ')} UTC`
}

/** Most certificates of a chain that are examined. A server may send any number. */
const MAX_CHAIN = 10

function chainOf(own: DetailedPeerCertificate): readonly PeerCertificate[] {
  const chain: PeerCertificate[] = []
  let next: DetailedPeerCertificate | undefined = own
  // A self-signed certificate is its own issuer.
  while (next?.subject && !chain.includes(next) && chain.length < MAX_CHAIN) {
    chain.push(next)
    next = next.issuerCertificate
  }
  return chain
}
