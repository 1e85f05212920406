import type { Context } from '../../context.js'

/** The progress of a long run. */
export interface Bar {
  step(): void
  end(): void
}

const NONE: Bar = { step() {}, end() {} }
/** Requests below which there is no bar. */
const MIN_REQUESTS = 50

/** A progress bar on stderr, if that is a terminal and the run is long. It clears itself at the end. */
export async function startBar({ stderr }: Context, total: number, enabled: boolean): Promise<Bar> {
  if (!enabled || stderr.isTTY !== true || total < MIN_REQUESTS) return NONE
  const { default: progress } = await import('cli-progress')
  const bar = new progress.SingleBar(
    {
      format: '{bar} {value}/{total}  {eta_formatted} left',
      clearOnComplete: true,
      hideCursor: true,
      // The only members of a stream that it uses.
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
