import { describe, expect, it } from 'vitest'
import { listen } from '../../src/http/listen.js'
import { silentLog } from '../../src/base/log.js'
import { createReadinessGate } from '../../src/serve/readiness-gate.js'

describe('the readiness gate', () => {
  it('holds every request back until it opens, except those for the one path', async () => {
    const gate = createReadinessGate((request) => new Response(new URL(request.url).pathname), '/ready')
    const listener = await listen(gate.fetch, { host: '127.0.0.1', port: 0, log: silentLog })
    const answers: string[] = []
    const ask = async (path: string): Promise<void> => {
      answers.push(await (await fetch(listener.url + path)).text())
    }
    const held = ['/health', '/ready/', '/?/ready'].map(ask)
    await ask('/ready')
    await ask('/ready?x=1')
    expect(answers).toEqual(['/ready', '/ready'])
    gate.open()
    await Promise.all(held)
    expect(answers.slice(2).toSorted()).toEqual(['/', '/health', '/ready/'])
    await ask('/webhook')
    expect(answers.at(-1)).toBe('/webhook')
    await listener.close()
  })
})
