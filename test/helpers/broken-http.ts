import { requestText } from './http.js'

/** A request that is not HTTP, or not enough of it, and the error it is answered with. */
export interface BrokenRequest {
  readonly name: string
  readonly request: string
  readonly status: number
  readonly error: string
}

/** What the HTTP parser refuses, sent to a path that takes a POST. */
export function refusedByParser(path: string): BrokenRequest[] {
  const get = `GET ${path} HTTP/1.1\r\nHost: localhost\r\n`
  const post = (headers: Record<string, string>, body = ''): string =>
    requestText('POST', path, headers, body)
  const bad = {
    'a header line without a colon': `${get}broken line\r\n\r\n`,
    'a header name with a space': `${get}a b: c\r\n\r\n`,
    'no HTTP at all': 'hello there\r\n\r\n',
    'an unknown version': `GET ${path} HTTP/9.9\r\nHost: localhost\r\n\r\n`,
    'a length that is no number': post({ 'Content-Length': 'x' }),
    'two different lengths': `POST ${path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab`,
    'a length and a transfer encoding': post(
      { 'Transfer-Encoding': 'chunked', 'Content-Length': '3' },
      '0\r\n\r\n',
    ),
    'a chunk size that is no number': `${post({ 'Transfer-Encoding': 'chunked' })}zz\r\nab\r\n0\r\n\r\n`,
    CONNECT: 'CONNECT example.org:443 HTTP/1.1\r\nHost: localhost\r\n\r\n',
  }
  const long = {
    'a header block over 16 KiB': post({ 'X-Long': 'a'.repeat(16_384) }),
    'a header block of 4 MiB': post({ 'X-Long': 'a'.repeat(4_194_304) }),
  }
  return [...all(bad, 400, 'Bad request'), ...all(long, 431, 'Request header fields too large')]
}

/** What the parser lets through, and the Host check does not. */
export function refusedForHost(path: string): BrokenRequest[] {
  const of = (host: string | null): string => requestText('POST', path, { Host: host })
  const bad = {
    'no Host': of(null),
    'no Host, HTTP/1.0': `POST ${path} HTTP/1.0\r\n\r\n`,
    'an empty Host': of(''),
    'Host twice': `POST ${path} HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n`,
    'Host twice, one foreign': `POST ${path} HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n`,
    'a Host that is none': of('user@localhost'),
  }
  const foreign = {
    'a foreign Host': of('evil.example'),
    'an absolute address, foreign Host': requestText('POST', `http://localhost${path}`, {
      Host: 'evil.example',
    }),
  }
  return [...all(bad, 400, 'Bad request'), ...all(foreign, 403, 'Forbidden host')]
}

/** What ends in the middle, and is then silent for too long. */
export function silent(path: string): BrokenRequest[] {
  const halves = {
    'half a header block': `POST ${path} HTTP/1.1\r\nHost: loc`,
    'half a body': requestText('POST', path, { 'Content-Length': '10' }, 'half'),
    'half a chunk': `${requestText('POST', path, { 'Transfer-Encoding': 'chunked' })}a\r\nhalf`,
  }
  return all(halves, 408, 'Request timeout')
}

function all(requests: Record<string, string>, status: number, error: string): BrokenRequest[] {
  return Object.entries(requests).map(([name, request]) => ({ name, request, status, error }))
}
