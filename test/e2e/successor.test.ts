import { describe, expect, it } from 'vitest'
import { emptyFolder } from '../helpers/context.js'
import { begin, finish, githubDelivery, post } from '../helpers/delivery.js'
import { journalOf, serve, textOf } from '../helpers/serve.js'

/** Fails when one of them is not answered 200. */
async function acknowledged(webhook: string, ids: readonly string[]): Promise<void> {
  const answers = await Promise.all(ids.map((id) => post(webhook, githubDelivery({ id, body: `"${id}"` }))))
  expect(answers.map(({ status }) => status)).toEqual(ids.map(() => 200))
}

/** Each entry's id, after it was seen that the body is its own and the numbers count up from 1. */
async function kept(home: string): Promise<string[]> {
  const entries = await journalOf(home)
  expect(entries.map(({ n }) => n)).toEqual(entries.map((_, i) => i + 1))
  expect(entries.map(textOf)).toEqual(entries.map(({ deliveryId }) => `"${deliveryId}"`))
  return entries.map(({ deliveryId }) => deliveryId)
}

const ids = (who: string): string[] => Array.from({ length: 20 }, (_, i) => `${who}-${i}`)

describe.concurrent('two processes over one journal', () => {
  it('of which one finishes while its successor has begun keep what each acknowledged', async () => {
    const home = emptyFolder()
    await using older = serve(home)
    const olderHook = `${await older.url()}/webhook`
    await acknowledged(olderHook, ids('before'))
    const slow = githubDelivery({ id: 'slow', body: '"slow"' })
    const request = await begin(olderHook, slow)
    older.child.kill('SIGTERM')
    await older.says('finishing what is under way')

    await using newer = serve(home)
    await acknowledged(`${await newer.url()}/webhook`, ids('after'))
    expect(await finish(request, slow)).toBe(200)
    expect((await older.ended).code).toBe(0)
    await acknowledged(`${await newer.url()}/webhook`, ['last'])
    expect(await kept(home)).toEqual([...ids('before'), ...ids('after'), 'slow', 'last'])

    // The older one, when it ended, has not given away the profile of the newer one.
    await using third = serve(home)
    expect((await third.ended).err).toContain(`already served by process ${newer.pid}`)
  })

  it('of which one was stopped, and goes on after the other took its place, keep what each acknowledged', async () => {
    const home = emptyFolder()
    await using older = serve(home)
    const olderHook = `${await older.url()}/webhook`
    await acknowledged(olderHook, ids('before'))
    older.child.kill('SIGSTOP')

    await using newer = serve(home)
    const newerHook = `${await newer.url()}/webhook`
    await acknowledged(newerHook, ids('newer'))
    older.child.kill('SIGCONT')
    await acknowledged(olderHook, ids('older'))
    await Promise.all([
      acknowledged(olderHook, [...ids('both'), ...ids('older-again')]),
      acknowledged(newerHook, [...ids('both'), ...ids('newer-again')]),
    ])
    const whose = ['before', 'newer', 'older', 'both', 'older-again', 'newer-again']
    expect((await kept(home)).toSorted()).toEqual(whose.flatMap(ids).toSorted())
  })
})
