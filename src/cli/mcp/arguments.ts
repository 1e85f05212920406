import { z } from 'zod'
import { RelayError } from '../../base/errors.js'
import { didYouMean, suggest } from '../../base/text.js'
import { fieldsOf, parseJson } from '../../json/parse.js'
import type { Excluded, Tool, ToolFields } from './tool.js'

// Arguments that a model gives to a tool. An undeclared argument is an error: without it, the call would do something else
// than intended.

/** Names that models often use, and the argument that each means. */
const MEANT: Readonly<Record<string, readonly string[]>> = {
  action: ['event'],
  body: ['text'],
  comment: ['text'],
  count: ['last'],
  cursor: ['before'],
  cond: ['where'],
  delivery: ['entry'],
  entry: ['id'],
  event: ['match'],
  filter: ['where'],
  id: ['entry'],
  limit: ['last'],
  max: ['last'],
  message: ['text'],
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

/** JSON schema of one argument or of an item of a list, as far as relay writes them. */
interface ArgumentSchema {
  readonly type?: unknown
  readonly enum?: readonly unknown[]
  readonly minimum?: number
  readonly anyOf?: readonly ArgumentSchema[]
  readonly items?: ArgumentSchema
  readonly description?: string
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
 * Reads the arguments of a call. Where the schema has a number, a boolean or a list, a text with one of these is converted,
 * and a single text becomes a list of one. Where it has text, a number becomes text.
 * @throws RelayError `usage` that names each wrong argument, what it must be, and the nearest name for an unknown one;
 * also for an argument that another one excludes
 */
export function readArguments(
  tool: string,
  { input, excluded = {} }: Pick<Tool, 'input' | 'excluded'>,
  given: unknown,
): ToolFields {
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
  if (!error) {
    requireCombined(fields, excluded)
    return data
  }
  const names = [...known.keys()]
  const wrong = error.issues.flatMap((issue) => {
    if (issue.code === 'unrecognized_keys') return issue.keys.map((name) => unknownText(name, names))
    const name = String(issue.path[0])
    return `${name} ${wrongText(known.get(name) ?? {}, fields[name])}`
  })
  const offered = names.length > 0 ? `Its arguments are ${names.join(', ')}` : 'It has none'
  const all = [...new Set(wrong)].join('; ')
  throw new RelayError('usage', `Invalid arguments for ${tool}: ${all}. ${offered}`)
}

/** @throws RelayError `usage` for two arguments that cannot be combined, as one has no meaning with the other */
function requireCombined(fields: ToolFields, excluded: Excluded): void {
  for (const [name, others] of Object.entries(excluded)) {
    const both = others.filter((each) => isChosen(fields[name]) && isChosen(fields[each]))
    if (both.length > 0)
      throw new RelayError(
        'usage',
        `${name} cannot be combined with ${both.join(' or ')}: call once with each`,
      )
  }
}

function isChosen(value: unknown): boolean {
  return value !== undefined && value !== false
}

function schemaOf(schema: unknown): ArgumentSchema {
  return fieldsOf(schema)
}

function loosened(schema: ArgumentSchema | undefined, value: unknown): unknown {
  if (!schema) return value
  const { type, items } = schema
  if (type === 'array') {
    const list = asList(value)
    return Array.isArray(list) ? list.map((each) => loosened(items, each)) : list
  }
  if (type === 'string' && typeof value === 'number') return String(value)
  if (typeof value !== 'string') return value
  if (type === 'integer' && /^#?\d{1,15}$/.test(value)) return Number(value.replace('#', ''))
  if (type === 'boolean' && /^(?:true|false)$/.test(value)) return value === 'true'
  return value
}

/** Reads a list, which some clients pass on as its JSON, or as its only item. */
function asList(value: unknown): unknown {
  if (typeof value === 'number') return [value]
  if (typeof value !== 'string') return value
  if (!/^\s*\[.*\]\s*$/s.test(value)) return [value]
  try {
    return parseJson(value)
  } catch {
    return [value]
  }
}

function unknownText(name: string, names: readonly string[]): string {
  const meant = (MEANT[name.toLowerCase()] ?? []).find((each) => names.includes(each)) ?? suggest(name, names)
  return `there is no ${JSON.stringify(name)}${meant === undefined ? '' : ` (did you mean ${meant}?)`}`
}

/** Most characters of a wrong value that are quoted. */
const MAX_QUOTED = 60

/** Says what the schema wants in place of a value, and the nearest word, if it has words. */
function wrongText(schema: ArgumentSchema, value: unknown): string {
  if (value === undefined) return 'is missing'
  const wanted = `must be ${wantedText(schema)}`
  const { items } = schema
  if (!items || !Array.isArray(value)) return `${wanted}, not ${quoted(value)}${nearest(schema, value)}`
  const wrong = value.find((each) => !fits(items, each))
  return `${wanted}, without ${quoted(wrong)}${nearest(items, wrong)}`
}

function quoted(value: unknown): string {
  const text = JSON.stringify(value) ?? ''
  return text.length > MAX_QUOTED ? `${text.slice(0, MAX_QUOTED)}…` : text
}

function nearest({ enum: choices = [] }: ArgumentSchema, value: unknown): string {
  return typeof value === 'string' ? didYouMean(value, choices.map(String)) : ''
}

/** True if an item of a list is of the type and among the words of its schema. */
function fits({ type, enum: choices }: ArgumentSchema, value: unknown): boolean {
  return choices ? choices.includes(value) : typeof value === type
}

function wantedText({ type, enum: choices, minimum, anyOf, items, description }: ArgumentSchema): string {
  if (choices) return `one of ${choices.join(', ')}`
  if (anyOf) return [...new Set(anyOf.map(wantedText))].join(' or ')
  if (Array.isArray(type)) return type.map((each) => wantedText({ type: each })).join(' or ')
  if (type === 'integer') return `a whole number${minimum === undefined ? '' : ` of at least ${minimum}`}`
  if (type === 'number') return 'a number'
  if (type === 'boolean') return 'true or false'
  if (type !== 'array') return 'text'
  if (items?.enum) return `a list of ${items.enum.join(', ')}`
  // Says with examples what they are.
  return `a list of texts${description === undefined ? '' : ` (${description})`}`
}
