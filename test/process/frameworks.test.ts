import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { fixtureOf, signedRequest } from 'webhook-relay/testing'
import { codeBlocks } from '../kit/code-blocks.js'
import { type PackedProject, packedProject } from '../kit/packed-project.js'
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
}

describe('a relay in a program with', () => {
  let project: PackedProject
  beforeAll(async () => {
    project = await packedProject(await installed(FRAMEWORKS))
    for (const [name, text] of codeBlocks('docs/library.md', 'js')) {
      const file = path.join(project.folder, name)
      mkdirSync(path.dirname(file), { recursive: true })
      writeFileSync(file, text)
    }
    await project.run('env', 'NEXT_TELEMETRY_DISABLED=1', process.execPath, NEXT, 'build')
  })

  it.each(Object.entries(PROGRAMS))('%s stores and forwards', async (_, argv) => {
    const port = await closedPort()
    const env = { ...process.env, PORT: String(port), WEBHOOK_SECRET: SECRET, NEXT_TELEMETRY_DISABLED: '1' }
    const pushed = path.join(project.folder, 'pushed.json')
    rmSync(pushed, { force: true })
    const program = spawn(process.execPath, argv, { cwd: project.folder, env, stdio: 'ignore' })
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
