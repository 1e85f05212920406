import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { expect, it } from 'vitest'
import { silentLog } from '../../src/base/log.js'
import { warnOfEarlierData } from '../../src/serve/earlier-data.js'
import { emptyFolder } from '../helpers/context.js'

it('warns of the data of an earlier development version, and where it is', () => {
  const folder = emptyFolder()
  const file = path.join(folder, 'relay.mdb')
  const warnings: string[] = []
  const log = { ...silentLog, warn: (message: string) => void warnings.push(message) }
  warnOfEarlierData({ folder, store: 'file' }, log)
  expect(warnings).toEqual([])
  writeFileSync(file, '')
  warnOfEarlierData({ folder, store: 'memory' }, log)
  expect(warnings).toEqual([])
  warnOfEarlierData({ folder, store: 'file' }, log)
  expect(warnings).toEqual([
    `data of an earlier development version in ${file} is not read. Delete the file if you do not need it`,
  ])
})
