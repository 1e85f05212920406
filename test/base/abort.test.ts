import { getEventListeners, once } from 'node:events'
import { setTimeout as wait } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { describe, expect, it } from 'vitest'
import { deadline, onAbort } from '../../src/base/wait.js'

describe('deadline', () => {
  it("aborts with the caller's reason, or with a time-out", async () => {
    const controller = new AbortController()
    const reason = new Error('enough')
    const signal = deadline(60_000, controller.signal)
    controller.abort(reason)
    expect(signal.reason).toBe(reason)
    const late = deadline(10)
    await once(late, 'abort')
    expect(late.reason).toMatchObject({ name: 'TimeoutError' })
  })

  it('fires although only its listener refers to it and garbage is collected', async () => {
    setFlagsFromString('--expose-gc')
    const collect: () => void = runInNewContext('gc')
    const caller = new AbortController()
    const fired = new Promise<string>((resolve) => {
      deadline(200, caller.signal).addEventListener('abort', () => resolve('fired'))
    })
    for (let round = 0; round < 5; round++) {
      await wait(10)
      collect()
    }
    expect(await Promise.race([fired, wait(2_000, 'never fired')])).toBe('fired')
  })
})

describe('onAbort', () => {
  it('calls each that still waits once, with one listener for all', () => {
    const controller = new AbortController()
    const called: string[] = []
    const ignore = ['a', 'b', 'c'].map((name) => onAbort(controller.signal, () => called.push(name)))
    expect(getEventListeners(controller.signal, 'abort').length).toBe(1)
    ignore[1]?.()
    controller.abort()
    ignore[0]?.()
    expect(called).toEqual(['a', 'c'])
  })

  it('calls at once when the signal has aborted', () => {
    const called: string[] = []
    onAbort(AbortSignal.abort(), () => called.push('a'))()
    expect(called).toEqual(['a'])
  })
})
