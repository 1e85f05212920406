import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { asked, LATE, NOW, repository, type Repository, SLOW } from '../kit/code-host.js'
import { type Place, place } from '../kit/place.js'
import { closedPort } from '../kit/ports.js'
import type { Ended, Running } from '../kit/run.js'

/** How a one-shot command ends after Ctrl-C. */
const INTERRUPTED = { code: 130, signal: null, out: '' }

let here: Place
let demo: Repository
const begin = async (): Promise<void> => {
  here = await place({ signedIn: true })
  demo = await repository(here.sandbox)
}
const end = (): PromiseLike<void> => here[Symbol.asyncDispose]()

/** Presses Ctrl-C once `reached` has resolved. */
async function interrupt(command: Running, reached: Promise<unknown>): Promise<Ended> {
  await reached
  return command.stop('SIGINT')
}

/** Runs a command, and presses Ctrl-C during the request, which the sandbox answers too late. */
async function interruptAt(
  argv: readonly string[],
  operation: 'hook' | 'deliveries' | 'redeliver',
  faults: readonly (typeof SLOW | typeof LATE | undefined)[],
  request: RegExp,
): Promise<Ended> {
  const since = here.sandbox.requests.length
  for (const fault of faults) here.sandbox.faults.next(operation, fault ?? NOW)
  const ended = await interrupt(here.start(...argv), asked(here.sandbox, request, since))
  here.sandbox.faults.clear()
  return ended
}

/** The addresses of the hooks that `relay hook list` shows. */
async function listed(): Promise<string[]> {
  const { out } = await here.run('hook', 'list', '--json')
  return out.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line).url]))
}
const urls = async (): Promise<string[]> => (await demo.hooks()).map(({ url }) => url)

const ADDRESS = 'http://127.0.0.1:9/webhook'
const ADD = ['hook', 'add', 'octo/demo', '--url', ADDRESS]
const REMOVE = ['hook', 'remove', 'octo/demo']
const TEST = ['hook', 'test', 'octo/demo']
const CATCH_UP = ['catch-up', 'octo/demo']

describe('Ctrl-C during relay hook add', () => {
  beforeEach(begin)
  afterEach(end)

  it.each([
    ['while it reads the hooks', [SLOW], /^GET .*\/hooks$/, []],
    ['before the code host makes the hook', [undefined, SLOW], /^POST .*\/hooks$/, []],
    ['after the code host made the hook', [undefined, LATE], /^POST .*\/hooks$/, [ADDRESS]],
  ] as const)('%s: nothing is there that hook list does not show', async (_, faults, request, made) => {
    expect(await interruptAt(ADD, 'hook', faults, request)).toMatchObject(INTERRUPTED)
    expect(await urls()).toEqual(made)
    expect(await listed()).toEqual(expect.arrayContaining([...made]))
    expect(await here.run(...ADD)).toMatchObject({ code: 0 })
    expect([await urls(), await listed()]).toEqual([[ADDRESS], [ADDRESS]])
  })
})

describe('Ctrl-C during relay hook remove', () => {
  beforeEach(begin)
  afterEach(end)

  it.each([
    ['while it reads the hooks', [SLOW], /^GET .*\/hooks$/, [ADDRESS]],
    ['before the code host removes the hook', [undefined, SLOW], /^DELETE /, [ADDRESS]],
    ['after the code host removed the hook', [undefined, LATE], /^DELETE /, []],
  ] as const)('%s: the next one removes the rest', async (_, faults, request, left) => {
    await here.run(...ADD)
    expect(await interruptAt(REMOVE, 'hook', faults, request)).toMatchObject(INTERRUPTED)
    expect([await urls(), await listed()]).toEqual([left, [ADDRESS]])
    expect((await here.run(...REMOVE)).code).toBe(left.length > 0 ? 0 : 6)
    expect([await urls(), await listed()]).toEqual([[], []])
  })
})

describe('Ctrl-C during relay hook test', () => {
  beforeEach(begin)
  afterEach(end)

  it.each([
    ['while it reads the hooks', [SLOW], /^GET .*\/hooks$/],
    ['while it asks for the ping', [undefined, LATE], /^POST .*\/pings$/],
  ] as const)('%s: the next one works', async (_, faults, request) => {
    const serving = await here.serve('--hook', 'octo/demo')
    await serving.object({ type: 'hook', state: 'ready' })
    expect(await interruptAt(TEST, 'hook', faults, request)).toMatchObject(INTERRUPTED)
    expect(await here.run(...TEST)).toMatchObject({ code: 0, out: expect.stringContaining('arrived') })
  })
})

describe('Ctrl-C during relay catch-up', () => {
  beforeEach(async () => {
    await begin()
    // A relay that runs, and whose hook has a log of two comments that it lacks.
    const port = String(await closedPort())
    await here.run('hook', 'add', 'octo/demo', '--url', `http://127.0.0.1:${port}/webhook`)
    await demo.comment('one', 'two')
    await here.serve('--port', port)
  })
  afterEach(end)

  it.each([
    ['while it looks for the hook', 'hook', SLOW, /^GET .*\/hooks$/],
    ['while it reads the log', 'deliveries', SLOW, /^GET .*\/deliveries$/],
    ['while it asks for a delivery', 'redeliver', SLOW, /^POST .*\/attempts$/],
    ['when a delivery is on its way', 'redeliver', LATE, /^POST .*\/attempts$/],
  ] as const)('%s: the next one gets the rest', async (_, operation, fault, request) => {
    expect(await interruptAt(CATCH_UP, operation, [fault], request)).toMatchObject(INTERRUPTED)
    await here.sandbox.idle()
    const { code, out } = await here.run(...CATCH_UP)
    const missing = fault === LATE ? 1 : 2
    expect([code, out]).toEqual([0, `caught up with octo/demo: ${missing} missing, ${missing} arrived\n`])
  })

  it('while it waits for a rate limit', async () => {
    here.sandbox.faults.next('redeliver', 'secondary-limit')
    const command = here.start(...CATCH_UP)
    expect(await interrupt(command, command.says('Continues in 60 s'))).toMatchObject(INTERRUPTED)
    expect(await here.run(...CATCH_UP)).toMatchObject({
      code: 0,
      out: expect.stringContaining('2 arrived'),
    })
  })
})
