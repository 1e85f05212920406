import type { Server } from './server.js'

/** Has one of bench/programs do what it can, and gives what it tells. */
export async function ask(
  { url }: Server,
  what: string,
  how: Readonly<Record<string, string | number>> = {},
): Promise<{ readonly at: number; readonly p50: number }> {
  const asked = new URL(what, url)
  for (const [name, value] of Object.entries(how)) asked.searchParams.set(name, `${value}`)
  const answer = await fetch(asked)
  const told: { at: number; p50: number } = JSON.parse(await answer.text())
  return told
}
