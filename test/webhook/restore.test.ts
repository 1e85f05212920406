import { describe, expect, it } from 'vitest'
import type { Header } from '../../src/journal/delivery.js'
import { indexHeaders } from '../../src/webhook/headers.js'
import { members } from '../../src/webhook/members.js'
import { candidates, MOST_CANDIDATES, type Restored, restore } from '../../src/webhook/restore.js'
import { sign } from '../../src/webhook/signature.js'
import { GITEA, GITHUB, SECRET, SECRETS } from '../helpers/delivery.js'

/** What smee's server leaves of a body: it parses the JSON, and writes the message from the value. */
function throughSmee(body: string): string | undefined {
  const event = JSON.stringify({ 'x-github-event': 'push', body: JSON.parse(body) as unknown, timestamp: 1 })
  return members(event).get('body')
}

function signedLines(signed: string, type = 'application/json'): ReadonlyMap<string, readonly string[]> {
  const headers: Header[] = [
    ['content-type', type],
    ['x-hub-signature-256', sign(SECRET, Buffer.from(signed))],
  ]
  return indexHeaders(headers)
}

const shown = (restored: Restored | undefined): unknown =>
  restored && { body: Buffer.from(restored.body).toString(), how: restored.how }

/** As Gitea, and Go's json.MarshalIndent, write it. */
const gitea = (...lines: string[]): string => `{\n  ${lines.join(',\n  ')}\n}`

describe('restore, of what smee leaves', () => {
  it.each([
    ['compact JSON', '{"a":[1,-2.5,true,null,{}],"b":"x"}', 'compact'],
    ['an emoji', '{"a":"😀é"}', 'compact'],
    ['HTML', '{"a":"<b> & co"}', 'compact'],
    ['U+2028', '{"a":"\u2028"}', 'compact'],
    ['short escapes', String.raw`{"a":"\b\f\n\r\t\"\\"}`, 'compact'],
    ['control characters, as JavaScript', String.raw`{"a":"\u001b[1m"}`, 'compact'],
    ['control characters, as GitHub', String.raw`{"a":"\u001B[1m"}`, 'compact-upper'],
    ['control characters, and an escape that is text', String.raw`{"a":"\u001B \\u001b"}`, 'compact-upper'],
    ['a newline at the end', '{"a":1}\n', 'compact-newline'],
    ['an emoji, as Gitea', gitea('"a": "😀é"', '"b": {}', '"c": []'), 'indented-go'],
    ['HTML, as Gitea', gitea(String.raw`"a": "\u003cb\u003e \u0026 co"`), 'indented-go'],
    ['U+2028, as Gitea', gitea(String.raw`"a": "\u2028\u2029"`), 'indented-go'],
    ['control characters, as Gitea', gitea(String.raw`"a": "\u001b\u0008\u000c\n"`), 'indented-go-long'],
    ['what is not UTF-8, as Gitea', gitea(String.raw`"a": "\ufffd\u0008"`), 'indented-go-replaced'],
    ['U+FFFD, as Gitea', gitea('"a": "\ufffd"'), 'indented-go'],
    ['two-space indentation', gitea('"a": "<"'), 'indented'],
    ['two-space indentation and a newline', `${gitea('"a": "<"')}\n`, 'indented-newline'],
    ["Go's escapes", String.raw`{"a":"\u003c"}`, 'compact-go'],
    ['escaped slashes', String.raw`{"a":"http:\/\/x\/"}`, 'compact-php'],
    ['escaped slashes and an emoji', String.raw`{"a":"\/\ud83d\ude00"}`, 'compact-php'],
    ['ASCII', String.raw`{"a":"\u00e9\ud83d\ude00"}`, 'compact-ascii'],
    ['ASCII, as Python', String.raw`{"a": "\u00e9\u007f", "b": [1, 2]}`, 'spaced-ascii'],
    ['an integer of 53 bits', '{"a":9007199254740991}', 'compact'],
    ['integer-like keys in order', '{"1":1,"2":2,"x":3}', 'compact'],
    ['a string', '"x"', 'compact'],
  ])('restores %s', (_, body, how) => {
    const remains = { json: throughSmee(body) }
    expect(shown(restore(remains, signedLines(body), { secrets: SECRETS, scheme: GITHUB.webhook }))).toEqual({
      body,
      how,
    })
  })

  it.each([
    ['an integer above 2^53', '{"a":12345678901234567890}'],
    ['an integer above 2^53, as Gitea', gitea('"a": 9007199254740993')],
    ['1.0', '{"a":1.0}'],
    ['1e3', '{"a":1e3}'],
    ['-0', '{"a":-0}'],
    ['integer-like keys out of order', '{"x":1,"2":2,"1":3}'],
    ['a repeated key', '{"a":1,"a":2}'],
    ['slashes of which some are escaped', String.raw`{"a":"/\/"}`],
    ['another indentation', '{\n    "a": 1\n}'],
    ['another line end', '{\r\n  "a": 1\r\n}'],
    ['two newlines at the end', '{"a":1}\n\n'],
  ])('refuses %s', (_, body) => {
    const remains = { json: throughSmee(body) }
    expect(restore(remains, signedLines(body), { secrets: SECRETS, scheme: GITEA.webhook })).toBeUndefined()
  })
})

describe('the candidates', () => {
  const odd = JSON.stringify({ a: '<\b\u001b\ufffd/\u007fé *~', '"': [] })
  const bodies = (json: string, form: boolean): unknown[] =>
    [...candidates({ json }, form)].map(([, body]) => body)

  it.each([false, true])('are few, and no two are the same (form: %s)', (form) => {
    const all = bodies(odd, form)
    expect(new Set(all).size).toBe(all.length)
    expect(all.length).toBeLessThanOrEqual(MOST_CANDIDATES)
    expect(bodies(JSON.stringify(odd), form).length).toBeLessThanOrEqual(MOST_CANDIDATES)
  })

  it('are fewer where encodings do not differ', () => {
    expect(bodies('{"a":[1,"x"]}', false)).toEqual([
      '{"a":[1,"x"]}',
      '{"a":[1,"x"]}\n',
      '{\n  "a": [\n    1,\n    "x"\n  ]\n}',
      '{\n  "a": [\n    1,\n    "x"\n  ]\n}\n',
      '{"a": [1, "x"]}',
      '{"a": [1, "x"]}\n',
    ])
  })
})
