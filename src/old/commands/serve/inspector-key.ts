import { toRelayError } from '../../../base/errors.js'
import type { Serving } from '../../../serve/serve.js'
import { isRemote } from '../../browser/ssh.js'
import type { Context } from '../../context.js'
import type { Output } from '../../output/output.js'

/** What the key `i` does: opens the inspector in the browser. Undefined where there is no inspector. */
export function inspectorKey(
  { env, signal }: Context,
  { url, relay }: Serving,
  output: Output,
  home: string,
): (() => void) | undefined {
  const { inspector } = relay
  if (!inspector) return undefined
  let opening: Promise<void> | undefined
  const open = async (): Promise<void> => {
    const { openInspector } = await import('../../browser/open-inspector.js')
    const opened = await inspector()
    const code = opened.issueCode()
    const isPending = async (): Promise<boolean> => opened.isPending(code)
    const result = isRemote(env)
      ? 'not started'
      : await openInspector({ url, code, isPending }, { home, env, signal })
    if (result === 'opened') output.say('The inspector is open in your browser')
    else
      output.say(
        `No browser opened it. Open ${url}/inspect/ yourself, with the code of relay inspect --no-browser`,
      )
  }
  const report = (error: unknown): void => {
    if (!signal.aborted)
      output.log.error(`the inspector could not be opened: ${toRelayError(error).message}`, error)
  }
  return () => {
    // One at a time: the key may be held down.
    opening ??= open()
      .catch(report)
      .finally(() => (opening = undefined))
  }
}
