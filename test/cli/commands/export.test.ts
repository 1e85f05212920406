import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, it } from 'vitest'
import { fixtureText, toFixture } from '../../../src/fixtures/fixture.js'
import { emptyFolder } from '../../helpers/context.js'
import { delivery } from '../../journal/rig.js'
import { exampleShell, fill, opened } from '../journal-rig.js'

const FIRST = fixtureText(toFixture(opened('a')))

describe('relay export', () => {
  it('prints the fixture, also under --json', async () => {
    const here = await exampleShell()
    const printed = { code: 0, out: FIRST, err: '' }
    expect(await here.run(['export', '1'])).toEqual(printed)
    expect(await here.run(['export', '1', '--out', '-'])).toEqual(printed)
    expect(await here.run(['export', '1', '--json'])).toEqual(printed)
    expect(JSON.parse((await here.run(['export', '2'])).out)).toEqual(toFixture(delivery('b')))
  })

  it('prints the payload readably with --pretty, where that keeps every byte', async () => {
    const here = await exampleShell()
    const body = Buffer.from('{"action":"opened"}')
    await fill(here, async (journal) => void (await journal.append(delivery('pretty', { body }))))
    const { code, out, err } = await here.run(['export', 'last', '--pretty'])
    const { body: _, ...others } = toFixture(delivery('pretty', { body }))
    const fixture = { ...others, payload: { action: 'opened' }, encoding: 'compact' }
    expect({ code, err, fixture: JSON.parse(out) }).toEqual({ code: 0, err: '', fixture })
    expect(await here.run(['export', '1', '--pretty'])).toEqual({
      code: 0,
      out: FIRST,
      err: '#1 has its exact body: writing its JSON again would change bytes, and its signature\n',
    })
  })

  it('writes a file, and overwrites one only with --force', async () => {
    const here = await exampleShell()
    const cwd = emptyFolder()
    const file = path.join(cwd, 'opened.json')
    const run = (...flags: string[]) => here.run(['export', ...flags, '--out', 'opened.json'], { cwd })
    expect(await run('1')).toEqual({ code: 0, out: '', err: '#1 is in opened.json\n' })
    expect(readFileSync(file, 'utf8')).toBe(FIRST)

    writeFileSync(file, 'mine')
    expect(await run('1')).toEqual({
      code: 2,
      out: '',
      err: 'error: --out: opened.json exists. Overwrite it with --force\n',
    })
    expect(readFileSync(file, 'utf8')).toBe('mine')

    expect(await run('1', '--force', '--json')).toEqual({
      code: 0,
      out: '{"v":1,"n":1,"file":"opened.json"}\n',
      err: '',
    })
    expect(readFileSync(file, 'utf8')).toBe(FIRST)
  })

  it('says why it cannot', async () => {
    const here = await exampleShell()
    const cwd = emptyFolder()
    expect(await here.run(['export', '1', '--out', 'no/where.json'], { cwd })).toEqual({
      code: 2,
      out: '',
      err: 'error: --out: no/where.json cannot be written (ENOENT)\n',
    })
    expect(await here.run(['export', '7', '--out', 'x.json'], { cwd })).toEqual({
      code: 6,
      out: '',
      err: 'error: The journal has no entry #7. Its entries are #1 to #5\n',
    })
    expect(existsSync(path.join(cwd, 'x.json'))).toBe(false)
  })
})
