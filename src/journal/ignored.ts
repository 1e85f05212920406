/** Why an entry was forwarded to no target: `ignored by push`, or `also came as #12`. */
export function ignoredText(ignoredBy: string): string {
  return ignoredBy.startsWith('#') ? `also came as ${ignoredBy}` : `ignored by ${ignoredBy}`
}
