import { median } from './statistics.js'

/** One line of the results. */
export interface Row {
  readonly what: string
  /** What relay is compared with. */
  readonly baseline: string
  /** Medians over the rounds; empty if nothing was measured. */
  readonly relay: string
  readonly other: string
  /** The ratio or difference of both, or why it was not measured. */
  readonly figure: string
  /** The smallest and the largest figure of a round. */
  readonly spread: string
}

export interface Comparison {
  readonly what: string
  readonly baseline: string
  /** The value that each round measured of relay and of the baseline. */
  readonly relay: readonly number[]
  readonly other: readonly number[]
  readonly unit: '/s' | ' ms' | ' MiB' | ' MiB/s'
  /** How a round's two values are compared. Default: relay's divided by the other's. */
  readonly figure?: 'ratio' | 'difference'
}

export function compare({ what, baseline, relay, other, unit, figure = 'ratio' }: Comparison): Row {
  const values = relay.map((value, round) => {
    const reference = other[round] ?? Number.NaN
    return figure === 'ratio' ? value / reference : value - reference
  })
  return {
    what,
    baseline,
    relay: amount(median(relay), unit),
    other: amount(median(other), unit),
    figure: `${median(values).toFixed(2)}${figure === 'ratio' ? ' ×' : unit}`,
    spread: `${Math.min(...values).toFixed(2)} to ${Math.max(...values).toFixed(2)}`,
  }
}

/** The row of a comparison that was not possible. */
export function notMeasured(what: string, baseline: string, why: string): Row {
  return { what, baseline, relay: '', other: '', figure: `not measured: ${why}`, spread: '' }
}

function amount(value: number, unit: Comparison['unit']): string {
  const digits = value >= 100 ? 0 : value >= 10 ? 1 : 2
  return `${value.toLocaleString('en', { minimumFractionDigits: digits, maximumFractionDigits: digits })}${unit}`
}
