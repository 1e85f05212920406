import { describe, expect, it } from 'vitest'
import type { Header } from '../../src/http/headers.js'
import { jsonOf } from '../../src/journal/payload.js'

const FORM = Buffer.from('payload=%7B%22a%22%3A1%7D')

function json(headers: readonly Header[], body = FORM): string | undefined {
  const bytes = jsonOf({ headers, body })
  return bytes && Buffer.from(bytes).toString()
}

describe('jsonOf', () => {
  it('decodes a form, and takes every other body as it is', () => {
    expect([
      json([['content-type', 'application/x-www-form-urlencoded']]),
      json([['Content-Type', 'Application/X-WWW-Form-URLencoded; charset=utf-8']]),
      json([['Content-Type', 'application/x-www-form-urlencoded']], Buffer.from('a=1')),
      json([['Content-Type', 'application/json']]),
      json([]),
    ]).toEqual(['{"a":1}', '{"a":1}', undefined, String(FORM), String(FORM)])
  })
})
