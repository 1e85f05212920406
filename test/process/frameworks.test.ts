import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { fixtureOf, signedRequest } from 'webhook-relay/testing'
import { codeBlocks } from '../kit/code-blocks.js'
import { type PackedProject, packedProject } from '../kit/packed-project.js'
import { emptyFolder } from '../kit/folder.js'
import { closedPort } from '../kit/ports.js'
import { installed } from '../kit/tools.js'

const FRAMEWORKS = {
  '@hono/node-server': '2.1.8',
  express: '5.3.0',
  fastify: '5.12.8',
  hono: '4.13.19',
  next: '16.4.6',
  react: '19.3.0',
  'react-dom': '19.3.0',
}
const SECRET = 'a secret for tests'
const NEXT = 'node_modules/next/dist/bin/next'

/** How each program of docs/library.md is run; Next.js is built first. */
const PROGRAMS: Readonly<Record<string, readonly string[]>> = {
  Express: ['with-express.js'],
  Fastify: ['with-fastify.js'],
  Hono: ['with-hono.js'],
  'Next.js': [NEXT, 'start', '--hostname', '127.0.0.1'],
  'Next.js, standalone': ['server.js'],
}

describe('a relay in a program with', () => {
  let project: PackedProject
  /** Next.js's copy of the program with only the files that it found it to need, away from all others. */
  const standalone = path.join(emptyFolder(), 'standalone')
  beforeAll(async () => {
    project = await packedProject(await installed(FRAMEWORKS))
    for (const [name, text] of codeBlocks('docs/library.md', 'js')) {
      const file = path.join(project.folder, name)
      mkdirSync(path.dirname(file), { recursive: true })
      writeFileSync(file, text)
    }
    const config = path.join(project.folder, 'next.config.mjs')
    const more = `output: 'standalone', outputFileTracingRoot: ${JSON.stringify(project.folder)},`
    writeFileSync(config, readFileSync(config, 'utf8').replace('{', `{ ${more}`))
    await project.run('env', 'NEXT_TELEMETRY_DISABLED=1', process.execPath, NEXT, 'build')
    renameSync(path.join(project.folder, '.next/standalone'), standalone)
  })

  it.each(Object.entries(PROGRAMS))('%s stores and forwards', async (_, argv) => {
    const port = await closedPort()
    const own = { PORT: String(port), HOSTNAME: '127.0.0.1', WEBHOOK_SECRET: SECRET }
    const env = { ...process.env, ...own, NEXT_TELEMETRY_DISABLED: '1' }
    const cwd = argv.includes('server.js') ? standalone : project.folder
    const pushed = path.join(cwd, 'pushed.json')
    rmSync(pushed, { force: true })
    const program = spawn(process.execPath, argv, { cwd, env, stdio: 'ignore' })
    const ended = once(program, 'exit')
    try {
      const url = `http://127.0.0.1:${port}/hooks/github`
      const push = fixtureOf('push')
      const send = async (options: object): Promise<unknown> => {
        const answer = await fetch(signedRequest(push, { url, secret: SECRET, ...options }))
        return [answer.status, await answer.text()]
      }
      await expect
        .poll(() => send({ tamper: 'body' }).catch(() => 'not yet'))
        .toEqual([401, '{"error":"Invalid signature"}'])
      expect(await send({ set: { ref: 'refs/heads/x' } })).toEqual([200, '{"ok":true}'])
      await expect.poll(() => existsSync(pushed) && readFileSync(pushed, 'utf8')).toContain('"refs/heads/x"')
    } finally {
      program.kill()
      await ended
    }
  })
})
