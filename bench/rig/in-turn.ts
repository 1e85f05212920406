/**
 * Measures all sides once per round, in alternating order, so that other load on the machine affects all of them. The first round
 * warms up and does not count. A side that cannot be measured has no values.
 */
export async function inTurn<Side extends string, Measured>(
  rounds: number,
  sides: Readonly<Record<Side, (() => Promise<Measured>) | undefined>>,
): Promise<Record<Side, Measured[]>> {
  const names = Object.keys(sides).filter((name): name is Side => Object.hasOwn(sides, name))
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- fromEntries knows no more than string
  const measured = Object.fromEntries(names.map((name) => [name, []])) as unknown as Record<Side, Measured[]>
  for (let round = -1; round < rounds; round++) {
    for (const name of round % 2 ? names.toReversed() : names) {
      const value = await sides[name]?.()
      if (round >= 0 && value !== undefined) measured[name].push(value)
    }
  }
  return measured
}
