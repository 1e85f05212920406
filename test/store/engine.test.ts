import { describe, expect, it } from 'vitest'
import { silentLog } from '../../src/base/log.js'
import type { Engine, RowWrite } from '../../src/store/engine.js'
import { openFileEngine } from '../../src/store/file.js'
import { createMemoryEngine } from '../../src/store/memory.js'
import { emptyFolder } from '../helpers/context.js'

const row = (key: Uint8Array): RowWrite => ({ table: 'rows', key, value: Buffer.of(1) })
const GOOD = Buffer.of(1)
/** More than LMDB takes; nothing above an engine lets it through. */
const TOO_LONG = Buffer.alloc(5000)

async function transaction(engine: Engine, decide: () => readonly RowWrite[]): Promise<unknown> {
  engine.open('rows')
  return engine.transact(() => ({ result: 'done', writes: decide() })).catch((error: unknown) => error)
}

describe('a transaction', () => {
  it('that fails halfway is undone, and the next is carried out', async () => {
    await using engine = await openFileEngine(emptyFolder(), silentLog)
    expect(await transaction(engine, () => [row(GOOD), row(TOO_LONG)])).toMatchObject({ kind: 'storage' })
    expect(engine.count('rows')).toBe(0)
    expect(await transaction(engine, () => [row(GOOD)])).toBe('done')
    expect(engine.count('rows')).toBe(1)
  })

  it.each([
    ['file', () => openFileEngine(emptyFolder(), silentLog)],
    ['memory', async () => createMemoryEngine()],
  ])('that cannot decide writes nothing: %s', async (_, open) => {
    await using engine = await open()
    const decide = () => {
      throw new Error('undecided')
    }
    expect(String(await transaction(engine, decide))).toContain('undecided')
    expect(engine.count('rows')).toBe(0)
  })
})
