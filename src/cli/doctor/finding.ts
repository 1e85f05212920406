/** What a check found. Texts name no secret. */
export interface Finding {
  readonly check: string
  /** `none`: it does not apply here. */
  readonly state: 'ok' | 'wrong' | 'none'
  readonly text: string
  /** What mends what is wrong: a command, or what to set. */
  readonly mend?: string
}

/** What a check says of itself; its name is put before it by who runs it. */
export type Verdict = Omit<Finding, 'check'>

export const ok = (text: string): Verdict => ({ state: 'ok', text })
export const wrong = (text: string, mend: string): Verdict => ({ state: 'wrong', text, mend })
export const none = (text: string): Verdict => ({ state: 'none', text })
