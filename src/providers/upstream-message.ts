import { z } from 'zod'

/** Characters: one line of a terminal or two. */
const MAX_LENGTH = 300
const MAX_DETAILS = 5

const text = z.string().catch('')
const detail = z.union([
  z.string(),
  z
    .object({ resource: text, field: text, code: text, message: text })
    .transform(({ resource, field, code, message }) =>
      [[resource, field].filter(Boolean).join('.'), message || code].filter(Boolean).join(': '),
    ),
])
const errorBody = z.object({
  message: text,
  errors: z.array(detail.catch('')).catch([]),
})

/**
 * The message of a code host's error answer, on one line of at most 300 characters; empty when it has none. `errors` may hold
 * objects or strings. The text comes from outside: control and formatting characters are removed, and so are `secrets`
 * in case the code host repeats them.
 */
export function upstreamMessage(json: unknown, secrets: readonly string[]): string {
  const { success, data } = errorBody.safeParse(json)
  if (!success) return ''
  const details = data.errors.filter(Boolean).slice(0, MAX_DETAILS).join(', ')
  const whole = data.message && details ? `${data.message} (${details})` : data.message || details
  return cut(secrets.reduce((line, secret) => line.replaceAll(secret, '[secret]'), plain(whole)))
}

function plain(text: string): string {
  return text
    .replaceAll(/[\s\p{Zl}\p{Zp}]+/gu, ' ')
    .replaceAll(/[\p{Cc}\p{Cf}\p{Cs}]/gu, '')
    .trim()
}

function cut(line: string): string {
  // The cut may fall between the two halves of a character.
  return line.length > MAX_LENGTH ? `${line.slice(0, MAX_LENGTH - 1).replace(/\p{Cs}$/u, '')}…` : line
}
