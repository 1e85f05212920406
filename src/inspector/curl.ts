import { isUtf8 } from 'node:buffer'
import { shellWord } from '../base/text.js'
import { type Header, isSendable, endToEndHeaders } from '../http/headers.js'
import type { Entry } from '../journal/types.js'

/**
 * A command for a POSIX shell that posts the delivery's exact bytes and headers to an address with curl. Nothing of the payload or
 * of a header is read by the shell or by curl: text is quoted, other bytes are written as octal escapes. The body comes from
 * standard input, because the system limits the length of an argument (128 KiB on Linux).
 */
export function curlCommand({ headers, body }: Pick<Entry, 'headers' | 'body'>, url: string): string {
  const lines = [
    // Without -g, curl reads brackets and braces in an address as a list of addresses.
    `curl -sSg -X POST ${shellWord(url)}`,
    ...endToEndHeaders(headers)
      // A name with another character could be a file's name to curl.
      .filter(isSendable)
      .map((header) => `-H ${headerArgument(header)}`),
    '--data-binary @-',
  ]
  return `${bodyCommand(body)} |\n  ${lines.join(' \\\n  ')}\n`
}

/** Writes the body to standard output. `printf` is part of the shell, and no limit applies to it. */
function bodyCommand(body: Uint8Array): string {
  const bytes = Buffer.from(body)
  const isText = isUtf8(bytes) && !bytes.includes(0)
  return isText ? `printf %s ${shellWord(bytes.toString())}` : `printf '${octal(bytes)}'`
}

/** curl takes a header without a value for an order to leave it out, unless a semicolon ends it. */
function headerArgument([name, value]: Header): string {
  if (value === '') return shellWord(`${name};`)
  const text = `${name}: ${value}`
  // Headers are latin1, the command is UTF-8.
  return /^[\t\x20-\x7e]*$/.test(text)
    ? shellWord(text)
    : `"$(printf '${octal(Buffer.from(text, 'latin1'))}')"`
}

function octal(bytes: Buffer): string {
  return Array.from(bytes, (byte) => `\\${byte.toString(8).padStart(3, '0')}`).join('')
}
