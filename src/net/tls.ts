import type { ClientRequest } from 'node:http'
import type { DetailedPeerCertificate, PeerCertificate } from 'node:tls'
import { errorCode } from '../base/errors.js'
import { printable } from '../base/text.js'
import { NetFailure } from './failure.js'

/** TLS could not be set up with a server, or is perhaps missing. The message says why, and what to do, in words of its own. */
export class TlsError extends NetFailure {
  override readonly name = 'TlsError'
  /** Node's code. */
  readonly code: string
  /** Whether no part of a request can have been read. */
  readonly isUnreached: boolean

  constructor(message: string, { cause, isUnreached = false }: { cause: Error; isUnreached?: boolean }) {
    super(message, { cause })
    this.code = errorCode(cause) ?? ''
    this.isUnreached = isUnreached
  }
}

/** What is known of a server whose TLS failed. */
interface Peer {
  /** The host of the address, as it is asked for. */
  readonly host?: string
  /** A file with certificates that are trusted besides Node's. */
  readonly authorities?: string | undefined
  /** Its certificate, and those that signed it, as far as they were sent or are trusted. */
  readonly chain?: readonly PeerCertificate[]
}

/**
 * Watches the connection of a request to an https address. Gives a function that puts a {@link TlsError} in the place of an error of TLS, and
 * returns any other. `authorities`: the file of NODE_EXTRA_CA_CERTS. Node's error does not have the certificate, and the connection is closed when it comes.
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
    // Node emits it before it checks the certificate, and its own listener closes the connection. The event is not documented, only read in
    // Node's lib/_tls_wrap.js: without it, the words name no certificate.
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

/** Whether the server ended a new connection without a byte, as most do that expect TLS. */
function isHungUp({ socket, reusedSocket }: ClientRequest, error: Error): boolean {
  const isEnded = socket?.readableEnded === true && socket.bytesRead === 0
  return errorCode(error) === 'ECONNRESET' && !reusedSocket && isEnded
}

/** TLS alerts by which a server says that it misses a certificate, or does not take it (RFC 8446 section 6.2). */
const CERTIFICATE_WANTED: ReadonlySet<number> = new Set([41, 42, 43, 44, 45, 46, 48, 49, 116])

/** Why TLS failed, by the error of Node or OpenSSL; undefined for an error of something else. Quotes neither. */
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

/** What servers say in an alert, for the host that was asked for. */
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

/** The number of an alert that the server sent, which OpenSSL names in the same words since 1.0. */
function alertOf(error: unknown): number | undefined {
  const [, number] = /SSL alert number (\d+)/.exec(messageOf(error)) ?? []
  return number === undefined ? undefined : Number(number)
}

/** OpenSSL's reason: the last but two parts of `80DC…:error:0A00010B:SSL routines:function:reason:file:line:`, or in Node's code. */
function reasonOf(error: unknown): string {
  const [, reason] = /error:[\dA-F]+:[^:]*:[^:]*:([^:]*):/i.exec(messageOf(error)) ?? []
  const words = reason ?? (errorCode(error) ?? '').replace(/^ERR_O?SSL_|^EPROTO$/, '')
  return words
    .toLowerCase()
    .replaceAll(/[^a-z\d]+/g, ' ')
    .trim()
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : ''
}

/** Codes of a certificate that is not valid, which are X509_V_ERR_… of OpenSSL (nodejs.org/api/tls.html, "X509 certificate error codes"). */
const INVALID =
  /^(?!ERR_O?SSL_)(?:(?:.+_)?(?:CERT|CRL)(?:_.+)?|UNABLE_TO_.+|INVALID_(?:CA|PURPOSE)|PATH_LENGTH_EXCEEDED|HOSTNAME_MISMATCH|UNSPECIFIED)$/

function isInvalid(error: unknown): boolean {
  return INVALID.test(errorCode(error) ?? '')
}

/** Codes of a certificate whose signer is not trusted. */
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

/** `"server.test" (signed by "Company CA")` */
function signed(certificate: PeerCertificate): string {
  const name = quoted(certificate.subject, namesOf(certificate)[0])
  return `${name} (signed by ${isSelfSigned(certificate) ? 'itself' : quoted(certificate.issuer)})`
}

/** A certificate of a chain whose first one is the server's own. */
function which(certificate: PeerCertificate, own: PeerCertificate | undefined): string {
  return certificate === own ? signed(certificate) : `${quoted(certificate.subject)}, which signed it,`
}

function isSelfSigned({ subject, issuer }: PeerCertificate): boolean {
  return JSON.stringify(subject) === JSON.stringify(issuer)
}

/** `"Company CA"`: the common name, else the organization, which certificates of public authorities have. */
function quoted(
  { CN: name, O: organization, OU: unit }: Partial<PeerCertificate['subject']>,
  other?: string,
): string {
  const [given] = [name, other, organization, unit].flatMap(
    (each: string | string[] | undefined) => each ?? [],
  )
  return given === undefined ? 'a certificate without a name' : `"${clean(given)}"`
}

/** The hosts for which a certificate is. */
function namesOf({ subjectaltname: names = '', subject }: PeerCertificate): string[] {
  const listed = names.split(', ').flatMap((name) => /^(?:DNS|IP Address):"?(.+?)"?$/.exec(name)?.[1] ?? [])
  const common = [subject.CN].flat().flatMap((name: string | undefined) => name ?? [])
  return (listed.length > 0 ? listed : common).map(clean)
}

/** Names of a certificate that a message lists: public ones have up to a hundred. */
const MAX_NAMES = 5

function listOf(names: readonly string[]): string {
  const more = names.length - MAX_NAMES
  return names.slice(0, MAX_NAMES).join(', ') + (more > 0 ? ` and ${more} more` : '')
}

/** Characters of a name: as many as a host's can have. */
const MAX_NAME = 253

/** A name that a server gives itself. */
function clean(name: string): string {
  return printable(name.slice(0, MAX_NAME))
}

/** `2026-11-20 12:00 UTC` */
function dateOf(text: string): string {
  return `${new Date(text).toISOString().slice(0, 16).replace('T', ' ')} UTC`
}

/** Certificates of a chain that are looked at: a server may send any number. */
const MAX_CHAIN = 10

function chainOf(own: DetailedPeerCertificate): readonly PeerCertificate[] {
  const chain: PeerCertificate[] = []
  let next: DetailedPeerCertificate | undefined = own
  // The last one, which signed itself, names itself.
  while (next?.subject && !chain.includes(next) && chain.length < MAX_CHAIN) {
    chain.push(next)
    next = next.issuerCertificate
  }
  return chain
}
