import { execFile } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { promisify } from 'node:util'
import { temporaryFolder } from './folder.js'
import { signatureOf } from './push.js'

const run = promisify(execFile)

export interface Load {
  readonly url: string
  readonly body: Uint8Array
  readonly seconds: number
  /** Default: 32. */
  readonly connections?: number
}

/** Milliseconds; `perSecond` counts the requests that were answered. */
export interface Rate {
  readonly requests: number
  readonly perSecond: number
  readonly p50: number
  readonly p99: number
}

/**
 * Posts signed deliveries with unique ids for so long, each connection sending the next when the last was answered. By wrk:
 * it takes a tenth of the processor time of a generator in Node, and here it shares two cores with what it measures.
 * @throws Error when any was not answered with 2xx.
 */
export async function post({ url, body, seconds, connections = 32 }: Load): Promise<Rate> {
  using folder = temporaryFolder()
  const [head, tail] = [path.join(folder.path, 'head'), path.join(folder.path, 'body')]
  writeFileSync(head, requestHead(url, body))
  writeFileSync(tail, body)
  const timing = ['-t1', `-c${connections}`, `-d${seconds}s`]
  const { stdout } = await run('wrk', [...timing, '-s', 'bench/rig/load.lua', url, '--', head, tail])
  const told: Rate & { seconds: number; refused: number; failed: number } = JSON.parse(lastLine(stdout))
  if (told.refused > 0 || told.failed > 0) throw new Error(`not all were accepted: ${lastLine(stdout)}`)
  return { ...told, perSecond: told.requests / told.seconds }
}

/** Up to the delivery's id, to which wrk adds a number. */
function requestHead(url: string, body: Uint8Array): string {
  return [
    'POST /webhook HTTP/1.1',
    `Host: ${new URL(url).host}`,
    'User-Agent: GitHub-Hookshot/bench',
    'Accept: */*',
    'Content-Type: application/json',
    `Content-Length: ${body.length}`,
    'X-GitHub-Event: push',
    `X-Hub-Signature-256: ${signatureOf(body)}`,
    `X-GitHub-Delivery: ${randomUUID()}-`,
  ].join('\r\n')
}

function lastLine(text: string): string {
  return text.trimEnd().split('\n').at(-1) ?? ''
}
