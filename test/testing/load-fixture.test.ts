import { readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { describe, expect, it } from 'vitest'
import { fixtureBody } from '../../src/fixtures/fixture.js'
import { parseFixture } from '../helpers/fixture.js'
import { loadFixture, loadFixtures } from '../../src/testing/index.js'
import { emptyFolder } from '../helpers/context.js'

const FILE = 'fixtures/github/issues.opened.json'
const opened = parseFixture(readFileSync(FILE, 'utf8'), FILE)

describe('loadFixture', () => {
  it.each([
    ['a path', FILE],
    ['a URL', pathToFileURL(FILE)],
    ['the name of one that comes with relay', `webhook-relay/${FILE}`],
  ])('reads %s', async (_, file) => {
    expect(await loadFixture(file)).toEqual(opened)
  })

  it('reads a bare payload as the given event and provider', async () => {
    const file = path.join(emptyFolder(), 'payload.json')
    writeFileSync(file, '{ "zen": "é" }\r\n')
    const fixture = await loadFixture(file, { event: 'ping', provider: 'gitea' })
    expect(fixture).toMatchObject({ provider: 'gitea', event: 'ping', body: '{ "zen": "é" }\r\n' })
    expect(Buffer.from(fixtureBody(fixture)).equals(readFileSync(file))).toBe(true)
  })

  it('names file, line and field of an error', async () => {
    const file = path.join(emptyFolder(), 'wrong.json')
    writeFileSync(file, '{\n  "relay": 1,\n  "boddy": ""\n}\n')
    await expect(loadFixture(file)).rejects.toThrow(`${file}, line `)
    await expect(loadFixture('webhook-relay/fixtures/github/none.json')).rejects.toThrow(
      'fixtures/github/none.json: no such file or folder',
    )
  })

  it('refuses a folder, and names the function that reads it', async () => {
    await expect(loadFixture('fixtures/gitea')).rejects.toMatchObject({
      kind: 'usage',
      message: 'fixtures/gitea is a folder. Use loadFixtures to read it',
    })
  })
})

describe('loadFixtures', () => {
  it('reads a folder sorted by name', async () => {
    const all = await loadFixtures('webhook-relay/fixtures/gitea')
    const names = all.map(({ name }) => path.basename(name))
    expect(names).toEqual(names.toSorted())
    expect(all.map(({ fixture }) => fixture)).toContainEqual(await loadFixture('fixtures/gitea/push.json'))
  })

  it('refuses a folder without fixtures', async () => {
    await expect(loadFixtures(emptyFolder())).rejects.toThrow('has no fixtures')
  })
})
