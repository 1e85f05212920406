import { z } from 'zod'
import { RelayError } from '../../base/errors.js'
import { suggest } from '../../base/text.js'
import { fieldsOf } from '../../json/parse.js'
import type { ToolFields } from './tool.js'

// Arguments that a model gives to a tool. An undeclared argument is an error: without it, the call would do something else
// than intended.

/** Names that models often use, and the argument that each means. */
const MEANT: Readonly<Record<string, readonly string[]>> = {
  action: ['event'],
  count: ['last'],
  cursor: ['before'],
  cond: ['where'],
  delivery: ['entry'],
  filter: ['where'],
  id: ['entry'],
  limit: ['last'],
  max: ['last'],
  n: ['entry', 'last'],
  number: ['entry'],
  offset: ['page', 'before'],
  page: ['before'],
  payload: ['body', 'path', 'set'],
  query: ['text'],
  search: ['text'],
  type: ['event', 'match'],
  url: ['to'],
}

/** JSON schema of one argument: the part of the language that relay uses. */
interface ArgumentSchema {
  readonly type?: unknown
  readonly enum?: readonly unknown[]
  readonly minimum?: number
  readonly anyOf?: readonly ArgumentSchema[]
}

/** Makes the JSON schema of the arguments, without redundant members. */
export function argumentsSchema(input: z.ZodObject) {
  const { $schema: _, ...schema } = z.toJSONSchema(z.strictObject(input.shape), {
    io: 'input',
    override({ jsonSchema }) {
      const { minimum, maximum } = jsonSchema
      if (minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum
      if (maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum
    },
  })
  return schema
}

/**
 * Reads the arguments of a call. Where the schema has a number, a boolean or a list, a text with a number or a boolean is
 * converted, and a single text becomes a list of one. @throws RelayError `usage` that names each wrong argument, what it must be,
 * and the nearest name for an unknown one
 */
export function readArguments(tool: string, input: z.ZodObject, given: unknown): ToolFields {
  const known = new Map(
    Object.entries(fieldsOf(argumentsSchema(input)['properties'])).map(([name, schema]) => [
      name,
      schemaOf(schema),
    ]),
  )
  const fields = Object.fromEntries(
    Object.entries(fieldsOf(given)).map(([name, value]) => [name, loosened(known.get(name), value)]),
  )
  const { data, error } = z.strictObject(input.shape).safeParse(fields)
  if (!error) return data
  const names = [...known.keys()]
  const wrong = error.issues.flatMap((issue) => {
    if (issue.code === 'unrecognized_keys') return issue.keys.map((name) => unknownText(name, names))
    const name = String(issue.path[0])
    return `${name} ${wrongText(known.get(name), fields[name])}`
  })
  const offered = names.length > 0 ? `Its arguments are ${names.join(', ')}` : 'It has none'
  const all = [...new Set(wrong)].join('; ')
  throw new RelayError('usage', `Invalid arguments for ${tool}: ${all}. ${offered}`)
}

function schemaOf(schema: unknown): ArgumentSchema {
  return fieldsOf(schema)
}

function loosened(schema: ArgumentSchema | undefined, value: unknown): unknown {
  if (typeof value !== 'string') return value
  if (schema?.type === 'array') return [value]
  if (schema?.type === 'integer' && /^\d{1,15}$/.test(value)) return Number(value)
  if (schema?.type === 'boolean' && /^(?:true|false)$/.test(value)) return value === 'true'
  return value
}

function unknownText(name: string, names: readonly string[]): string {
  const meant = (MEANT[name.toLowerCase()] ?? []).find((each) => names.includes(each)) ?? suggest(name, names)
  return `there is no ${JSON.stringify(name)}${meant === undefined ? '' : ` (did you mean ${meant}?)`}`
}

/** Most characters of a wrong value that are quoted. */
const MAX_QUOTED = 60

function wrongText(schema: ArgumentSchema | undefined, value: unknown): string {
  if (value === undefined) return 'is missing'
  const text = JSON.stringify(value) ?? ''
  const quoted = text.length > MAX_QUOTED ? `${text.slice(0, MAX_QUOTED)}…` : text
  const choices = (schema?.enum ?? []).map(String)
  const meant = typeof value === 'string' ? suggest(value, choices) : undefined
  return `must be ${wantedText(schema ?? {})}, not ${quoted}${meant === undefined ? '' : ` (did you mean ${meant}?)`}`
}

function wantedText({ type, enum: choices, minimum, anyOf }: ArgumentSchema): string {
  if (choices) return `one of ${choices.join(', ')}`
  if (anyOf) return [...new Set(anyOf.map(wantedText))].join(' or ')
  if (type === 'integer') return `a whole number${minimum === undefined ? '' : ` of at least ${minimum}`}`
  if (type === 'number') return 'a number'
  if (type === 'boolean') return 'true or false'
  return type === 'array' ? 'a list of texts' : 'text'
}
