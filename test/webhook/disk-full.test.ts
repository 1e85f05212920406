import { spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { expect, it } from 'vitest'
import { emptyFolder } from '../helpers/context.js'
import { type Answer, githubDelivery, post } from '../helpers/delivery.js'
import { describeWith } from '../helpers/needs.js'
import { journalOf, serve, textOf } from '../helpers/serve.js'

/** Limits the process's files to 4 MiB, in the 512-byte blocks that POSIX counts. The soft limit can be raised again. */
const SMALL_DISK = ['sh', '-c', 'ulimit -S -f 8192; exec "$@"', 'sh']

const OK: Answer = { status: 200, type: 'application/json', body: '{"ok":true}' }
const NOT_STORED: Answer = {
  status: 503,
  type: 'application/json',
  body: '{"error":"Delivery could not be stored"}',
}

const body = (): string => JSON.stringify(randomBytes(40_000).toString('hex'))

/** All stored deliveries: ids and bodies in order. */
async function stored(home: string): Promise<[id: string, body: string][]> {
  return (await journalOf(home)).map((entry) => [entry.deliveryId, textOf(entry)])
}

// Raising the limit of another process needs Linux's prlimit. The store behaves the same elsewhere.
describeWith('Linux', 'deliveries on a full disk', () => {
  it('are answered 503, leave stored ones intact, and are stored again once there is room', async () => {
    const home = emptyFolder()
    const bodies: string[] = []
    await using program = serve(home, SMALL_DISK)
    const url = await program.url()
    const send = (id: string, body: string): Promise<Answer> =>
      post(`${url}/webhook`, githubDelivery({ id, body }))

    for (let answer = OK; answer.status === 200 && bodies.length < 200;) {
      bodies.push(body())
      answer = await send(`${bodies.length}`, bodies.at(-1) ?? '')
      expect([OK, NOT_STORED]).toContainEqual(answer)
    }
    const lastId = `${bodies.length}`
    const refused = await Promise.all(Array.from({ length: 8 }, (_, i) => send(`more-${i}`, body())))
    expect(refused).toEqual(refused.map(() => NOT_STORED))
    expect(await (await fetch(`${url}/health`)).text()).toBe('{"status":"ok"}')
    const before = bodies.slice(0, -1).map((body, i) => [`${i + 1}`, body])
    expect(before.length).toBeGreaterThan(10)
    expect(await stored(home)).toEqual(before)

    spawnSync('prlimit', ['--pid', String(program.pid), '--fsize=unlimited'])
    expect(await send(lastId, bodies.at(-1) ?? '')).toEqual(OK)
    await program.stop('SIGKILL')
    expect(await stored(home)).toEqual([...before, [lastId, bodies.at(-1)]])
  })
})
