import { describe, expect, it } from 'vitest'
import type { Operation } from '../../src/sandbox/faults.js'
import { type HookHost, startHookHost } from '../helpers/hook-host.js'
import { asked, interrupt, INTERRUPTED, LATE, NOW, SLOW } from '../helpers/interrupt.js'
import type { Ended } from '../helpers/program.js'
import { closedPort } from '../helpers/scripted-server.js'
import { journalOf, textOf } from '../helpers/serve.js'
import { startTarget } from '../helpers/target.js'

/** The addresses of the hooks that `relay hook list` shows. */
async function listed(host: HookHost): Promise<string[]> {
  const { out } = await host.relay('hook', 'list', '--json')
  return out.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line).url]))
}
const urlsOf = async (host: HookHost): Promise<string[]> => (await host.hooks()).map(({ url }) => url)

const ADDRESS = 'http://127.0.0.1:9/webhook'
const ADD = ['hook', 'add', 'octo/demo', '--url', ADDRESS]
const REMOVE = ['hook', 'remove', 'octo/demo']

/** Runs a command, and presses Ctrl-C during the request, which the sandbox answers too late. */
async function interruptAt(
  host: HookHost,
  argv: readonly string[],
  operation: Operation,
  faults: readonly (typeof SLOW | typeof LATE | undefined)[],
  request: RegExp,
): Promise<Ended> {
  const since = host.sandbox.requests.length
  for (const fault of faults) host.sandbox.faults.next(operation, fault ?? NOW)
  await using program = host.start(...argv)
  const ended = await interrupt(program, asked(host.sandbox, request, since))
  host.sandbox.faults.clear()
  return ended
}

describe('Ctrl-C during relay hook add', () => {
  it.each([
    ['while it reads the hooks', [SLOW], /^GET .*\/hooks$/, []],
    ['before the code host makes the hook', [undefined, SLOW], /^POST .*\/hooks$/, []],
    ['after the code host made the hook', [undefined, LATE], /^POST .*\/hooks$/, [ADDRESS]],
  ] as const)('%s: nothing is there that hook list does not show', async (_, faults, request, made) => {
    await using host = await startHookHost()
    expect(await interruptAt(host, ADD, 'hook', faults, request)).toMatchObject(INTERRUPTED)
    expect(await urlsOf(host)).toEqual(made)
    expect(await listed(host)).toEqual(expect.arrayContaining([...made]))
    expect(await host.relay(...ADD)).toMatchObject({ code: 0 })
    expect([await urlsOf(host), await listed(host)]).toEqual([[ADDRESS], [ADDRESS]])
  })
})

describe('Ctrl-C during relay hook remove', () => {
  it.each([
    ['while it reads the hooks', [SLOW], /^GET .*\/hooks$/, [ADDRESS]],
    ['before the code host removes the hook', [undefined, SLOW], /^DELETE /, [ADDRESS]],
    ['after the code host removed the hook', [undefined, LATE], /^DELETE /, []],
  ] as const)('%s: the next one removes the rest', async (_, faults, request, left) => {
    await using host = await startHookHost()
    await host.relay(...ADD)
    expect(await interruptAt(host, REMOVE, 'hook', faults, request)).toMatchObject(INTERRUPTED)
    expect([await urlsOf(host), await listed(host)]).toEqual([left, [ADDRESS]])
    expect((await host.relay(...REMOVE)).code).toBe(left.length > 0 ? 0 : 6)
    expect([await urlsOf(host), await listed(host)]).toEqual([[], []])
  })
})

describe('Ctrl-C during relay hook test', () => {
  it.each([
    ['while it reads the hooks', [SLOW], /^GET .*\/hooks$/],
    ['while it asks for the ping', [undefined, LATE], /^POST .*\/pings$/],
  ] as const)('%s: the next one works', async (_, faults, request) => {
    await using host = await startHookHost()
    await using serving = host.serve('--hook', 'octo/demo')
    await serving.object({ type: 'hook', state: 'ready' })
    const test = ['hook', 'test', 'octo/demo']
    expect(await interruptAt(host, test, 'hook', faults, request)).toMatchObject(INTERRUPTED)
    expect(await host.relay(...test)).toMatchObject({ code: 0, out: expect.stringContaining('arrived') })
  })

  it('while it waits for the ping to arrive', async () => {
    await using host = await startHookHost()
    await using serving = host.serve()
    await serving.url()
    await using target = await startTarget()
    await host.relay('hook', 'add', 'octo/demo', '--url', target.url)
    await target.has(1)
    await using program = host.start('hook', 'test', 'octo/demo')
    expect(await interrupt(program, target.has(2))).toMatchObject(INTERRUPTED)
    expect(await listed(host)).toEqual([`${target.url}/`])
  })
})

