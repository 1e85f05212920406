import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { anywhere } from '../../src/base/command-line.js'
import { fixtureBody } from '../../src/replay/fixture.js'
import type { BodyKind } from '../../src/senders/members.js'
import { editBody, lackingPaths, parseEdit } from '../../src/replay/edit.js'
import { commandWords, synthesize, triggerEvents } from '../../src/replay/synthesize.js'

const NOW = Date.parse('2026-11-20T10:00:00Z')

function payloadOf(provider: string, event: string): Buffer {
  return Buffer.from(fixtureBody(synthesize(provider, event, NOW, { words: commandWords(anywhere) })))
}

/** The payload's text after an edit. */
function edited(event: string, set: string, { provider = 'github', only = false } = {}): string {
  const body = payloadOf(provider, event)
  return Buffer.from(editBody(body, [parseEdit(set, { only })], { form: false, style: 'compact' })).toString()
}

describe('--set', () => {
  it('takes time in proportion to a text that is full of white space, which a stranger may have written', () => {
    const body = (size: number): Buffer => Buffer.from(`{"a":"${' '.repeat(size)}","number":1}\n\t `)
    for (const size of [3, 1_000_000])
      expect(
        Buffer.from(editBody(body(size), [parseEdit('number=7')], { form: false, style: 'compact' })),
      ).toEqual(Buffer.from(body(size).toString().replace('1}', '7}')))
  })

  it.each(['number=7', 'pull_request.number=7'])('%s renumbers a pull request everywhere', (set) => {
    const after = edited('pull_request.opened', set)
    const { number, pull_request: pull } = JSON.parse(after)
    expect([number, pull.number, pull.html_url, pull._links.comments.href]).toEqual([
      7,
      7,
      'https://github.com/octo/demo/pull/7',
      'https://api.github.com/repos/octo/demo/issues/7/comments',
    ])
    expect(after).not.toMatch(/\/(?:issues|pulls?)\/2\b/)
  })

  it('issue.number renumbers the issue and the addresses of its comment, in a payload of Gitea too', () => {
    expect(edited('issue_comment.created', 'issue.number=7')).not.toMatch(/\/issues\/1\b/)
    const after = edited('issue_comment.created', 'issue.number=7', { provider: 'gitea' })
    const { issue, comment } = JSON.parse(after)
    expect([issue.number, issue.html_url, comment.issue_url]).toEqual([
      7,
      'https://gitea.example.com/octo/demo/issues/7',
      'https://gitea.example.com/octo/demo/issues/7',
    ])
  })

  it.each(['repository.full_name=me/app', 'pull_request.base.repo.full_name=me/app'])(
    '%s names the repository so in every copy and address',
    (set) => {
      const after = edited('pull_request.opened', set)
      expect(after).not.toContain('octo/demo')
      const { repository, sender, pull_request: pull } = JSON.parse(after)
      const { name, owner, html_url: address, ssh_url: ssh } = repository
      expect([name, owner.login, owner.html_url, address, ssh, sender.login]).toEqual([
        'app',
        'me',
        'https://github.com/me',
        'https://github.com/me/app',
        'git@github.com:me/app.git',
        'Codertocat',
      ])
      expect([pull.head.repo.full_name, pull.base.repo.owner.login]).toEqual(['me/app', 'me'])
    },
  )

  it('after names the commit so wherever the old one was, also shortened', () => {
    const { after: old } = JSON.parse(payloadOf('github', 'push').toString())
    const after = edited('push', `after=${'b'.repeat(40)}`)
    expect(after).not.toContain(old.slice(0, 12))
    expect(JSON.parse(after).head_commit.id).toBe('b'.repeat(40))
  })

  it('sender.login changes the sender alone', () => {
    const { sender, repository } = JSON.parse(edited('push', 'sender.login=ada'))
    expect([sender.login, sender.html_url, repository.owner.login]).toEqual([
      'ada',
      'https://github.com/ada',
      'octo',
    ])
  })

  it.each(['action=reopened', 'issue.title=/issues/1', 'issue.state=closed', 'new.field=1'])(
    '%s changes nothing else',
    (set) => {
      const after = edited('issues.opened', set)
      expect(after).toBe(edited('issues.opened', set, { only: true }))
    },
  )

  it('leaves text that people wrote', () => {
    const text = 'see https://github.com/octo/demo/issues/1'
    const edits = [parseEdit(`comment.body=${text}`), parseEdit('issue.number=7')]
    const body = editBody(payloadOf('github', 'issue_comment.created'), edits, {
      form: false,
      style: 'compact',
    })
    expect(JSON.parse(Buffer.from(body).toString()).comment.body).toBe(text)
  })

  it('sets what it names, whatever follows from it', () => {
    const places = [
      'number',
      'repository.full_name',
      'repository.id',
      'sender.login',
      'after',
      'issue.number',
      'x.y',
    ]
    fc.assert(
      fc.property(
        fc.constantFrom(...triggerEvents('github')),
        fc.constantFrom(...places),
        fc.oneof(fc.integer({ min: 0 }), fc.stringMatching(/^[a-z]+\/[a-z]+$/)),
        (event, place, value) => {
          const after: unknown = JSON.parse(edited(event, `${place}=${value}`))
          const found = place.split('.').reduce<unknown>((inner, step) => Object(inner)[step], after)
          expect(found).toBe(value)
        },
      ),
      { numRuns: 200 },
    )
  })
})

