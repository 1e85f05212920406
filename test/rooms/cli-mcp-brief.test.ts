import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { listLine, refusedLine, answerOf } from '../../src/cli/mcp/brief.js'
import type { Note } from '../../src/cli/mcp/notes.js'
import { ownObject, separated } from '../../src/cli/mcp/own-object.js'
import { line, refused, SENT } from '../../src/cli/mcp/schemas.js'
import { Outside, outside, own } from '../../src/cli/output/outside.js'
import { GITHUB_WEBHOOK } from '../../src/senders/github.js'
import { tokensOf } from '../kit/tokens.js'

// What a model reads at every step has a bound, whatever a sender or a target writes.

const WORDS = 'acme some company platform payments webhook service frontend infrastructure my team api'.split(
  ' ',
)
const word = fc.constantFrom(...WORDS)
const name = fc.array(word, { minLength: 1, maxLength: 4 }).map((words) => words.join('-'))
const digest = fc.stringMatching(/^[a-z0-9]{1,100}$/)
const repo = fc.tuple(fc.oneof(name, digest), fc.oneof(name, digest)).map((parts) => parts.join('/'))
const events = [...GITHUB_WEBHOOK.events].flatMap(([event, { actions = [] }]) =>
  [null, ...actions].map((action) => [event, action] as const),
)
const event = fc.oneof(
  fc.constantFrom(...events),
  fc.constantFrom(
    ['invoice.payment_action_required', null] as const,
    ['customer.subscription.pending_update_applied', null] as const,
    ['Merge Request Hook', null] as const,
  ),
  fc.stringMatching(/^[a-z_.]{1,100}$/).map((text) => [text, null] as const),
)
const status = fc.option(fc.integer({ min: 100, max: 599 }))
const state = fc.constantFrom('waiting', 'succeeded', 'failed')
const waitsFor = fc.constantFrom(
  null,
  'tried again in 30s',
  'behind #104321, tried again in 34s',
  'no relay runs',
  'not configured any more',
  'another relay forwards',
  'being sent',
  'next',
  'down: connection refused',
  'down: the certificate has expired, since 3 days',
)
const text = fc.oneof(
  fc.string({ maxLength: 3000 }),
  fc.string({ unit: 'binary', maxLength: 800 }),
  fc.string({ unit: 'grapheme', maxLength: 800 }),
  fc.base64String({ maxLength: 3000 }),
  fc.constant(`TypeError: Cannot read properties of undefined\n${'    at f (/srv/a.js:1:2)\n'.repeat(99)}`),
)
const label = fc.oneof(
  fc
    .tuple(word, fc.integer({ min: 1, max: 65_535 }), word)
    .map(([a, port, b]) => `${a}=http://127.0.0.1:${port}/${b}`),
  digest.map((path) => `push=http://localhost:3000/${path}`),
)
const target = fc.record({
  target: label,
  state,
  status,
  waitsFor,
  answer: fc.option(text),
  error: fc.option(text),
})
const given = fc.record({
  n: fc.integer({ min: 1, max: 9_999_999 }),
  event,
  repo: fc.option(repo),
  number: fc.option(fc.nat({ max: 200_000 })),
  source: fc.constantFrom('github', 'stripe', 'my-billing'),
  targets: fc.array(target, { maxLength: 24 }),
  ref: fc.option(fc.string({ maxLength: 255 })),
})
type Given = typeof given extends fc.Arbitrary<infer Value> ? Value : never

/** What `--json` prints of it, as far as answers have it. */
function deliveryOf({ n, event: [name, action], repo: place, number, source, targets, ref }: Given): object {
  return {
    n,
    time: own(new Date(0).toISOString()),
    source: own(source),
    event: outside(name),
    action: outside(action),
    repo: outside(place),
    number: outside(number),
    ref: outside(ref),
    verifiedBy: 'current',
    unproved: false,
    ignoredBy: null,
    targets: targets.map((each) => ({
      target: own(each.target),
      state: each.state,
      reason: null,
      waitsFor: each.state === 'waiting' ? outside(each.waitsFor) : null,
      attempts: 3,
      status: each.status,
      ms: 1234,
    })),
    attempts: targets.flatMap((each) =>
      [1, 2, 3, 4].map(() => ({
        target: own(each.target),
        outcome: 'retry',
        status: each.status,
        ms: 1234,
        error: outside(each.error),
        count: 2,
        answer: outside(each.answer),
      })),
    ),
  }
}

