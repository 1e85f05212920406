import type { Context } from '../context.js'

/** How far a long run is. */
export interface Bar {
  step(): void
  end(): void
}

const NONE: Bar = { step() {}, end() {} }
/** Below this many requests nobody needs one. */
const LONG = 50

/** A progress bar on stderr, when a person looks there and the run is long; it leaves nothing behind. */
export async function startBar({ stderr }: Context, total: number, wanted: boolean): Promise<Bar> {
  if (!wanted || stderr.isTTY !== true || total < LONG) return NONE
  const { default: progress } = await import('cli-progress')
  const bar = new progress.SingleBar(
    {
      format: '{bar} {value}/{total}  {eta_formatted} left',
      clearOnComplete: true,
      hideCursor: true,
      // Of a stream it uses no more than ours has.
      stream: Object.assign(Object.create(null), {
        isTTY: true,
        columns: stderr.columns ?? 80,
        write: (text: string) => stderr.write(text),
      }),
    },
    progress.Presets.rect,
  )
  bar.start(total, 0)
  return { step: () => bar.increment(), end: () => bar.stop() }
}
