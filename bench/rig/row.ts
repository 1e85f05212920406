import { median } from './statistics.js'

/** One line of the results. */
export interface Row {
  readonly what: string
  /** What relay is compared with. */
  readonly beside: string
  /** What was measured of both, and the figure that comes of it; empty when nothing was. Medians over the rounds. */
  readonly relay: string
  readonly other: string
  readonly figure: string
  /** The smallest and the largest figure of a round. */
  readonly spread: string
  readonly target: string
  readonly verdict: string
}

export interface Target {
  readonly bound: 'at least' | 'at most'
  readonly value: number
}

export const atLeast = (value: number): Target => ({ bound: 'at least', value })
export const atMost = (value: number): Target => ({ bound: 'at most', value })

export interface Comparison {
  readonly what: string
  readonly beside: string
  /** What each round measured of relay and of the other. */
  readonly relay: readonly number[]
  readonly other: readonly number[]
  readonly unit: '/s' | ' ms' | ' MiB' | ' MiB/s'
  /** What is made of a round's two values. Default: relay's divided by the other's. */
  readonly figure?: 'ratio' | 'difference'
  /** None: for information. */
  readonly target?: Target
}

export function compare({ what, beside, relay, other, unit, figure = 'ratio', target }: Comparison): Row {
  const values = relay.map((value, round) => {
    const beside = other[round] ?? Number.NaN
    return figure === 'ratio' ? value / beside : value - beside
  })
  const show = (value: number): string => `${value.toFixed(2)}${figure === 'ratio' ? ' ×' : unit}`
  return {
    what,
    beside,
    relay: amount(median(relay), unit),
    other: amount(median(other), unit),
    figure: show(median(values)),
    spread: `${Math.min(...values).toFixed(2)} to ${Math.max(...values).toFixed(2)}`,
    target: target ? `${target.bound === 'at least' ? '≥' : '≤'} ${show(target.value)}` : '',
    verdict: target ? judge(median(values), target, show) : 'for information',
  }
}

/** A comparison that could not be made. */
export function notMeasured(what: string, beside: string, why: string): Row {
  const nothing = { relay: '', other: '', figure: '', spread: '', target: '' }
  return { what, beside, ...nothing, verdict: `not measured: ${why}` }
}

function judge(value: number, { bound, value: wanted }: Target, show: (value: number) => string): string {
  const short = bound === 'at least' ? wanted - value : value - wanted
  return short <= 0 ? 'met' : `missed by ${show(short)}`
}

function amount(value: number, unit: Comparison['unit']): string {
  const digits = value >= 100 ? 0 : value >= 10 ? 1 : 2
  return `${value.toLocaleString('en', { minimumFractionDigits: digits, maximumFractionDigits: digits })}${unit}`
}
