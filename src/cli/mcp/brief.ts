import { shownSource } from '../../base/source-names.js'
import { shortTime } from '../output/deliveries.js'
import { Outside, Own } from '../output/outside.js'
import { ADD_ROUTE } from './advice.js'
import type { Note } from './notes.js'
import { CUT, cutInside, cutTo, tokensOfEvent, tokensOfText } from './room.js'
import type { ToolFields } from './tool.js'

// Small answers: the outcome of a delivery, without anything that was not requested. A model pays for each word, again at
// each further step.

/** Most tokens of an answer, with its notes. */
const ANSWER = 290
/** Most tokens of its notes: what to do about a refusal is nearly as long. */
const NOTES = 150
/** Tokens of the names of parts and the brackets around the values. */
const AROUND = 14
/** Most tokens of a name that a sender chose. A branch may have 255 characters. */
const A_NAME = 22
/** Tokens of an answer of a target: less says nothing, and more is not what failed. */
const AN_ANSWER = { least: 12, several: 40, most: 240 }
/** Tokens around the answer of one of several targets. */
const AROUND_WORDS = 5
/** Tokens that several targets leave for what the first of them answered. */
const ANSWERS = 60

/** Attempts of a small answer, the newest. */
const MAX_ATTEMPTS = 3

const NAMED = [
  'n',
  'source',
  'verifiedBy',
  'unproved',
  'event',
  'action',
  'repo',
  'number',
  'ref',
  'ignoredBy',
]
const OF_TARGET = ['target', 'state', 'attempts', 'status', 'reason', 'waitsFor']
const OF_ATTEMPT = ['outcome', 'status', 'ms', 'count']

/** Contents of an answer: a delivery as `--json` prints it, and the response to the request that sent it. */
interface AnswerParts {
  readonly delivery?: object | undefined
  readonly sent?: object | undefined
  /** Short names of targets, by the target. */
  readonly names?: Names | undefined
}
type Names = ReadonlyMap<string, string>

/**
 * Makes the answer of a tool that sends a delivery or waits for one: first its outcome in a line, then the delivery with
 * its targets and their answers, as far as they fit. Shortens the notes, too.
 */
export function answerOf({ delivery, sent, names = new Map() }: AnswerParts, notes: Set<Note>): object {
  const left = ANSWER - AROUND - shorten(notes)
  if (!delivery) return { sent: sent && sentPart(sent, left) }
  const outcome = outcomeOf(delivery)
  const taken = sent && some({ ...sent }, ['ok', 'status'])
  const room = left - tokensOfText(outcome) - (taken ? tokensOfValue(taken) : 0)
  return { outcome, delivery: became(delivery, names, room), ...(taken && { sent: taken }) }
}

/** Shortens notes, those that quote the outside first. Returns what they have. Tokens. */
function shorten(notes: Set<Note>): number {
  const all = [...notes].map((note) => ({ note, text: String(note instanceof Outside ? note.value : note) }))
  const own = all.filter(({ note }) => typeof note === 'string')
  const kept = new Map<Note, Note>()
  let [left, lost] = [NOTES, 0]
  for (const { note, text } of [...own, ...all.filter((each) => !own.includes(each))]) {
    const size = tokensOfText(text) + 2
    if (size > left && left < AN_ANSWER.least) lost += 1
    else {
      const start = cutTo(text, left)
      kept.set(note, start === text ? note : typeof note === 'string' ? start : new Outside(start))
      left -= Math.min(left, size)
    }
  }
  const inOrder = [...notes].flatMap((note) => kept.get(note) ?? [])
  notes.clear()
  for (const note of inOrder) notes.add(note)
  if (lost > 0) notes.add(`${lost} more notes`)
  return NOTES - left + (lost > 0 ? 4 : 0)
}

/** Describes the outcome of a delivery in a line. */
function outcomeOf(delivery: object): string {
  const { targets, ignoredBy, n }: ToolFields = { ...delivery }
  const all = listOf(targets)
  if (all.length === 0 && ignoredBy !== null && ignoredBy !== undefined)
    return 'ignored: relay is set up to forward no such delivery'
  if (all.length === 0) return `${NO_ROUTE} show_routes with entry: ${String(n)} says why`
  const exact = countedBy(all, stateText)
  return (exact.length > MAX_PARTS ? countedBy(all, ({ state }) => String(state)) : exact).join('; ')
}

/** Counts targets by a text about each, in the order of their urgency. That of a single one is the whole text. */
function countedBy(
  targets: readonly ToolFields[],
  textOf: (target: ToolFields) => string,
): readonly string[] {
  const counts = new Map<string, number>()
  for (const each of urgentFirst(targets)) counts.set(textOf(each), (counts.get(textOf(each)) ?? 0) + 1)
  return [...counts].map(([text, count]) =>
    targets.length === 1 ? text : `${count} of ${targets.length} ${text}`,
  )
}

