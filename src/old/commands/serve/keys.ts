import type { Serving } from '../../../serve/serve.js'
import type { Context } from '../../context.js'
import { bold, dim, type Line } from '../../output/line.js'
import type { Output } from '../../output/output.js'
import { waitingText } from './waiting.js'

interface Key {
  readonly key: string
  readonly help: string
  run(): void
}

export interface KeyActions {
  /** The short name of a target. */
  readonly nameOf: (id: string) => string
  readonly quit: () => void
  /** Opens the inspector; undefined where there is none. */
  readonly inspect: (() => void) | undefined
}

/** The keys of a running `serve`, where it has a terminal. Undefined where it has none. */
export function listenToKeys(
  context: Context,
  serving: Pick<Serving, 'targets' | 'retryNow'>,
  output: Output,
  { nameOf, quit, inspect }: KeyActions,
): Disposable | undefined {
  const keys: readonly Key[] = [
    {
      key: 'r',
      help: 'retry what waits now',
      run() {
        const waiting = waitingText(serving.targets(), nameOf)
        output.say(waiting === undefined ? 'Nothing is waiting' : `Trying again now: ${waiting}`)
        serving.retryNow()
      },
    },
    ...(inspect ? [{ key: 'i', help: 'open the inspector', run: inspect }] : []),
    { key: 'q', help: 'quit', run: quit },
    { key: '?', help: 'this list', run: () => output.say(keysLine(keys)) },
    // To set off what comes from what was there.
    { key: '\r', help: '', run: () => output.say('') },
  ]
  const stop = context.onKey((pressed) => keys.find(({ key }) => key === pressed)?.run())
  return stop && { [Symbol.dispose]: stop }
}

function keysLine(keys: readonly Key[]): Line {
  return keys
    .filter(({ help }) => help !== '')
    .map(({ key, help }, i): Line => [i === 0 ? '' : dim('  ·  '), bold(key), ` ${help}`])
}