const JSON_BODY: BodyKind = { form: false, style: 'compact' }

function editedText(body: string, set: string, kind = JSON_BODY): string {
  return Buffer.from(editBody(Buffer.from(body), [parseEdit(set)], kind)).toString()
}

describe('an edit', () => {
  it.each([
    ['a=1', ['a'], 1],
    ['a.b=x=y', ['a', 'b'], 'x=y'],
    ['a[0].b="1"', ['a', 0, 'b'], '1'],
    ['a=', ['a'], ''],
    ['a={"b":[null]}', ['a'], { b: [null] }],
  ])('%s is read', (text, path, value) => {
    expect(parseEdit(text)).toEqual({ path, value })
  })

  it.each(['', 'a', '=1', 'a..b=1', '.a=1', 'a[x]=1', 'a b=1', 'a[0=1'])('%j is none', (text) => {
    expect(() => parseEdit(text)).toThrow('--set: must be path=value')
  })
})

describe('an edited body', () => {
  it.each([
    ['{"a":1,"b":2}', 'a=3', '{"a":3,"b":2}'],
    ['{\n  "a": 1\n}\n', 'b.c=2', '{\n  "a": 1,\n  "b": {\n    "c": 2\n  }\n}\n'],
    ['[\n\t1\n]', '0=2', '[\n\t2\n]'],
    ['{"a":[1]}', 'a[1]=2', '{"a":[1,2]}'],
    ['{"a":null}', 'a=x', '{"a":"x"}'],
    ['{}', '__proto__.a=1', '{"__proto__":{"a":1}}'],
  ])('%j, %s', (body, set, wanted) => {
    expect(editedText(body, set)).toBe(wanted)
  })

  it('is a form where it was one', () => {
    const kind = { form: true, style: 'indented-go' } as const
    const body = editedText('payload=%7B%22a%22%3A1%7D&x=y', 'a=<&>', kind)
    expect([...new URLSearchParams(body)]).toEqual([
      ['payload', String.raw`{"a":"\u003c\u0026\u003e"}`],
      ['x', 'y'],
    ])
  })

  it.each([
    ['not JSON', 'a=1', 'Cannot set a field: the body is not JSON'],
    ['1', 'a=1', 'Cannot set a field: payload is neither an object nor a list'],
    ['{"a":[1]}', 'a[2]=1', 'Cannot set a field: a list of 1 has no place 2'],
    ['{"a":[1]}', 'a.b=1', 'Cannot set a field: a list of 1 has no place b'],
  ])('%j refuses %s', (body, set, message) => {
    expect(() => editedText(body, set)).toThrow(message)
  })
})