describe('relay serve --hook --catch-up that ends while it catches up', () => {
  it.each(['SIGTERM', 'SIGKILL'] as const)(
    'by %s: the next start gets the rest, each once',
    async (signal) => {
      await using host = await startHookHost()
      const flags = ['--hook', 'octo/demo', '--catch-up']
      {
        await using program = host.serve(...flags)
        await program.object({ type: 'hook', state: 'caught up' })
        await program.stop('SIGKILL')
      }
      await host.comment(0, 5)
      const [hook] = await host.hooks()
      for (const fault of [NOW, NOW, 'secondary-limit'] as const) host.sandbox.faults.next('redeliver', fault)
      {
        await using program = host.serve(...flags)
        await program.says('catching up with octo/demo continues in 60 s')
        expect((await program.stop(signal)).signal).toBe(signal === 'SIGKILL' ? signal : null)
      }
      expect(await comments(host)).toEqual(['comment 0', 'comment 1'])
      await using program = host.serve(...flags)
      expect(await program.object({ type: 'hook', state: 'caught up' })).toMatchObject({
        missing: 3,
        arrived: 3,
      })
      expect((await host.hooks()).map(({ id }) => id)).toEqual([hook?.id])
      await program.stop()
      expect(await comments(host)).toEqual([0, 1, 2, 3, 4].map((n) => `comment ${n}`))
    },
    // After a crash, the next start waits 15 s.
    60_000,
  )
})

/** The comments of the journal, in order. */
async function comments({ home }: HookHost): Promise<string[]> {
  const entries = await journalOf(home)
  return entries
    .filter(({ event }) => event === 'issue_comment')
    .map((entry) => JSON.parse(textOf(entry)).comment.body)
}

describe('Ctrl-C during relay catch-up', () => {
  const CATCH_UP = ['catch-up', 'octo/demo']

  /** A relay that runs, and whose hook has a log of two comments that it lacks. */
  async function startBehind() {
    const host = await startHookHost()
    const flags = ['--port', String(await closedPort()), '--hook', 'octo/demo']
    const serving = host.serve(...flags)
    await serving.object({ type: 'hook', state: 'ready' })
    await serving.object({ type: 'delivery', event: 'ping' })
    host.sandbox.faults.always('hook', '502')
    await serving.stop('SIGKILL')
    await host.comment(0, 2)
    host.sandbox.faults.clear()
    const again = host.serve(...flags)
    await again.object({ type: 'hook', state: 'ready' })
    return {
      host,
      async [Symbol.asyncDispose]() {
        await again[Symbol.asyncDispose]()
        await host[Symbol.asyncDispose]()
      },
    }
  }

  it.each([
    ['while it looks for the hook', 'hook', SLOW, /^GET .*\/hooks$/],
    ['while it reads the log', 'deliveries', SLOW, /^GET .*\/deliveries$/],
    ['while it asks for a delivery', 'redeliver', SLOW, /^POST .*\/attempts$/],
    ['when a delivery is on its way', 'redeliver', LATE, /^POST .*\/attempts$/],
  ] as const)('%s: the next one gets the rest', async (_, operation, fault, request) => {
    await using behind = await startBehind()
    const { host } = behind
    expect(await interruptAt(host, CATCH_UP, operation, [fault], request)).toMatchObject(INTERRUPTED)
    await host.sandbox.idle()
    const ended = await host.relay(...CATCH_UP)
    const missing = fault === LATE ? 1 : 2
    expect([ended.code, ended.out]).toEqual([
      0,
      `caught up with octo/demo: ${missing} missing, ${missing} arrived\n`,
    ])
  })

  it('while it waits for a rate limit', async () => {
    await using behind = await startBehind()
    const { host } = behind
    host.sandbox.faults.next('redeliver', 'secondary-limit')
    await using program = host.start(...CATCH_UP)
    expect(await interrupt(program, program.says('Continues in 60 s'))).toMatchObject(INTERRUPTED)
    expect(await host.relay(...CATCH_UP)).toMatchObject({
      code: 0,
      out: expect.stringContaining('2 arrived'),
    })
  })
})
