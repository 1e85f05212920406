import {
  chmodSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import path from 'node:path'
import { assert, integer, nat, property, uint8Array } from 'fast-check'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { openKept } from '../../bin/kept.js'
import { emptyFolder } from '../helpers/context.js'

const DATA = Buffer.from('what was compiled')

const newFolder = (): string => path.join(emptyFolder(), 'cache', 'compiled')

function keep(folder: string, names: readonly string[] = ['one'], data = DATA): void {
  openKept(folder).write(new Map(names.map((name) => [name, data])), (item) => item)
}

const read = (folder: string, name = 'one'): Buffer | undefined => openKept(folder).read(name)

afterEach(() => vi.restoreAllMocks())

describe('what is kept', () => {
  it('is read as it was written, whatever it is', () => {
    const folder = newFolder()
    assert(
      property(uint8Array({ maxLength: 500 }), (bytes) => {
        keep(folder, ['one'], Buffer.from(bytes))
        expect(read(folder)?.equals(bytes)).toBe(true)
      }),
    )
  })

  it('is for its owner alone', () => {
    const folder = newFolder()
    keep(folder)
    expect(statSync(folder).mode & 0o777).toBe(0o700)
    expect(statSync(path.join(folder, 'one')).mode & 0o777).toBe(0o600)
  })

  it('is not there before it is written, nor under another name', () => {
    const folder = newFolder()
    expect(read(folder)).toBeUndefined()
    keep(folder)
    expect(read(folder, 'two')).toBeUndefined()
  })

  it('replaces what was there, and leaves nothing else', () => {
    const folder = newFolder()
    keep(folder)
    keep(folder, ['one'], Buffer.from('newer'))
    expect(read(folder)?.toString()).toBe('newer')
    expect(readdirSync(folder)).toEqual(['one'])
  })

  it('is not there when a part of the file is lost or changed', () => {
    const folder = newFolder()
    keep(folder)
    const file = path.join(folder, 'one')
    const whole = readFileSync(file)
    assert(
      property(nat(whole.length - 1), integer({ min: 1, max: 255 }), (at, change) => {
        writeFileSync(file, whole.subarray(0, at))
        expect(read(folder)).toBeUndefined()
        const changed = Buffer.from(whole)
        changed.writeUInt8(whole.readUInt8(at) ^ change, at)
        writeFileSync(file, changed)
        expect(read(folder)).toBeUndefined()
      }),
    )
  })

  it('is bounded: the oldest go', () => {
    const folder = newFolder()
    const names = Array.from({ length: 300 }, (_, at) => `file-${at}`)
    keep(folder, names)
    expect(readdirSync(folder)).toHaveLength(300)
    names.forEach((name, at) => utimesSync(path.join(folder, name), at, at))
    keep(folder)
    expect(readdirSync(folder).toSorted()).toEqual(['one', ...names.slice(151)].toSorted())
  })
})

describe('a folder that is not the own', () => {
  it.each([0o770, 0o707, 0o777])('is not used when others may write to it: %o', (mode) => {
    const folder = newFolder()
    keep(folder)
    chmodSync(folder, mode)
    expect(read(folder)).toBeUndefined()
    keep(folder, ['two'])
    expect(readdirSync(folder)).toEqual(['one'])
  })

  it('is not used when it is of another user', () => {
    const folder = newFolder()
    keep(folder)
    vi.spyOn(process, 'geteuid').mockReturnValue(statSync(folder).uid + 1)
    expect(read(folder)).toBeUndefined()
    keep(folder, ['two'])
    expect(readdirSync(folder)).toEqual(['one'])
  })

  it('has none made in it', () => {
    const home = emptyFolder()
    const folder = path.join(home, 'cache', 'compiled')
    vi.spyOn(process, 'geteuid').mockReturnValue(statSync(home).uid + 1)
    keep(folder)
    expect(readdirSync(home)).toEqual([])
  })

  it('is not used when it is a link', () => {
    const folder = newFolder()
    keep(folder)
    const link = path.join(emptyFolder(), 'link')
    symlinkSync(folder, link)
    expect(read(link)).toBeUndefined()
  })

  it('is not used for a file to which others may write', () => {
    const folder = newFolder()
    keep(folder)
    chmodSync(path.join(folder, 'one'), 0o620)
    expect(read(folder)).toBeUndefined()
  })
})

describe('a folder that cannot be made', () => {
  it('does no harm, and has nobody make what cannot be kept', () => {
    const file = path.join(emptyFolder(), 'file')
    writeFileSync(file, '')
    const folder = path.join(file, 'compiled')
    expect(read(folder)).toBeUndefined()
    const make = vi.fn<() => Buffer>(() => DATA)
    openKept(folder).write(new Map([['one', 1]]), make)
    expect(make).not.toHaveBeenCalled()
  })

  it('does no harm where a file cannot be written', () => {
    const folder = newFolder()
    mkdirSync(path.join(folder, 'one'), { recursive: true, mode: 0o700 })
    expect(read(folder)).toBeUndefined()
    keep(folder, ['one', 'two'])
    expect(read(folder)).toBeUndefined()
    expect(readdirSync(folder)).toEqual(['one', 'two'])
    expect(read(folder, 'two')).toEqual(DATA)
  })

  it('does no harm where a process of the same number has left a file unfinished', () => {
    const folder = newFolder()
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    writeFileSync(path.join(folder, `one.${process.pid}`), 'unfinished')
    keep(folder, ['one', 'two'])
    expect(readdirSync(folder)).toEqual(['two'])
    keep(folder)
    expect(read(folder)).toEqual(DATA)
  })
})
