// Secrets in bodies, which are forwarded and not shown.
import { readContent } from './content.js'
import { type BodyKind, type JsonMember, memberAt, setMembers } from './members.js'
import { stepsOf, type ValueLocation } from './scheme.js'

/** Text that is shown in place of a secret. */
export const HIDDEN_TEXT = '(hidden)'

/** Replaces the texts at places of a body, where `*` is each member of a list. Every other byte stays. */
export function hideMembers(body: Uint8Array, places: readonly ValueLocation[], kind: BodyKind): Uint8Array {
  if (places.length === 0) return body
  const found = textsAt(body, places).filter(([, text]) => text !== HIDDEN_TEXT)
  return found.length === 0
    ? body
    : setMembers(
        body,
        found.map(([path]): JsonMember => [path, HIDDEN_TEXT]),
        kind,
      )
}

/** Puts back the texts of the original that are still hidden in a copy. */
export function revealMembers(
  copy: Uint8Array,
  original: Uint8Array,
  places: readonly ValueLocation[],
  kind: BodyKind,
): Uint8Array {
  const { value } = readContent(original)
  return fillHidden(copy, places, (path) => memberAt(value, path), kind)
}

/** Replaces each hidden text. Every other byte stays. */
export function fillHidden(
  copy: Uint8Array,
  places: readonly ValueLocation[],
  textOf: (path: readonly string[]) => unknown,
  kind: BodyKind,
): Uint8Array {
  const members = textsAt(copy, places).flatMap(([path, text]): JsonMember[] => {
    const known = text === HIDDEN_TEXT ? textOf(path) : undefined
    return typeof known === 'string' ? [[path, known]] : []
  })
  return members.length === 0 ? copy : setMembers(copy, members, kind)
}

type Found = readonly [path: readonly string[], text: string]

/** Texts at places of a body, where `*` is each member of a list. */
export function textsAt(body: Uint8Array, places: readonly ValueLocation[]): readonly Found[] {
  const { value } = readContent(body)
  return places.flatMap((place) => [...textsIn(value, stepsOf(place), [])])
}

function* textsIn(
  value: unknown,
  [step, ...rest]: readonly string[],
  path: readonly string[],
): Generator<Found> {
  if (step === undefined) {
    if (typeof value === 'string') yield [path, value]
  } else if (step === '*') {
    if (Array.isArray(value))
      for (const [at, each] of value.entries()) yield* textsIn(each, rest, [...path, String(at)])
  } else yield* textsIn(memberAt(value, [step]), rest, [...path, step])
}
