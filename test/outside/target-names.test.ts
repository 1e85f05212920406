import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { expect, it } from 'vitest'
import { describeWith } from '../kit/needs.js'
import { place, type Serving } from '../kit/place.js'
import { receiver, valuesOf, type Received } from '../kit/receiver.js'
import { fresh, json } from './fixture.js'

const idOf = (request: Received): string | undefined => valuesOf(request, 'X-GitHub-Delivery')[0]

async function push(relay: Serving, ...ids: string[]): Promise<void> {
  for (const id of ids) expect((await relay.deliver({ event: 'push', id })).status).toBe(200)
}

for (const store of ['file', 'postgres'] as const)
  describeWith(
    store === 'postgres' ? store : [],
    `the queue of a named target, with the store ${store}`,
    () => {
      const here = fresh(() => place({ host: 'none', ...(store === 'postgres' && { store }) }))
      const project = (forward: string[]): void =>
        writeFileSync(path.join(here.cwd, 'relay.json'), JSON.stringify({ forward }))

      it('survives a change of its address and match, in order, at a start and while relay runs', async () => {
        await using first = await receiver()
        await using second = await receiver()
        await using third = await receiver()
        await first.down()
        const before = await here.serve('--forward', `app=${first.url}`)
        await push(before, 'a', 'b', 'c')
        await before.object({ type: 'target', state: 'down' })
        await before.stop()
        await second.down()
        project([`app=push=${second.url}`])
        const relay = await here.serve()
        await relay.object({ type: 'target', state: 'down' })
        expect((await here.run('routes', '--json')).out).toContain('"waiting":3')
        project([`app=push,issues=${third.url}`])
        await third.has(3)
        expect(third.received.map(idOf)).toEqual(['a', 'b', 'c'])
        await push(relay, 'd')
        await third.has(4)
        await relay.object({ type: 'attempt', n: 4 })
        expect(relay.err).not.toContain('no longer configured')
        const { targets } = await json(here.run('show', '1', '--json'))
        expect(targets).toMatchObject([{ target: `push,issues=${third.url}`, state: 'succeeded' }])
      })

      it('is of the name where two targets exchange theirs', async () => {
        await using one = await receiver()
        await using other = await receiver()
        await one.down()
        await other.down()
        project([`app=push=${one.url}`, `web=issues=${other.url}`])
        const relay = await here.serve()
        await push(relay, 'a')
        await relay.deliver({ event: 'issues', id: 'b', body: '{"action":"opened"}' })
        await relay.objects({ type: 'target', state: 'down' }, 2)
        await relay.stop()
        project([`web=push=${one.url}`, `app=issues=${other.url}`])
        await one.up()
        await other.up()
        await here.serve()
        await Promise.all([one.has(1), other.has(1)])
        expect([one.received.map(idOf), other.received.map(idOf)]).toEqual([['b'], ['a']])
      })

      it('remembers what it has had: a repeated delivery is not sent to the new address', async () => {
        await using first = await receiver()
        await using second = await receiver()
        project([`app=${first.url}`])
        const relay = await here.serve()
        await push(relay, 'a')
        await relay.object({ type: 'attempt', n: 1 })
        project([`app=${second.url}`])
        await relay.object({ type: 'settings', state: 'reloaded' })
        await push(relay, 'a', 'b')
        await relay.object({ type: 'attempt', n: 2 })
        expect(second.received.map(idOf)).toEqual(['b'])
      })

      it('waits until what is being sent to the former address has ended', async () => {
        await using second = await receiver()
        let answer = (): void => {}
        const answered = new Promise<200>((resolve) => (answer = () => resolve(200)))
        await using slow = await receiver(() => answered)
        project([`app=${slow.url}`])
        const relay = await here.serve()
        await push(relay, 'a', 'b')
        await slow.has(1)
        project([`app=${second.url}`])
        await relay.object({ type: 'settings', state: 'reloaded' })
        await push(relay, 'c')
        expect(second.received).toEqual([])
        answer()
        await second.has(2)
        expect([...slow.received, ...second.received].map(idOf)).toEqual(['a', 'b', 'c'])
      })

      it.each([
        ['an address', (url: string) => ({ forward: url, timeout: 'none' })],
        ['a command', () => ({ exec: 'sleep 60', timeout: 'none' })],
      ])('takes over after the usual time limit from one that never ends: %s', async (_, former) => {
        await using hanging = await receiver('hang')
        await using second = await receiver()
        here.configure({ routes: [{ name: 'app', ...former(hanging.url) }] })
        const limits = { http: 1000, command: 1000 }
        const relay = await here.serveWith({ seams: { limits } })
        await push(relay, 'a', 'b')
        await expect.poll(async () => (await here.run('log', '--json')).out).toContain('being sent')
        here.configure({ routes: [{ name: 'app', forward: second.url }] })
        await relay.object({ type: 'settings', state: 'reloaded' })
        await second.has(2)
        expect(second.received.map(idOf)).toEqual(['a', 'b'])
        expect((await here.run('show', '1')).out).toContain('the target was changed')
      })

      it('without a name, waits for its address to be configured again', async () => {
        await using first = await receiver()
        await using second = await receiver()
        await first.down()
        project([first.url])
        const relay = await here.serve()
        await push(relay, 'a')
        await relay.object({ type: 'target', state: 'down' })
        project([second.url])
        await relay.object({ type: 'settings', state: 'reloaded' })
        await push(relay, 'b')
        await second.has(1)
        expect(second.received.map(idOf)).toEqual(['b'])
        await first.up()
        project([first.url])
        await first.has(1)
        expect(first.received.map(idOf)).toEqual(['a'])
      })

      it('that two targets share identifies neither, and both get what is theirs', async () => {
        await using first = await receiver()
        await using second = await receiver()
        project([`app=push=${first.url}`, `app=push=${second.url}`])
        const relay = await here.serve()
        await relay.says(
          'app is the name of two targets, so that it identifies neither when an address is changed',
        )
        await push(relay, 'a')
        await relay.objects({ type: 'attempt', n: 1 }, 2)
        project([`app=push=${second.url}`, `app=push=${first.url}`])
        await relay.object({ type: 'settings', state: 'reloaded' })
        await push(relay, 'a', 'b')
        await relay.objects({ type: 'attempt', n: 2 }, 2)
        const both = [first.received.map(idOf), second.received.map(idOf)]
        expect(both).toEqual([
          ['a', 'b'],
          ['a', 'b'],
        ])
      })
    },
  )
