/** The payload of a synthetic delivery; `now` is when it happens. */
export type Template = (now: number) => Record<string, unknown>

/** By `event` or `event.action`. Of an event's actions the first is the usual one. */
export type Templates = Readonly<Record<string, Template>>

/** Commits that there are nowhere. */
export const BEFORE = 'b1946ac92492d2347c6235b4d2611184b1946ac9'
export const AFTER = '591785b794601e212b260e25925636fd591785b7'
export const TREE = '4b825dc642cb6eb9a060e54bf8d69288fbee4904'

/** UTC, to the second. */
export function timestamp(now: number): string {
  return `${new Date(now).toISOString().slice(0, 19)}Z`
}