function urgentFirst(targets: readonly ToolFields[]): readonly ToolFields[] {
  return STATES.flatMap((state) => targets.filter((each) => each['state'] === state))
}

/** Most kinds of results in a line. Of more, the line has only the states. */
const MAX_PARTS = 3
const NO_ROUTE = `no route matches, so that no program got it. ${ADD_ROUTE}.`

/** Formats `failed 500`, `waiting after 503`, `waiting, unreachable`. */
function stateText({ state, status, outcome }: ToolFields): string {
  const word = STATES.find((each) => each === state) ?? 'none'
  if (typeof status !== 'number' && typeof outcome === 'string') return `${word}, ${outcome}`
  if (typeof status !== 'number') return word === 'waiting' ? 'waiting for an answer' : word
  return word === 'waiting' ? `waiting after ${status}` : `${word} ${status}`
}

/** Selects the outcome of a delivery from the fields that `--json` prints, in at most `room` tokens. */
function became(delivery: object, names: Names, room: number): object {
  const { targets, attempts, ...given }: ToolFields = { ...delivery }
  const named = some(short(given, A_NAME), NAMED)
  const left = room - tokensOfValue(named)
  const all = listOf(targets)
  return all.length > 1
    ? { ...named, ...severalTargets(all, listOf(attempts), names, left) }
    : { ...named, ...oneTarget(all, listOf(attempts), left) }
}

function oneTarget(targets: readonly ToolFields[], attempts: readonly ToolFields[], room: number): object {
  const shown = targets.map((each) => some(short(each, A_NAME), OF_TARGET))
  let left = room - MORE - tokensOfValue(shown)
  const lines: object[] = []
  for (const each of attempts.slice(-MAX_ATTEMPTS).toReversed()) {
    const line = some(each, OF_ATTEMPT)
    left -= tokensOfValue(line)
    if (left < 0 && lines.length > 0) break
    lines.unshift(line)
  }
  // An answer counts until the target gives another one.
  const newest = lines.pop()
  const words = newest ? wordsOf(attempts.at(-1) ?? {}, left) : {}
  const earlier = attempts.length - lines.length - 1
  return {
    targets: shown,
    attempts: newest ? [...lines, { ...newest, ...words }] : [],
    ...(earlier > 0 && { earlierAttempts: earlier }),
  }
}

/** Returns the answer of a target, or else its error, in at most `room` tokens. */
function wordsOf({ answer, error }: ToolFields, room: number): object {
  const said = some({ answer: cut(answer, room) }, ['answer'])
  return Object.keys(said).length > 0 ? said : some({ error: cut(error, room) }, ['error'])
}

/** Returns each target with its newest attempt, those first for which there is something to do, and how many more there are. */
function severalTargets(
  targets: readonly ToolFields[],
  attempts: readonly ToolFields[],
  names: Names,
  room: number,
): object {
  const lines = new Map<ToolFields, object>()
  let left = room - MORE - ANSWERS
  for (const each of urgentFirst(targets)) {
    const line = targetLine(each, names)
    left -= tokensOfValue(line)
    if (left < 0 && lines.size > 0) break
    lines.set(each, line)
  }
  left = room - MORE - tokensOfValue([...lines.values()])
  const isLone = ({ target }: ToolFields): boolean =>
    targets.filter((each) => String(each['target']) === String(target)).length === 1
  const answers = [...lines].flatMap(([each, line]) => {
    // Of targets with the same printed name it is not known whose answer it is.
    const last = isLone(each)
      ? attempts.findLast(({ target }) => String(target) === String(each['target']))
      : undefined
    return last?.['answer'] || last?.['error'] ? [{ each, line, last }] : []
  })
  for (const [at, { each, line, last }] of answers.entries()) {
    const share = Math.max(AN_ANSWER.several, left / (answers.length - at))
    const words = wordsOf(last, Math.min(share, left - AROUND_WORDS))
    if (Object.keys(words).length === 0) break
    left -= tokensOfValue(words)
    lines.set(each, { ...line, ...words })
  }
  const shown = [...lines.values()]
  return {
    targets: shown,
    ...(shown.length < targets.length && { moreTargets: targets.length - shown.length }),
  }
}

/** Returns one target of several, by its short name, with its newest attempt. */
function targetLine(given: ToolFields, names: Names): object {
  const { target, status, attempts, reason, ...others } = given
  const name = names.get(String(target))
  return some(
    short(
      {
        ...others,
        target: name === undefined ? target : new Own(name),
        status,
        ...(attempts !== 1 && { attempts }),
        // It says no more than the status.
        ...(typeof status !== 'number' && { reason }),
      },
      A_NAME,
    ),
    [...OF_TARGET, 'ms'],
  )
}

