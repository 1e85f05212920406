import type { RelayError } from '../../base/errors.js'
import { Tally } from '../../replay/tally.js'
import type { Context } from '../context.js'
import { printable } from '../output.js'
import { table } from '../table.js'
import type { Destination } from './destination.js'
import type { SendPlan } from './flags.js'
import type { SendFlags } from './send-options.js'
import { writeJunit } from './junit.js'
import { type Result, resultLine, resultObject, told } from './result.js'

/** Tells what became of the requests. */
export interface Report {
  /** Whether nothing is printed meanwhile, so that a bar may stand there. */
  readonly leavesRoom: boolean
  add(result: Result): void
  /** `stopped` is why it ends before its time; when nothing has been sent till then, nothing is told. @throws RelayError as {@link writeJunit} */
  end(stopped?: RelayError): Promise<{ readonly sent: number; readonly failed: number }>
}

type Parts = readonly [Context, SendFlags, SendPlan, Destination]

/** A line for each request; with `--times` one for all of them. */
export function createReport(...parts: Parts): Report {
  const [, , { times }] = parts
  return times > 1 ? loadReport(...parts) : lineReport(...parts)
}

function lineReport(...[context, flags, { junit }, { output }]: Parts): Report {
  const kept: Result[] = []
  let sent = 0
  let failed = 0
  let width = 0
  return {
    leavesRoom: context.stdout.isTTY !== true && flags.quiet !== true,
    add(result) {
      sent += 1
      if (!result.ok) failed += 1
      if (junit !== undefined) kept.push(result)
      width = Math.max(width, printable(result.name).length)
      if (flags.json) output.object(resultObject(result))
      else output.result(resultLine(result, width, output.resultPaint))
    },
    async end(stopped) {
      if (failed === 0 && sent > 0) output.say(`${sent} sent`)
      if (junit !== undefined && (sent > 0 || !stopped)) await writeJunit(context, junit, kept, stopped)
      return { sent, failed }
    },
  }
}

/** The first failures of many requests are shown, at the end. */
const MAX_SHOWN = 5

function loadReport(...[, flags, , { output }]: Parts): Report {
  const tally = new Tally()
  const shown: string[] = []
  return {
    leavesRoom: flags.quiet !== true,
    add({ name, ok, expected, answer }) {
      const { status, error, ms } = answer
      tally.add(ms, String(status ?? error), ok)
      if (ok || shown.length >= MAX_SHOWN) return
      shown.push(`FAIL ${printable(name)}  ${status ?? '-'}  expected ${expected}${told(answer)}`)
    },
    async end(stopped) {
      const totals = tally.totals
      for (const line of shown) output.say(line)
      const { requests, failed, seconds, rate, latency, answers } = totals
      if (requests === 0 && stopped) return { sent: 0, failed: 0 }
      if (flags.json) output.object({ type: 'totals', ...totals })
      else if (requests > 0) {
        const rows = [
          ['requests', `${requests} in ${seconds.toFixed(1)} s, ${rate} a second`],
          [
            'latency',
            `p50 ${latency.p50}ms  p90 ${latency.p90}ms  p99 ${latency.p99}ms  max ${latency.max}ms`,
          ],
          [
            'answers',
            Object.entries(answers)
              .map(([answer, count]) => `${answer}: ${count}`)
              .join('  '),
          ],
        ]
        for (const line of table(rows)) output.result(printable(line))
      }
      return { sent: requests, failed }
    },
  }
}
