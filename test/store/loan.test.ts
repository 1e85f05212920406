import { randomBytes } from 'node:crypto'
import { expect, it } from 'vitest'
import { silentLog } from '../../src/base/log.js'
import { openFileEngine } from '../../src/store/file.js'
import { emptyFolder } from '../helpers/context.js'

it('values of any size, anywhere in their memory, are written as they are', async () => {
  await using engine = await openFileEngine(emptyFolder(), silentLog)
  engine.open('rows')
  const memory = randomBytes(100_000)
  const sizes = [0, 1, 1023, 1024, 1025, 4096, 65_536]
  const values = sizes.flatMap((size) => [0, 1, 7].map((start) => memory.subarray(start, start + size)))
  const rows = values.map((value, i) => ({ table: 'rows', key: Buffer.of(i + 1), value }))
  await engine.write(rows.slice(0, -1))
  await engine.write([...rows.slice(-1), { table: 'rows', key: Buffer.of(200), value: memory, last: true }])
  const read = [...engine.range('rows', {})].map(({ value }) => Buffer.from(value))
  expect(read).toEqual([...values, memory].map((value) => Buffer.from(value)))
})
