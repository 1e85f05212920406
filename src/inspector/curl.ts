import { isUtf8 } from 'node:buffer'
import { withRest } from '../base/address.js'
import { shellWord } from '../base/text.js'
import { type Header, isSendable, endToEndHeaders } from '../http/headers.js'
import type { Entry } from '../journal/types.js'

/**
 * Formats a POSIX shell command that posts a delivery's exact bytes and headers to an address with curl. Neither the
 * shell nor curl interprets any part of them: text is quoted, other bytes are octal escapes. The body is passed through
 * standard input, because the system limits the length of an argument (128 KiB on Linux).
 * @param isKept as of `endToEndHeaders`
 */
export function curlCommand(
  { headers, body, query }: Pick<Entry, 'headers' | 'body' | 'query'>,
  url: string,
  isKept?: (name: string) => boolean,
): string {
  const lines = [
    // -g is needed because curl otherwise expands brackets and braces in an address.
    `curl -sSg -X POST ${shellWord(query === undefined ? url : withRest(new URL(url), { query }).href)}`,
    ...endToEndHeaders(headers, isKept)
      // curl could read a name with other characters as a file name.
      .filter(isSendable)
      .map((header) => `-H ${headerArgument(header)}`),
    '--data-binary @-',
  ]
  return `${bodyCommand(body)} |\n  ${lines.join(' \\\n  ')}\n`
}

/**
 * Formats a command that writes the body to standard output. `printf` is part of the shell, so no argument limit
 * applies.
 */
function bodyCommand(body: Uint8Array): string {
  const bytes = Buffer.from(body)
  const isText = isUtf8(bytes) && !bytes.includes(0)
  return isText ? `printf %s ${shellWord(bytes.toString())}` : `printf '${octal(bytes)}'`
}

/** Formats an argument of `-H`. Without a value curl would remove the header, unless a semicolon ends it. */
function headerArgument([name, value]: Header): string {
  if (value === '') return shellWord(`${name};`)
  const text = `${name}: ${value}`
  // Non-ASCII text is written as bytes, since headers are Latin-1 and the command is UTF-8.
  return /^[\t\x20-\x7e]*$/.test(text)
    ? shellWord(text)
    : `"$(printf '${octal(Buffer.from(text, 'latin1'))}')"`
}

function octal(bytes: Buffer): string {
  return Array.from(bytes, (byte) => `\\${byte.toString(8).padStart(3, '0')}`).join('')
}
