import { writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import path from 'node:path'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Certificate } from './certificate.js'
import { codeBlocks } from './code-blocks.js'
import { Daemon } from './daemon.js'
import { emptyFolder } from './folder.js'
import { closedPort } from './ports.js'
import { LIMIT_MS } from './limit.js'

/** Where relay's documentation has the configuration. */
export const DEPLOY = 'docs/deploy.md'
/** Milliseconds until all relays must be in use. */

export type Haproxy = Awaited<ReturnType<typeof haproxy>>

export interface HaproxyOptions {
  /** The ports of the relays on 127.0.0.1. */
  readonly ports: readonly number[]
  /** What HAProxy shows clients. Default: it speaks HTTP. */
  readonly certificate?: Certificate
}

/**
 * Debian's HAProxy with the configuration of {@link DEPLOY}, in which only addresses are replaced: its own, those of the relays, and
 * that of the trusted network, which is 127.0.0.1 alone. Resolves once every relay is in use.
 */
export async function haproxy(options: HaproxyOptions) {
  const port = await closedPort()
  const folder = emptyFolder()
  const file = path.join(folder, 'haproxy.cfg')
  writeFileSync(file, configuration(port, folder, options))
  const daemon = new Daemon('haproxy', ['-db', '-f', file])
  /** Resolves once every relay is in use. */
  const allInUse = (): Promise<void> => areInUse(daemon, path.join(folder, 'socket'), options.ports.length)
  await allInUse()
  const scheme = options.certificate ? 'https' : 'http'
  return { url: `${scheme}://127.0.0.1:${port}`, port, allInUse, [Symbol.asyncDispose]: () => daemon.stop() }
}

function configuration(port: number, folder: string, { ports, certificate }: HaproxyOptions): string {
  const written = codeBlocks(DEPLOY).get('haproxy.cfg') ?? ''
  const pem = path.join(folder, 'relay.pem')
  if (certificate) writeFileSync(pem, certificate.cert + certificate.key)
  const servers = ports.map((each, i) => `  server relay${i} 127.0.0.1:${each} check\n`).join('')
  const changes: readonly (readonly [RegExp, string])[] = [
    [/bind :443 ssl crt \S+/, `bind 127.0.0.1:${port}${certificate ? ` ssl crt ${pem}` : ''}`],
    [/src 127\.0\.0\.0\/8 10\.0\.0\.0\/8/, 'src 127.0.0.1'],
    [/(?: {2}server \w+ 10\.0\.0\.\d+:8787 check\n)+/, servers],
    [/^global\n/m, `global\n  stats socket ${folder}/socket\n`],
  ]
  return changes.reduce((before, [pattern, after]) => {
    if (!pattern.test(before)) throw new Error(`${DEPLOY} has no ${pattern.source}`)
    return before.replace(pattern, after)
  }, written)
}

/** Waits until HAProxy has found so many relays ready. */
async function areInUse(daemon: Daemon, socket: string, count: number): Promise<void> {
  for (const until = performance.now() + LIMIT_MS; ; await sleep(50)) {
    daemon.check()
    const found = await statistics(socket)
    if (found.split('\n').filter((line) => /^relays,relay.*,UP,/.test(line)).length >= count) return
    if (performance.now() > until) throw new Error(`HAProxy does not use ${count} relays:\n${found}`)
  }
}

/** What the running HAProxy says of its servers; nothing before it listens. */
async function statistics(socket: string): Promise<string> {
  try {
    const connection = connect(socket)
    connection.end('show stat\n')
    return await text(connection)
  } catch {
    return ''
  }
}
