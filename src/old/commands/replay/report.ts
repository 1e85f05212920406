import type { RelayError } from '../../../base/errors.js'
import { Tally } from '../../../replay/tally.js'
import type { Context } from '../../context.js'
import { printable } from '../../../base/printable.js'
import type { Line } from '../../output/line.js'
import { table } from '../../output/table.js'
import { textWidth } from '../../output/text-width.js'
import type { Destination } from './destination.js'
import { writeJunit } from './junit.js'
import { formatReason, type Result, resultLine, resultObject } from './result.js'
import type { Item } from './select-items.js'
import type { SendFlags } from './send-options.js'
import type { SendPlan } from './send-plan.js'

/** Prints the results of the requests. */
export interface Report {
  /** Whether it prints nothing before the end, which leaves the screen to a progress bar. */
  readonly silent: boolean
  /** Prints `line` instead of the usual one, where it is given. */
  add(result: Result, line?: Line): void
  /**
   * Prints the summary. `stopped` is the reason for an early end; if nothing was sent by then, nothing is printed.
   * @throws RelayError as {@link writeJunit}
   */
  end(stopped?: RelayError): Promise<{ readonly sent: number; readonly failed: number }>
}

type Parts = readonly [Context, SendFlags, SendPlan, Destination, readonly Pick<Item, 'name'>[]]

/** A line for each request for one of the items; with `--times` one for all of them. */
export function createReport(...parts: Parts): Report {
  const [, , { times }] = parts
  return times > 1 ? loadReport(...parts) : lineReport(...parts)
}

/** The columns before the name; a longer line continues below it. */
const VERDICT = 5

function lineReport(...[context, flags, { junit }, { output }, items]: Parts): Report {
  const results: Result[] = []
  let sent = 0
  let failed = 0
  const width = items.reduce((widest, { name }) => Math.max(widest, textWidth(printable(name))), 0)
  let isSaid = false
  return {
    silent: context.stdout.isTTY !== true && flags.quiet !== true,
    add(result, line) {
      sent += 1
      isSaid ||= line !== undefined
      if (!result.ok) failed += 1
      if (junit !== undefined) results.push(result)
      if (flags.json) output.object(resultObject(result))
      else output.result(line ?? resultLine(result, width, output.width), VERDICT)
    },
    async end(stopped) {
      if (failed === 0 && sent > 0 && !isSaid) output.say(`${sent} sent`)
      if (junit !== undefined && (sent > 0 || !stopped)) await writeJunit(context, junit, results, stopped)
      return { sent, failed }
    },
  }
}

/** Failures that are printed at the end of many requests. */
const MAX_FAILURES = 5

function loadReport(...[, flags, , { output }]: Parts): Report {
  const tally = new Tally()
  const failures: string[] = []
  return {
    silent: flags.quiet !== true,
    add({ name, ok, expected, answer }) {
      const { status, error, ms } = answer
      tally.add(ms, String(status ?? error), ok)
      if (ok || failures.length >= MAX_FAILURES) return
      failures.push(`FAIL ${name}  ${status ?? '-'}  expected ${expected}${formatReason(answer)}`)
    },
    async end(stopped) {
      const { totals } = tally
      for (const line of failures) output.say(line)
      const { requests, failed } = totals
      if (requests === 0 && stopped) return { sent: 0, failed: 0 }
      if (flags.json) output.object({ type: 'totals', ...totals })
      else if (requests > 0) for (const line of table(totalRows(totals))) output.result(line)
      return { sent: requests, failed }
    },
  }
}

function totalRows({ requests, seconds, rate, latency, answers }: Tally['totals']): string[][] {
  const { p50, p90, p99, max } = latency
  const counts = Object.entries(answers).map(([answer, count]) => `${answer}: ${count}`)
  return [
    ['requests', `${requests} in ${seconds.toFixed(1)} s, ${rate} a second`],
    ['latency', `p50 ${p50}ms  p90 ${p90}ms  p99 ${p99}ms  max ${max}ms`],
    ['answers', counts.join('  ')],
  ]
}
