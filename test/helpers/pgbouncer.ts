import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { createInterface } from 'node:readline'
import { emptyFolder } from './context.js'
import { PASSWORD, type PostgresServer, UNPRIVILEGED } from './postgres.js'
import { closedPort } from './scripted-server.js'

/** Debian's pgbouncer in front of a server of the tests, with these settings. */
export async function startPgbouncer(
  server: PostgresServer,
  settings: Readonly<Record<string, string>>,
): Promise<AsyncDisposable & { readonly port: number }> {
  const folder = emptyFolder()
  chmodSync(folder, 0o755)
  const [port, users, file] = [
    await closedPort(),
    path.join(folder, 'users'),
    path.join(folder, 'pgbouncer.ini'),
  ]
  writeFileSync(users, `"relay" "${PASSWORD}"\n`)
  const options = {
    listen_addr: '127.0.0.1',
    listen_port: port,
    unix_socket_dir: '',
    auth_type: 'scram-sha-256',
    auth_file: users,
    ...settings,
  }
  const lines = Object.entries(options).map(([name, value]) => `${name} = ${value}`)
  const database = `* = host=127.0.0.1 port=${server.port}`
  writeFileSync(file, ['[databases]', database, '[pgbouncer]', ...lines, ''].join('\n'))
  const owner = process.getuid?.() === 0 ? { uid: UNPRIVILEGED, gid: UNPRIVILEGED } : {}
  const pooler = spawn('pgbouncer', [file], { ...owner, stdio: ['ignore', 'ignore', 'pipe'] })
  await new Promise<void>((resolve, reject) => {
    createInterface(pooler.stderr).on('line', (line) => line.includes('process up') && resolve())
    pooler.once('exit', () => reject(new Error('pgbouncer ended while it started')))
  })
  return {
    port,
    async [Symbol.asyncDispose]() {
      const ended = once(pooler, 'exit')
      pooler.kill('SIGKILL')
      await ended
    },
  }
}
