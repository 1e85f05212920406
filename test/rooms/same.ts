import { expect } from 'vitest'

/** Within a law, where an expectation is part of one of many steps. */
export function same(actual: unknown, wanted: unknown): void {
  expect(actual).toEqual(wanted)
}
