import type { CommonFlags } from '../../settings/prepare.js'

export type SetupFlags = CommonFlags & {
  readonly appHook?: boolean
  readonly browser?: boolean
  readonly oauthApp?: boolean
  readonly org?: string
  readonly yes?: boolean
}
