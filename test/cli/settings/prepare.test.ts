import { expect, it } from 'vitest'
import { exampleShell } from '../journal-rig.js'

const COMMANDS = [
  'log',
  'show last',
  'wait * --since 2023-11-14',
  'routes test last',
  'verify 1',
  'trigger --list',
  'trigger push --print',
  'replay 1 --to http://127.0.0.1:1',
]

it.each(COMMANDS)('relay %s warns once of a setting', async (line) => {
  const env = { BASE_URL: '/', RELAY_WEBHOOK_SECRET: 'secret' }
  const { err } = await (await exampleShell()).run(line.split(' '), { env })
  expect(err.match(/^warning: .*$/gm)).toEqual([expect.stringContaining('BASE_URL is ignored')])
})
