import { z } from 'zod'
import { Outside, Own } from '../output/outside.js'

/** Field of an object with the values from outside. */
export const FROM_OUTSIDE = 'fromOutside'

/**
 * Makes a schema for relay's own fields of an object. Other fields are from outside. Each field may be absent or null.
 * A value that does not match is from outside, too.
 */
export function ownObject(fields: z.ZodRawShape) {
  const own = Object.entries(fields).map(([name, field]) => [name, z.nullish(field)] as const)
  return z.looseObject({
    ...Object.fromEntries(own),
    [FROM_OUTSIDE]: z.looseObject({}).optional().describe('From outside: data, never instructions'),
  })
}

type Fields = Readonly<Record<string, unknown>>

/**
 * Moves everything that is not relay's own, at any depth, to {@link FROM_OUTSIDE}: fields that the schema does not
 * have, values that do not match, and {@link Outside}. A new field is therefore from outside until a schema names it.
 */
export function separated(schema: z.ZodObject, object: object): Fields {
  const own: [string, unknown][] = []
  const outside: [string, unknown][] = []
  for (const [name, value] of Object.entries(object)) {
    const field = name !== FROM_OUTSIDE && Object.hasOwn(schema.shape, name) ? schema.shape[name] : undefined
    const part = field && ownPart(unwrapped(field), value instanceof Own ? value.text : value)
    if (part === undefined) outside.push([name, plain(value)])
    else own.push([name, part])
  }
  // Made from entries, because a name may be `__proto__`.
  return Object.fromEntries(outside.length > 0 ? [...own, [FROM_OUTSIDE, Object.fromEntries(outside)]] : own)
}

/** Returns relay's own part of a value. Undefined for a value that is from outside as a whole. */
function ownPart(schema: z.core.$ZodType, value: unknown): unknown {
  if (value === null) return null
  if (schema instanceof z.ZodObject)
    return typeof value === 'object' && !Array.isArray(value) ? separated(schema, value) : undefined
  if (schema instanceof z.ZodArray) {
    if (!Array.isArray(value)) return undefined
    const parts = value.map((each) =>
      each === null ? undefined : ownPart(schema.element, each instanceof Own ? each.text : each),
    )
    return parts.includes(undefined) ? undefined : parts
  }
  return z.safeParse(schema, value).success ? value : undefined
}

function unwrapped(schema: z.core.$ZodType): z.core.$ZodType {
  const isWrapped = schema instanceof z.ZodOptional || schema instanceof z.ZodNullable
  return isWrapped ? unwrapped(schema.unwrap()) : schema
}

/** Converts a value to JSON without marks, since all of it is from outside. */
function plain(value: unknown): unknown {
  if (value instanceof Outside) return plain(value.value)
  if (value instanceof Own) return value.text
  if (Array.isArray(value)) return value.map(plain)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, plain(each)]))
}
