import { mkdirSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { expect, it } from 'vitest'
import { makeFolder } from '../../src/base/make-folder.js'
import { emptyFolder } from '../helpers/context.js'
import { failure } from '../helpers/failure.js'
import { describeWith } from '../kit/needs.js'

const refused = (folder: string, why: string) => ({
  kind: 'settings',
  message: `The folder ${folder} cannot be made: ${why}. Set RELAY_HOME to a folder that you can write to`,
})

describeWith('Linux', 'makeFolder', () => {
  it('makes a folder and those above it, for their owner alone; one that is there stays', () => {
    const folder = path.join(emptyFolder(), 'a', 'b')
    makeFolder(folder)
    makeFolder(folder)
    expect([folder, path.dirname(folder)].map((each) => statSync(each).mode & 0o777)).toEqual([0o700, 0o700])
  })

  it('goes through a link to a folder', () => {
    const root = emptyFolder()
    mkdirSync(path.join(root, 'real'))
    symlinkSync('real', path.join(root, 'link'))
    makeFolder(path.join(root, 'link', 'a'))
    expect(statSync(path.join(root, 'real', 'a')).isDirectory()).toBe(true)
  })

  it('says what is in the way', () => {
    const root = emptyFolder()
    const file = path.join(root, 'file')
    const link = path.join(root, 'link')
    writeFileSync(file, '')
    symlinkSync('nothing', link)
    expect(failure(() => makeFolder(path.join(file, 'a', 'b')))).toEqual(refused(file, 'it is not a folder'))
    expect(failure(() => makeFolder(path.join(link, 'a')))).toEqual(
      refused(link, 'it is a link to what is not a folder'),
    )
  })

  it('ends where a file system takes no folders, or none of this length', () => {
    expect(failure(() => makeFolder('/proc/nope/default'))).toEqual(
      refused('/proc/nope', 'the file system takes no new folders there'),
    )
    const long = path.join(emptyFolder(), 'x'.repeat(300))
    expect(failure(() => makeFolder(long))).toEqual(refused(long, 'ENAMETOOLONG'))
  })
})
