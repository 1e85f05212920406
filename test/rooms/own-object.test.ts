import * as fc from 'fast-check'
import { expect, it } from 'vitest'
import { z } from 'zod'
import * as schemas from '../../src/cli/mcp/schemas.js'
import { FROM_OUTSIDE, ownObject, separated } from '../../src/cli/mcp/own-object.js'

const shapes = Object.entries(schemas).flatMap(([name, value]): [string, z.ZodObject][] => {
  if (value instanceof z.ZodObject) return [[name, value]]
  return value === schemas.STATE || value === schemas.SENT ? [[name, ownObject(value)]] : []
})

/** Any value with names of the schema in it, as deep as the schema goes. */
function near(schema: z.core.$ZodType): fc.Arbitrary<unknown> {
  const isWrapped = schema instanceof z.ZodOptional || schema instanceof z.ZodNullable
  if (isWrapped) return near(schema.unwrap())
  const any = fc.jsonValue({ maxDepth: 2 })
  if (schema instanceof z.ZodArray) return fc.oneof(any, fc.array(near(schema.element), { maxLength: 2 }))
  if (!(schema instanceof z.ZodObject)) return any
  const fields = Object.entries(schema.shape).map(([name, field]) => [name, near(field)] as const)
  return fc.oneof({ weight: 3, arbitrary: fc.record(Object.fromEntries(fields), { requiredKeys: [] }) }, any)
}

it('knows the schemas of all tools', () => {
  expect(shapes.map(([name]) => name)).toEqual(
    expect.arrayContaining(['line', 'delivery', 'refused', 'verdict', 'STATE', 'SENT', 'done']),
  )
})

it.each(shapes)('what is separated fits the schema that is announced: %s', (_name, schema) => {
  fc.assert(
    fc.property(near(schema), (value) => {
      fc.pre(typeof value === 'object' && value !== null && !Array.isArray(value))
      const found = schema.safeParse(separated(schema, value))
      expect(found.error).toBeUndefined()
      // Nothing is lost.
      const { [FROM_OUTSIDE]: outside = {}, ...own } = separated(schema, value)
      expect(Object.keys({ ...own, ...Object(outside) }).toSorted()).toEqual(Object.keys(value).toSorted())
    }),
  )
})
