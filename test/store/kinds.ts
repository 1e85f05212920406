import type { OpenOptions } from '../../src/store/open.js'

/** The ways to open a database that all must do the same: in memory, in a file, and in a file by way of a thread. */
export const KINDS = ['memory', 'file', 'thread'] as const

export type Kind = (typeof KINDS)[number]

export function optionsOf(kind: Kind, folder: string): OpenOptions {
  return kind === 'thread' ? { kind: 'file', folder, thread: true } : { kind, folder }
}
