import { readFileSync } from 'node:fs'

/** 4,096: with 16 KiB of headers for each, 64 MiB. */
const MAX_CONNECTIONS = 4_096
/**
 * A quarter of the file descriptors. relay and its sandbox have a listener each, which leaves half for the store, targets
 * and commands.
 */
const DESCRIPTOR_SHARE = 1 / 4

/**
 * Limit for a listener's open connections. `limits` is the text of Linux's `/proc/self/limits` (proc(5)); on other systems,
 * which have no such file, the limit is 4,096.
 */
export function maxConnections(limits = readLimits()): number {
  const [, descriptors] = /^Max open files +(\d+) /m.exec(limits) ?? []
  if (descriptors === undefined) return MAX_CONNECTIONS
  return Math.max(1, Math.min(MAX_CONNECTIONS, Math.floor(Number(descriptors) * DESCRIPTOR_SHARE)))
}

function readLimits(): string {
  try {
    return readFileSync('/proc/self/limits', 'latin1')
  } catch {
    return ''
  }
}
