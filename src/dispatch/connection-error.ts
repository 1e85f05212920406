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
}

/** Why a request was not answered, in the same words for the same reason, so that repetitions can be counted. */
export function describeConnectionError(error: unknown): string {
  const { code, message, cause }: { code?: unknown; message?: unknown; cause?: unknown } = Object(error)
  if (typeof code === 'string' && WORDS[code]) return WORDS[code]
  if (cause instanceof Error) return describeConnectionError(cause)
  if (typeof message === 'string' && message !== '') return message
  return typeof code === 'string' ? code : 'connection failed'
}
