import { readdirSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { place } from '../kit/place.js'

describe('no command that reads', () => {
  it.each([
    'whoami',
    'token',
    'revoke',
    'comment octo/demo#1 hello',
    'merge octo/demo#1',
    'react octo/demo#1 rocket',
    'login --no-browser',
    'log',
    'wait push',
    'show last',
    'trigger push',
    'replay last',
    'profiles',
    'reset',
    'config',
    'doctor --port 0 --provider sandbox',
  ])('makes a profile: %s', async (line) => {
    await using here = await place({ host: 'none' })
    await here.run(...line.split(' '))
    const { err } = await here.run(...line.split(' '), '--profile', 'typo')
    const names = err.includes('error: There is no profile typo. There are none yet. ')
    expect(names).toBe(!['profiles', 'config'].includes(line))
    expect(readdirSync(here.home)).toEqual([])
  })
})
