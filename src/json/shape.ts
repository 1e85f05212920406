/** Whether a field's value is what it must be. */
type Check = (value: unknown) => boolean

/**
 * Reads JSON values as they lie in the store: the fields that are named, or undefined for what lacks one or has something else in its
 * place. What a row of ours can be is so little that a library for it would take longer to load than a short command needs.
 */
export function shape<Row extends object>(
  checks: Readonly<Record<keyof Row & string, Check>>,
): (value: unknown) => Row | undefined {
  const fields: [string, Check][] = Object.entries(checks)
  return (value) => {
    if (typeof value !== 'object' || value === null) return undefined
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- any object can be read so
    const given = value as Readonly<Record<string, unknown>>
    if (!fields.every(([name, check]) => check(given[name]))) return undefined
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- it is what was checked
    return Object.fromEntries(fields.map(([name]) => [name, given[name]])) as Row
  }
}

export const isText = (value: unknown): value is string => typeof value === 'string'

export const isPositive = (value: unknown): boolean => Number.isSafeInteger(value) && Number(value) > 0
