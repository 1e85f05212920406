import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Alone, piped, type Served, startAlone, startServed } from './rig.js'

let served: Served
let alone: Alone

beforeAll(async () => {
  served = await startServed()
  alone = await startAlone()
})

afterAll(async () => {
  await served[Symbol.asyncDispose]()
  await alone[Symbol.asyncDispose]()
})

describe.each([
  ['through the running instance', () => served],
  ['in this process, without one', () => alone],
])('relay comment %s', (_, place) => {
  it('prints the address of the new comment', async () => {
    const { shell, sandbox } = place()
    const ran = await shell.run(['comment', 'octo/demo#1', 'héllo 👋'])
    const made = sandbox.state.comments.at(-1)
    expect(made).toMatchObject({ repo: 'octo/demo', issueNumber: 1, body: 'héllo 👋', user: 'octo' })
    expect(ran).toEqual({
      code: 0,
      out: `${sandbox.url}/octo/demo/issues/1#issuecomment-${made?.id}\n`,
      err: '',
    })
  })

  it('takes the text that is piped in, as it is', async () => {
    const { shell, sandbox } = place()
    const ran = await shell.run(['comment', 'octo/demo#1', '-'], { stdin: piped('one\r\n', 'two\n') })
    expect(ran.code).toBe(0)
    expect(sandbox.state.comments.at(-1)?.body).toBe('one\r\ntwo\n')
  })
})