describe('an answer', () => {
  const ownNotes = fc.array(
    fc.array(word, { maxLength: 60 }).map((words) => words.join(' ')),
    { maxLength: 5 },
  )

  it('of a trigger, a replay or a wait has less than 300 tokens, and says first what became of it', () =>
    fc.assert(
      fc.property(given, ownNotes, fc.array(text, { maxLength: 3 }), (each, mine, theirs) => {
        const notes = new Set<Note>([...mine, ...theirs.map((one) => new Outside(one))])
        const answer = answerOf({ delivery: deliveryOf(each), sent: { ok: true, status: 200 } }, notes)
        const all = [...notes]
        const parts = {
          ...separated(ownObject(SENT), answer),
          notes: all.filter((note) => typeof note === 'string'),
          quoted: all.flatMap((note) => (note instanceof Outside ? [note.value] : [])),
        }
        expect(Object.keys(parts)[0]).toBe('outcome')
        const { targets, moreTargets = 0 } = Object(Object(parts).delivery)
        expect(targets.length + moreTargets).toBe(each.targets.length)
        expect(targets.length).toBeGreaterThanOrEqual(Math.min(1, each.targets.length))
        expect(tokensOf(parts)).toBeLessThan(300)
      }),
      { numRuns: 1000 },
    ))

  it('has the start and the end of what a target answered: some languages write the error last', () => {
    const frames = text.filter((each) => !each.includes('…'))
    fc.assert(
      fc.property(given, target, frames, (each, one, between) => {
        const said = `Traceback\n${between}\nKeyError: x`
        const delivery = deliveryOf({ ...each, targets: [{ ...one, answer: said }] })
        const shown = answerOf({ delivery, sent: { ok: true, status: 200 } }, new Set(['1 sent']))
        const { attempts } = Object(Object(separated(ownObject(SENT), shown)).delivery)
        const { answer } = Object(attempts.at(-1).fromOutside)
        const [start = '', end = said] = String(answer).split('…')
        expect([said.startsWith(start), said.endsWith(end), end.includes('KeyError: x')]).toEqual([
          true,
          true,
          true,
        ])
      }),
      { numRuns: 1000 },
    )
  })

  it('of a request that no entry came of has less than 300 tokens', () =>
    fc.assert(
      fc.property(text, status, (body, code) => {
        const sent = {
          ok: false,
          status: code,
          ms: 12,
          error: outside(code === null ? body : null),
          answer: outside(body),
        }
        const answer = answerOf({ sent }, new Set(['1 of 1 answers were not as expected']))
        expect(tokensOf(separated(ownObject(SENT), answer))).toBeLessThan(280)
      }),
    ))
})

const KINDS = [
  'no_signature',
  'invalid_signature',
  'invalid_event',
  'too_large',
  'wrong_path',
  'handshake',
  'question',
] as const

describe('a line of the list', () => {
  it('has at most 40 tokens, in each state and with the longest names', () =>
    fc.assert(
      fc.property(given, (each) => {
        const shown = separated(line, listLine(deliveryOf(each), [], 600_000))
        expect([tokensOf(shown) <= 40, shown]).toEqual([true, shown])
      }),
      { numRuns: 3000 },
    ))

  it('of the refused requests has at most 40 tokens, for each kind and with the longest claims', () =>
    fc.assert(
      fc.property(given, fc.constantFrom(...KINDS), text, fc.uuid(), (each, kind, reason, id) => {
        const given = {
          id: each.n % 100_000,
          time: own(new Date(0).toISOString()),
          via: 'http',
          source: own(each.source),
          status: 401,
          kind,
          reason: outside(reason),
          event: outside(each.event[0]),
          delivery: outside(id),
          size: each.n,
        }
        const shown = separated(refused, refusedLine(given, 600_000))
        expect([tokensOf(shown) <= 40, shown]).toEqual([true, shown])
        expect(shown).toMatchObject({ id: given.id, status: 401, kind })
      }),
      { numRuns: 3000 },
    ))

  it('keeps usual names whole', () => {
    const usual = {
      n: 1200,
      event: ['pull_request', 'opened'],
      repo: 'octo/demo',
      number: 12,
      source: 'github',
      ref: null,
      targets: [],
    } as const
    expect(
      separated(
        line,
        listLine(deliveryOf({ ...usual, event: ['pull_request', 'opened'], targets: [] }), [], 600_000),
      ),
    ).toEqual({
      n: 1200,
      age: '10m',
      state: 'none',
      fromOutside: { event: 'pull_request', action: 'opened', repo: 'octo/demo#12' },
    })
  })
})
