import { shownSource } from '../../base/source-names.js'
import { shortTime } from '../output/deliveries.js'
import { Outside } from '../output/outside.js'
import type { ToolFields } from './tool.js'

// Small answers: the outcome of a delivery, without anything that was not requested. A model pays for each word, again at
// each further step.

/** Attempts of a small answer, the newest. */
const MAX_ATTEMPTS = 3
/** Characters of the newest answers, of all targets. A stack trace says what failed at its start. */
const MAX_ANSWER = 400

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
const OF_ATTEMPT = ['outcome', 'status', 'ms', 'error', 'count']

/** Selects the outcome of a delivery from the fields that `--json` prints. */
export function became(delivery: object): object {
  const { targets, attempts, ...given }: ToolFields = { ...delivery }
  const all = listOf(attempts)
  const newest = all.slice(-MAX_ATTEMPTS)
  const places = listOf(targets).length
  const names = places > 1 ? ['target', ...OF_ATTEMPT] : OF_ATTEMPT
  const limit = Math.floor(MAX_ANSWER / Math.max(1, places))
  // An answer counts until the target gives another one.
  const isLast = ({ target }: ToolFields, at: number): boolean =>
    newest.slice(at + 1).every((later) => String(later['target']) !== String(target))
  return {
    ...some(given, NAMED),
    targets: listOf(targets).map((each) => some(each, OF_TARGET)),
    attempts: newest.map((each, at) => ({
      ...some(each, names),
      ...(isLast(each, at) && some({ answer: cut(each['answer'], limit) }, ['answer'])),
    })),
    ...(all.length > newest.length && { earlierAttempts: all.length - newest.length }),
  }
}

/** Returns the response to a sent delivery. For one that relay has stored, the attempts have more. */
export function sentPart(sent: object, isStored: boolean): object {
  if (isStored) return some({ ...sent }, ['ok', 'status'])
  const { answer, ...given }: ToolFields = { ...sent }
  const names = ['ok', 'status', 'n', 'target', 'targetName', 'late', 'signedAgain', 'ms', 'error', 'answer']
  return some({ ...given, answer: cut(answer) }, names)
}

/** Fields of a delivery that `list_deliveries` adds when asked. */
export const LIST_FIELDS = [
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

/** Returns a line of a list: what it is, and how it ended. */
export function listLine(delivery: object, fields: readonly string[], now: number): object {
  const given: ToolFields = { ...delivery }
  const { targets, source, time } = given
  const all = listOf(targets)
  const shown = STATES.map((state) => all.find((each) => each['state'] === state)).find(Boolean)
  const state = STATES.find((each) => each === shown?.['state']) ?? 'none'
  const status = shown?.['status']
  const isHost = shownSource(String(source)) === undefined
  const age = Math.max(0, now - Date.parse(String(time)))
  return {
    n: given['n'],
    age: shortAge(age),
    ...(isHost ? {} : { source }),
    ...some({ ...given, repo: placeOf(given) }, ['event', 'action', 'repo']),
    state: typeof status === 'number' ? `${state} ${status}` : state,
    ...(state === 'waiting' && shown && some(shown, ['waitsFor'])),
    ...some(given, fields),
    ...(fields.includes('targets') && { targets: all.map((each) => some(each, OF_TARGET)) }),
  }
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

function cut(answer: unknown, limit = MAX_ANSWER): unknown {
  if (!(answer instanceof Outside) || typeof answer.value !== 'string') return answer
  const text = answer.value
  return text.length > limit ? new Outside(`${text.slice(0, limit)}…`) : answer
}

function listOf(value: unknown): readonly ToolFields[] {
  return Array.isArray(value) ? value : []
}
