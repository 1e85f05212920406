import type { Server } from './server.js'

/** Calls one of bench/programs and returns its answer. */
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
