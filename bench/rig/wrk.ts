import { execFile } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { promisify } from 'node:util'
import { temporaryFolder } from './folder.js'

const run = promisify(execFile)

export interface Load {
  readonly url: string
  /** The request in the two parts between which a number is put, which makes it unique. */
  readonly request: readonly [string, string | Uint8Array]
  readonly seconds: number
  /** Upper limit of random numbers. Default: numbers count up. */
  readonly upTo?: number
}

/** Milliseconds; all requests were answered, `refused` of them with another status than 2xx. */
export interface Rate {
  readonly requests: number
  readonly refused: number
  readonly perSecond: number
  readonly p50: number
  readonly p99: number
}

const SCRIPT = 'bench/rig/wrk.lua'
const CONNECTIONS = 32
/** Longer than a slow answer takes, which is measured and not counted as a failure. */
const TIMEOUT_S = 30

/**
 * Sends requests for so long over 32 connections, on each the next when the last was answered. By wrk: it takes a third of
 * the processor time of a generator in Node, and here it shares the processors with what it measures.
 * @throws Error when a connection failed.
 */
export async function drive({ url, request: [head, tail], seconds, upTo }: Load): Promise<Rate> {
  using folder = temporaryFolder()
  const files = [path.join(folder.path, 'head'), path.join(folder.path, 'tail')] as const
  writeFileSync(files[0], head)
  writeFileSync(files[1], tail)
  const flags = ['-t1', `-c${CONNECTIONS}`, `-d${seconds}s`, `--timeout=${TIMEOUT_S}s`]
  const { stdout } = await run('wrk', [
    ...flags,
    '-s',
    SCRIPT,
    url,
    '--',
    ...files,
    ...(upTo ? [`${upTo}`] : []),
  ])
  const last = stdout.trimEnd().split('\n').at(-1) ?? ''
  const told: Rate & { seconds: number; failed: number } = JSON.parse(last)
  if (told.failed > 0) throw new Error(`${told.failed} requests to ${url} failed`)
  return { ...told, perSecond: told.requests / told.seconds }
}
