/** A count as people read it: 10,000. */
export function thousands(count: number): string {
  return count.toLocaleString('en')
}