describe('a path that the payload lacks', () => {
  const body = payloadOf('github', 'issues.opened')
  const lacking = (set: string) => lackingPaths(body, [parseEdit(set)], { form: false })

  it.each([
    ['issue.numbr=7', 'issue.numbr', 'issue.number'],
    ['number=7', 'number', 'issue.number'],
    ['issue.user.name=x', 'issue.user.name', 'issue.user.type'],
    ['labels[0].name=x', 'labels[0].name', 'issue.labels[0].name'],
    ['$.isue.title=x', 'isue.title', 'issue.title'],
    ['qqq.zzz=1', 'qqq.zzz', undefined],
  ])('%s', (set, path, nearest) => {
    expect(lacking(set)).toEqual([{ path, nearest }])
  })

  it.each(['issue.number=7', '$.issue.number=7', 'payload.issue.number=7', 'action=x', `issue.labels[1]={}`])(
    'is not %s',
    (set) => expect(lacking(set)).toEqual([]),
  )

  it('begins with the payload itself, as jq and --where write it, and a member of that name comes first', () => {
    const kind = { form: false, style: 'compact' } as const
    const set = (json: string, edit: string) =>
      Buffer.from(editBody(Buffer.from(json), [parseEdit(edit)], kind)).toString()
    for (const path of ['a.b', '$.a.b', 'payload.a.b'])
      expect(set('{"a":{"b":1}}', `${path}=2`)).toBe('{"a":{"b":2}}')
    expect(set('{"payload":{"a":1}}', 'payload.a=2')).toBe('{"payload":{"a":2}}')
    expect(set('{"a":1}', 'payload=2')).toBe('{"a":1,"payload":2}')
  })
})

/** JSON in any layout and spelling, with one text that is found again, and the path to it. */
interface Written {
  readonly text: string
  readonly path: readonly (string | number)[]
}

const MARK = '"@@"'
const gap = fc.constantFrom('', '', ' ', '\n  ', '\t')
const scalar = fc.constantFrom(
  '1.0',
  '12345678901234567890',
  '1e5',
  String.raw`"\/\u00e9"`,
  'null',
  '"a b"',
  '-0',
)
const name = fc.constantFrom('a', 'b', '1', '2', 'number', 'naïve')
const around = (inner: fc.Arbitrary<Written>): fc.Arbitrary<Written> =>
  fc.oneof(
    fc
      .tuple(inner, name, gap, gap, scalar, fc.boolean())
      .map(([{ text, path }, own, one, two, other, isLast]) => ({
        text: isLast
          ? `{${one}"z"${two}:${other},${one}"${own}":${two}${text}${one}}`
          : `{${one}"${own}" :${two}${text},${one}"z":${other}${two}}`,
        path: [own, ...path],
      })),
    fc.tuple(inner, gap, scalar, fc.boolean()).map(([{ text, path }, one, other, isLast]) => ({
      text: isLast ? `[${one}${other} ,${one}${text}]` : `[${text}${one},${other}]`,
      path: [isLast ? 1 : 0, ...path],
    })),
  )
const leaf = fc.constant<Written>({ text: MARK, path: [] })
const written = around(fc.oneof(leaf, around(leaf), around(around(leaf)), around(around(around(leaf)))))
const pathOf = (path: Written['path']): string =>
  path.map((step, at) => (typeof step === 'number' ? `[${step}]` : at === 0 ? step : `.${step}`)).join('')

describe.each([false, true])('an edit, only: %j', (only) => {
  const edit = (text: string, set: string): string =>
    Buffer.from(editBody(Buffer.from(text), [parseEdit(set, { only })], JSON_BODY)).toString()

  it('changes no byte but those of the member', () => {
    fc.assert(
      fc.property(written, scalar, ({ text, path }, value) => {
        fc.pre(typeof path[0] === 'string')
        const wanted = text.replace(MARK, () => JSON.stringify(JSON.parse(value)))
        expect(edit(text, `${pathOf(path)}=${value}`)).toBe(wanted)
      }),
    )
  })

  it('adds a member, and changes no other byte', () => {
    fc.assert(
      fc.property(written, ({ text, path }) => {
        fc.pre(typeof path[0] === 'string')
        const owner = path.slice(0, -1)
        const isList = typeof path.at(-1) === 'number'
        const added = [...owner, isList ? 2 : 'new']
        const after = edit(text, `${pathOf(added)}={"x":[1]}`)
        const found = added.reduce<unknown>((value, step) => Object(value)[step], JSON.parse(after))
        expect(found).toEqual({ x: [1] })
        const size = after.length - text.length
        const isSame = Array.from(text, (_, at) => after.slice(0, at) + after.slice(at + size)).includes(text)
        expect([after, isSame]).toEqual([after, true])
      }),
    )
  })
})
