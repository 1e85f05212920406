import { describe, expect, it } from 'vitest'
import { ask } from '../../src/base/ask.js'
import { scriptedServer, type Answer } from '../helpers/scripted-server.js'

const GET = { method: 'GET', headers: {} } as const

async function askOne(answer: Answer) {
  await using server = await scriptedServer(() => answer)
  const { header, ...rest } = await ask(new URL(server.url), GET)
  return { ...rest, location: header('Location') }
}

describe('ask', () => {
  it('sends what it is given, and nothing of its own but what HTTP needs', async () => {
    await using server = await scriptedServer(() => ({ status: 201, body: 'ja, gären' }))
    const question = { method: 'POST', headers: { 'X-One': '1' }, body: 'grün' } as const
    const { status, text } = await ask(new URL('/a?b=c', server.url), question)
    expect({ status, text }).toEqual({ status: 201, text: 'ja, gären' })
    expect(server.received).toEqual([
      {
        method: 'POST',
        path: '/a?b=c',
        headers: {
          'x-one': '1',
          host: new URL(server.url).host,
          connection: 'close',
          'content-length': '5',
        },
        body: 'grün',
      },
    ])
  })

  it('follows no redirect', async () => {
    const answer = { status: 307, headers: { location: 'http://127.0.0.1:1/' } }
    expect(await askOne(answer)).toEqual({ status: 307, text: '', location: 'http://127.0.0.1:1/' })
  })

  it('takes an answer of 1 MiB, and no larger one', async () => {
    const body = 'x'.repeat(1_048_576)
    expect((await askOne({ body })).text).toBe(body)
    await expect(askOne({ body: `${body}x` })).rejects.toThrow('larger than 1 MiB')
  })

  it('fails with the code of what happened', async () => {
    await expect(askOne('reset')).rejects.toMatchObject({ code: 'ECONNRESET' })
  })

  it('stops waiting for an answer, also for the rest of one, when it is told to', async () => {
    const stalls = { headers: { 'content-length': '9' }, body: 'half', stalls: true }
    for (const answer of ['silence', stalls] as const) {
      const abort = new AbortController()
      const reason = new Error('enough')
      await using server = await scriptedServer(() => {
        setImmediate(() => abort.abort(reason))
        return answer
      })
      const asking = ask(new URL(server.url), GET, { signal: abort.signal })
      await expect(asking).rejects.toMatchObject({ name: 'AbortError', cause: reason })
    }
  })
})
