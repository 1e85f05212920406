/** The result of a check. Its texts contain no secret. */
export interface CheckResult {
  /** `skip`: the check does not apply. */
  readonly state: 'ok' | 'fail' | 'skip'
  readonly text: string
  /** How to fix a failure: a command, or what to set. */
  readonly fix?: string
}

export type NamedResult = CheckResult & { readonly check: string }

/** Checks by their names, in the order in which they are shown. */
export type Checks = Readonly<Record<string, () => CheckResult | Promise<CheckResult>>>

export const ok = (text: string): CheckResult => ({ state: 'ok', text })
export const fail = (text: string, fix: string): CheckResult => ({ state: 'fail', text, fix })
export const skip = (text: string): CheckResult => ({ state: 'skip', text })
