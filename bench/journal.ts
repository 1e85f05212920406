// What a long journal costs: memory of the service that fills it, `relay log` with each filter, and intake.
import { closedPort } from '../test/kit/ports.js'
import { delivery, load, smallPush, Target } from './load.js'
import { type Benchmark, type Figures, measure, pair, Relay, row, type Scope, thousands } from './rig.js'

const ROUNDS = 5
const SECONDS = 2
const COUNT = { short: 300, usual: 100_000, full: 1_000_000 }
const FEW = { short: 100, usual: 10_000, full: 10_000 }
/** The first deliveries of the journal: so many of each event in `RARE`. */
const RARE_COUNT = 10
const BULK = ['octo/demo', 'octo/site', 'octo/api'].map((repo) => delivery('push', smallPush(repo)))
const RARE = {
  issues: {
    action: 'opened',
    issue: { number: 7, title: 'a needle' },
    repository: { full_name: 'octo/rare' },
  },
  release: { action: 'published', repository: { full_name: 'octo/demo' } },
  star: { action: 'created', repository: { full_name: 'octo/demo' } },
}

/** Stands for an instant shortly after the rare ones. */
const EARLY = 'early'
/** Of each filter of `relay log`: the newest 20, or few of which only the oldest match. */
const FILTERS: readonly (readonly string[])[] = [
  [],
  ['--last', '1000'],
  ['--event', 'release'],
  ['--event', 'issues.opened'],
  ['--repo', 'octo/rare'],
  ['--status', 'succeeded'],
  ['--status', 'failed'],
  ['--status', 'waiting'],
  ['--status', 'none'],
  ['--failed'],
  ['--text', 'needle'],
  ['--since', '1d'],
  ['--until', EARLY],
]

export const journal: Benchmark = {
  about: `
A journal of ${thousands(COUNT.usual)} deliveries of 1 KB (${thousands(COUNT.full)} with --full), filled
through intake. The oldest are ${RARE_COUNT} each of three events, which were forwarded, refused by their
target, or still wait for it. The others are pushes that have no target. Memory: RssAnon of the service that
was filled. Wall time of \`relay log\` with each filter, which prints the newest 20 or the few oldest; for
these it must read the whole journal, or an index. Intake: 32 connections for ${SECONDS} s. ${ROUNDS} rounds;
filled once.`,

  async run({ size, rounds }, scope) {
    const [few, count] = [FEW[size], COUNT[size]]
    const seconds = size === 'short' ? 0.2 : SECONDS
    const target = await Target.start(scope)
    const journals = await pair((build) => fill(scope, build, target, { few, count }))
    const { relay, earlier } = journals
    const rows = Object.entries(relay.figures).map(([what, value]) =>
      row(what, [value], earlier && [earlier.figures[what] ?? Number.NaN]),
    )
    for (const args of FILTERS) {
      const what = `${['relay', 'log', ...args].join(' ')}, ms`
      const figures = async ({ relay: filled, early }: Filled) => ({
        [what]: (await filled.run(['log', ...args.map((arg) => (arg === EARLY ? early : arg))])).ms,
      })
      rows.push(...(await measure(rounds(ROUNDS), journals, figures)))
    }
    for (const journal of [relay, earlier]) await journal?.relay.serve()
    const intake = async ({ relay: { url } }: Filled): Promise<Figures> => ({
      'intake, deliveries/s': (await load(url, { deliveries: BULK, seconds })).perSecond,
    })
    return [...rows, ...(await measure(rounds(ROUNDS), journals, intake))]
  },
}

interface Filled {
  readonly relay: Relay
  readonly figures: Figures
  /** What {@link EARLY} stands for. */
  readonly early: string
}

async function fill(
  scope: Scope,
  build: string,
  target: Target,
  { few, count }: { readonly few: number; readonly count: number },
): Promise<Filled> {
  const refusing = await Target.start(scope)
  refusing.status = 422
  const down = `http://127.0.0.1:${await closedPort()}`
  const routes = [`issues=${target.url}`, `release=${refusing.url}`, `star=${down}`]
  const relay = await new Relay(scope, build).serve(...routes.flatMap((route) => ['--forward', route]))
  for (const [event, payload] of Object.entries(RARE))
    await load(relay.url, { deliveries: [delivery(event, payload)], count: RARE_COUNT })
  await load(relay.url, { deliveries: BULK, count: few })
  const early = new Date().toISOString()
  const before = relay.memory
  const { perSecond } = await load(relay.url, { deliveries: BULK, count: count - few - 3 * RARE_COUNT })
  const figures = {
    'filled, deliveries/s': perSecond,
    [`memory after ${thousands(few)}, MiB`]: before,
    [`memory after ${thousands(count)}, MiB`]: relay.memory,
  }
  await relay.stop()
  return { relay, figures, early }
}
