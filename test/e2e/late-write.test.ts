import { expect, it } from 'vitest'
import { emptyFolder } from '../helpers/context.js'
import { githubDelivery, post } from '../helpers/delivery.js'
import { describeWith } from '../helpers/needs.js'
import { journalOf, serve, unfinished } from '../helpers/serve.js'
import { slowDown } from '../helpers/slow-disk.js'
import { startTarget, valuesOf } from '../helpers/target.js'

describeWith('strace', 'a delivery whose write takes longer than its sender can wait', () => {
  it('is answered 503, forwarded once it is stored, in order, and known when it is sent again', async () => {
    const home = emptyFolder()
    await using target = await startTarget()
    await using relay = serve(home, undefined, ['--forward', target.url])
    const webhook = `${await relay.url()}/webhook`
    const send = async (id: string): Promise<number> => (await post(webhook, githubDelivery({ id }))).status
    expect(await send('before')).toBe(200)
    await target.has(1)

    {
      await using _slow = await slowDown(relay.pid, 6)
      expect(await Promise.all(['a', 'b'].map(send))).toEqual([503, 503])
      await target.has(3)
    }
    for (const id of ['c', 'a', 'b']) expect(await send(id)).toBe(200)
    await target.has(4)
    await relay.objects({ type: 'attempt' }, 4)

    const { err, out } = await relay.stop()
    expect(err.match(/#[23] .*stored late: the sender was answered 503/g)).toHaveLength(2)
    const deliveries = out.match(/\{"v":1,"type":"delivery".*/g)?.map((line) => JSON.parse(line))
    expect(deliveries?.map(({ late, duplicate }) => [late, duplicate])).toEqual([
      [undefined, false],
      [true, false],
      [true, false],
      [undefined, false],
      [undefined, true],
      [undefined, true],
    ])
    const received = target.received.map((each) => valuesOf(each, 'x-github-delivery')[0] ?? '')
    expect(received).toEqual((await journalOf(home)).map(({ deliveryId }) => deliveryId))
    expect(received.toSorted()).toEqual(['a', 'b', 'before', 'c'])
    expect(await unfinished(home)).toEqual([])
  })
})
