import type { AccountChange } from '../../../auth/accounts.js'
import type { CommandPlace } from '../../../base/command-line.js'
import type { Log } from '../../../base/log.js'
import type { AttemptEvent } from '../../../dispatch/lane.js'
import type { TargetStatus } from '../../../dispatch/target.js'
import type { HookEvent } from '../../../events/hook-event.js'
import type { Reloaded } from '../../../events/status.js'
import type { TunnelStatus } from '../../../instance/protocol.js'
import type { Delivery, Receipt } from '../../../journal/types.js'
import type { HandshakeEvent } from '../../../webhook/refusals.js'
import type { Values } from '../../settings/parse.js'
import type { CommandMessages } from '../../output/output.js'
import type { Line } from '../../output/text.js'
import type { Running } from './running.js'

/** One thing that happens while `relay serve` runs. */
export type ServeItem =
  /** The settings are read. The first item, unless they print a message. */
  | { readonly type: 'starting'; readonly logFormat: Values['logFormat']; readonly place: CommandPlace }
  /** It listens at these addresses, and has its profile. */
  | { readonly type: 'listening'; readonly url: string; readonly sandbox: string | null }
  /** It runs. Tunnels that need longer report their addresses later. */
  | { readonly type: 'running'; readonly running: Running }
  | {
      readonly type: 'delivery'
      readonly delivery: Delivery
      readonly receipt: Receipt
      /** Its targets, with their short names. */
      readonly targets: readonly { readonly id: string; readonly name: string; readonly waitsFor?: string }[]
      /** True if there is any route. */
      readonly hasRoutes: boolean
    }
  /** An attempt at the target of that short name. */
  | { readonly type: 'attempt'; readonly attempt: AttemptEvent; readonly name: string }
  /** A person has given up the waiting forward of an entry to the target with this short name. */
  | { readonly type: 'skipped'; readonly n: number; readonly id: string; readonly name: string }
  | { readonly type: 'target'; readonly target: TargetStatus; readonly name: string }
  | { readonly type: 'tunnel'; readonly tunnel: TunnelStatus; readonly hub?: string | undefined }
  | { readonly type: 'hook'; readonly hook: HookEvent }
  | { readonly type: 'account'; readonly account: AccountChange }
  | { readonly type: 'handshake'; readonly handshake: HandshakeEvent }
  | { readonly type: 'settings'; readonly reloaded: Reloaded }
  | { readonly type: 'settings refused'; readonly error: unknown }
  /** A message of a part of relay. `say`: for a person. Otherwise it is of the log, `isTimed` for that of the service. */
  | {
      readonly type: 'message'
      readonly level: keyof Log | 'say'
      readonly text: Line
      readonly cause?: unknown
      readonly isTimed?: boolean
    }
  /** Items that were not read in time. */
  | { readonly type: 'dropped'; readonly count: number }

/** Text in place of the address of a tunnel without a channel. */
export const ADDRESS_LATER = 'printed below once the tunnel is connected'

/** Messages of a command as items of its stream, so that all are printed in the order in which they were made. */
export function messagesTo(
  push: (item: ServeItem) => void,
  { isTerminal, quiet }: CommandMessages,
): CommandMessages & { readonly timedLog: Log } {
  const log = (isTimed: boolean): Log => {
    const message = (level: keyof Log, text: string, cause?: unknown): void =>
      push({ type: 'message', level, text, cause, isTimed })
    return {
      debug: (text) => message('debug', text),
      info: (text) => message('info', text),
      warn: (text) => message('warn', text),
      error: (text, cause) => message('error', text, cause),
    }
  }
  const warn = (text: Line): void => push({ type: 'message', level: 'warn', text })
  return {
    isTerminal,
    quiet,
    log: log(false),
    timedLog: log(true),
    say: (text) => push({ type: 'message', level: 'say', text }),
    warn,
    // Only results that are printed at once have counts and remarks.
    count: () => {},
    remark: warn,
  }
}
