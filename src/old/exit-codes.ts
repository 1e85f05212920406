/** The codes that relay exits with. `base/errors.ts` says which failure has which. */
export const EXIT_CODES = {
  0: 'success',
  1: 'failure',
  2: 'usage or settings error, also a profile that does not exist',
  3: 'a target or an expectation failed',
  4: 'sign-in needed',
  5: 'signature invalid',
  6: 'nothing matched',
  7: 'timed out',
  8: 'code host or network refused',
  130: 'interrupted',
} as const

export type ExitCode = keyof typeof EXIT_CODES

/** Every command can end with these. */
const COMMON = [0, 1, 2] as const

/** The codes of a command with their meanings, in order. */
export function exitCodes(
  codes: readonly (ExitCode | readonly [ExitCode, string])[] = [],
): [ExitCode, string][] {
  const own = new Map(codes.map((code) => (typeof code === 'number' ? [code, EXIT_CODES[code]] : code)))
  const all = new Map<ExitCode, string>([...COMMON.map((code) => [code, EXIT_CODES[code]] as const), ...own])
  return [...all].toSorted(([one], [other]) => one - other)
}
