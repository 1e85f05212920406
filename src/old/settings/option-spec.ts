/**
 * One setting: where it can be set and how its text is read. `parse` throws an Error whose message completes "<name>: …" and
 * never repeats a secret.
 */
export interface OptionSpec {
  readonly env: string
  readonly flag?: string
  /** The value of the flag without one. */
  readonly bare?: string
  /** The value of the flag without one, where no other place sets the setting. */
  readonly bareDefault?: string
  readonly help: string
  /** The default in words, if it is not a fixed value. */
  readonly defaultText?: string
  readonly choices?: readonly string[]
  /** Several values: a repeatable flag, one value a line in the environment, a list in files. */
  readonly list?: true
  /** Writes a value as a user would. */
  readonly format?: (value: number) => string
  /** Hides the passwords in a value. */
  readonly mask?: (text: string) => string
  /** Never a flag and never printed; can also be read from the file that `<env>_FILE` names. */
  readonly secret?: true
  /** Can also be read from the file that `<env>_FILE` names, as every secret can. */
  readonly file?: true
  /** Whether relay.json may set it, and to what. It can come with a checkout, whose author can be anyone. */
  readonly project?: 'anything' | 'this machine'
  readonly parse: (text: string) => unknown
}
