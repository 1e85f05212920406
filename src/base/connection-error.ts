const UNKNOWN_SIGNER =
  "its certificate is signed by one this machine does not know: NODE_EXTRA_CA_CERTS names a file with your company's"
const NO_TLS = 'it does not speak TLS as it should: is the address https, and the port right?'

/** What people call the usual reasons; the others are told by their own message. */
const WORDS: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'connection refused',
  ECONNRESET: 'connection closed before an answer',
  EPIPE: 'connection closed before an answer',
  UND_ERR_SOCKET: 'connection closed before an answer',
  ENOTFOUND: 'host not found',
  EAI_AGAIN: 'host could not be looked up',
  EHOSTUNREACH: 'host unreachable',
  ENETUNREACH: 'network unreachable',
  UND_ERR_CONNECT_TIMEOUT: 'connecting took too long',
  CERT_HAS_EXPIRED: 'its certificate has expired',
  CERT_NOT_YET_VALID: "its certificate is not valid yet: is this machine's clock right?",
  ERR_TLS_CERT_ALTNAME_INVALID: 'its certificate is for another host',
  DEPTH_ZERO_SELF_SIGNED_CERT: UNKNOWN_SIGNER,
  SELF_SIGNED_CERT_IN_CHAIN: UNKNOWN_SIGNER,
  UNABLE_TO_GET_ISSUER_CERT: UNKNOWN_SIGNER,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: UNKNOWN_SIGNER,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: UNKNOWN_SIGNER,
  EPROTO: NO_TLS,
  ERR_SSL_WRONG_VERSION_NUMBER: NO_TLS,
  ERR_SSL_PACKET_LENGTH_TOO_LONG: NO_TLS,
}

/** Why a request was not answered, in the same words for the same reason, so that repetitions can be counted. */
export function describeConnectionError(error: unknown): string {
  const { name, code, message, cause }: Partial<Record<'name' | 'code' | 'message' | 'cause', unknown>> =
    Object(error)
  if (name === 'TimeoutError') return 'no answer in time'
  if (typeof code === 'string' && WORDS[code]) return WORDS[code]
  const [, proxied] = /^Proxy response \((\d+)\)/.exec(String(message)) ?? []
  if (proxied !== undefined) return `the proxy answers ${proxied}`
  if (cause instanceof Error) return describeConnectionError(cause)
  if (typeof message === 'string' && message !== '') return message
  return typeof code === 'string' ? code : 'connection failed'
}