/** Tokens of the number of further targets. */
const MORE = 5

/** Returns the response to a request that became no entry, in at most `room` tokens. */
function sentPart(sent: object, room: number): object {
  const { answer, ...given }: ToolFields = { ...sent }
  const names = ['ok', 'status', 'n', 'target', 'targetName', 'late', 'signedAgain', 'ms', 'error']
  const known = some(short(given, A_NAME * 2), names)
  return { ...known, ...some({ answer: cut(answer, room - tokensOfValue(known)) }, ['answer']) }
}

/** Cuts a text to a number of tokens, as a function bounds them. */
type Cut = typeof cutTo

/** Cuts the texts of an object, so that each is of at most this many tokens. */
function short(given: ToolFields, room: number, cut = cutTo): ToolFields {
  return Object.fromEntries(
    Object.entries(given).map(([name, value]) => {
      if (value instanceof Own) return [name, new Own(cut(value.text, room))]
      if (!(value instanceof Outside) || typeof value.value !== 'string') return [name, value]
      return [name, new Outside(cut(value.value, room))]
    }),
  )
}

/** Cuts `owner/name#7`: first the owner, then the end of the name. */
function shortPlace(text: string, room: number): string {
  if (tokensOfText(text) <= room) return text
  const [, name = text, subject = ''] = /^[^/]*(\/.*?)(#\d+)?$/s.exec(text) ?? []
  const left = room - tokensOfText(subject) - CUT
  return left < LEAST ? cutTo(text, room) : `…${cutTo(name, left)}${subject}`
}

/** Bounds the tokens of a value of an answer. */
function tokensOfValue(value: unknown): number {
  if (value instanceof Own) return tokensOfText(value.text)
  if (value instanceof Outside) return tokensOfValue(value.value)
  if (typeof value === 'string') return tokensOfText(value)
  if (Array.isArray(value)) return value.reduce((sum: number, each) => sum + tokensOfValue(each), 1)
  if (typeof value !== 'object' || value === null) return Math.ceil(String(value).length / 3)
  const fields = Object.entries(value)
  const isOutside = fields.some(([, each]) => each instanceof Outside)
  return fields.reduce((sum, [, each]) => sum + A_KEY + tokensOfValue(each), isOutside ? 5 : 1)
}

/** Tokens of a key, with its quotes. */
const A_KEY = 3

/** Fields of a delivery that `list_deliveries` adds when asked. */
export const LIST_FIELDS = [
  'age',
  'time',
  'source',
  'delivery',
  'ref',
  'verifiedBy',
  'targets',
  'size',
  'duplicates',
  'editedFrom',
] as const

/** Most tokens of a line without fields that were asked for. */
const A_LINE = 40
/**
 * Those of its number and state, of the status of the last attempt, of its source besides its key, of its age, and of each
 * further key with its quotes.
 */
const LINE = { start: 13, status: 2, source: 3, age: 6, key: 3 }

/**
 * Returns a line of a list: what it is, and how it ended. Where it would be too long, its age is left out, then why it
 * waits, then names are cut.
 */
export function listLine(delivery: object, fields: readonly string[], now: number): object {
  const given: ToolFields = { ...delivery }
  const { targets, source, time } = given
  const all = listOf(targets)
  const shown = STATES.map((state) => all.find((each) => each['state'] === state)).find(Boolean)
  const state = STATES.find((each) => each === shown?.['state']) ?? 'none'
  const status = shown?.['status']
  const isHost = shownSource(String(source)) === undefined
  const age = shortAge(Math.max(0, now - Date.parse(String(time))))
  const hasStatus = typeof status === 'number'
  const start = LINE.start + (hasStatus ? LINE.status : 0) + tokensOfText(String(given['n']))
  const room = new LineRoom(A_LINE - start - (isHost ? 0 : LINE.source))
  const from = isHost ? {} : room.take('source', source)
  const event = room.take('event', given['event'], tokensOfEvent)
  const action = room.take('action', given['action'], tokensOfEvent)
  const repo = room.take('repo', placeOf(given), tokensOfText, shortPlace)
  const reason = state === 'waiting' && shown ? room.takeWhole('waitsFor', shown['waitsFor']) : {}
  const isAged = fields.includes('age') || room.has(LINE.age)
  return {
    n: given['n'],
    ...(isAged && { age }),
    ...from,
    ...event,
    ...action,
    ...repo,
    state: hasStatus ? `${state} ${status}` : state,
    ...reason,
    ...some(given, fields),
    ...(fields.includes('targets') && { targets: all.map((each) => some(each, OF_TARGET)) }),
  }
}

/** Those of the number, status and kind of a refused request. */
const REFUSED = 22

/**
 * Returns a line of the refused requests: its kind, and the event that it claims. `explain_refused` has the rest.
 */
export function refusedLine(refused: object, now: number): object {
  const given: ToolFields = { ...refused }
  const { id, status, kind, source, time } = given
  const isHost = shownSource(String(source)) === undefined
  const room = new LineRoom(A_LINE - REFUSED - tokensOfText(String(id)) - (isHost ? 0 : LINE.source))
  const from = isHost ? {} : room.take('source', source)
  const event = room.take('event', given['event'], tokensOfEvent)
  const isAged = room.has(LINE.age)
  return {
    id,
    ...(isAged && { age: shortAge(Math.max(0, now - Date.parse(String(time)))) }),
    status,
    kind,
    ...from,
    ...event,
  }
}

/** Tokens that a line still has for its names. */
class LineRoom {
  #left: number

  constructor(tokens: number) {
    this.#left = tokens
  }

  /** Returns a field, cut to what is left, unless it says nothing. */
  take(name: string, value: unknown, tokensOf = tokensOfText, cut: Cut = cutTo): object {
    const left = this.#left - LINE.key
    if (left < LEAST) return {}
    const field = some(
      short({ [name]: value }, left, (text, room) => cut(text, room, tokensOf)),
      [name],
    )
    for (const each of Object.values(field)) this.#left -= LINE.key + tokensOf(textIn(each))
    return field
  }

  has(tokens: number): boolean {
    return tokens <= this.#left
  }

  /** Returns a field if there is room for all of it. */
  takeWhole(name: string, value: unknown): object {
    return tokensOfText(textIn(value)) > this.#left - LINE.key - 1 ? {} : this.take(name, value)
  }
}

/** Tokens of a name below which it says nothing. */
const LEAST = 2

function textIn(value: unknown): string {
  return value instanceof Outside ? String(value.value) : String(value)
}

/** Formats `octo/demo#7`. */
function placeOf({ repo, number }: ToolFields): unknown {
  const [name, subject] = [repo, number].map((value) => (value instanceof Outside ? value.value : undefined))
  return typeof name === 'string' && typeof subject === 'number' ? new Outside(`${name}#${subject}`) : repo
}

const STATES = ['failed', 'waiting', 'succeeded']

/** Formats `340ms`, `12s`, `5m`, `3h`, `2d`. */
function shortAge(ms: number): string {
  const units: readonly [number, string][] = [
    [86_400_000, 'd'],
    [3_600_000, 'h'],
    [60_000, 'm'],
    [1000, 's'],
  ]
  const [size, unit] = units.find(([each]) => ms >= each) ?? []
  return size === undefined ? shortTime(ms) : `${Math.floor(ms / size)}${unit}`
}

/** Selects these fields, without empty ones. */
function some(given: ToolFields, names: readonly string[]): object {
  return Object.fromEntries(
    names.flatMap((name) => (isNothing(name, given[name]) ? [] : [[name, given[name]]])),
  )
}

function isNothing(name: string, value: unknown): boolean {
  const plain = value instanceof Outside ? value.value : value
  if (plain === undefined || plain === null || plain === '') return true
  return (plain === false && name !== 'ok') || (name === 'count' && plain === 1)
}

/** Returns a delivery as `--json` prints it, without empty fields, and each header as one text. */
export function whole(delivery: object): object {
  const { targets, attempts, headers, provider: _, ...given }: ToolFields = { ...delivery }
  const parts = (value: unknown): object[] =>
    listOf(value).map((each) => ({ ...some(each, Object.keys(each)), ...headersOf(each['headers']) }))
  return {
    ...some(given, Object.keys(given)),
    ...headersOf(headers),
    ...(targets !== undefined && { targets: parts(targets) }),
    ...(attempts !== undefined && { attempts: parts(attempts) }),
  }
}

function headersOf(headers: unknown): object {
  if (!(headers instanceof Outside)) return {}
  const lines = listOf(headers.value).map(({ name, value }) => `${String(name)}: ${String(value)}`)
  return lines.length === 0 ? {} : { headers: new Outside(lines) }
}

/** Returns the fields that identify a delivery. */
export function namePart(delivery: object): object {
  return some({ ...delivery }, NAMED)
}

function cut(answer: unknown, room: number): unknown {
  if (!(answer instanceof Outside) || typeof answer.value !== 'string') return undefined
  const most = Math.min(room - A_KEY, AN_ANSWER.most)
  return most < AN_ANSWER.least ? undefined : new Outside(cutInside(answer.value, most))
}

function listOf(value: unknown): readonly ToolFields[] {
  return Array.isArray(value) ? value : []
}
