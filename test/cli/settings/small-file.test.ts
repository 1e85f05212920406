import { spawn, spawnSync } from 'node:child_process'
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, it } from 'vitest'
import { readSmallFile } from '../../../src/old/settings/small-file.js'
import { emptyFolder } from '../../helpers/context.js'
import { failure } from '../../helpers/failure.js'
import { describeWith } from '../../kit/needs.js'

const MIB = 1_048_576

/** A pipe with a name, and what a shell runs to write to it. */
function pipe(script = ''): string {
  const file = path.join(emptyFolder(), 'pipe')
  spawnSync('mkfifo', [file])
  if (script !== '') spawn('sh', ['-c', `{ ${script}; } > "$0"`, file], { stdio: 'ignore' })
  return file
}

describe('readSmallFile', () => {
  it('reads up to 1 MiB, also through a link', () => {
    const file = path.join(emptyFolder(), 'file')
    writeFileSync(file, 'é'.repeat(MIB / 2))
    symlinkSync(file, `${file}.link`)
    expect(readSmallFile(`${file}.link`)).toBe('é'.repeat(MIB / 2))
    writeFileSync(file, 'x'.repeat(MIB + 1))
    expect(failure(() => readSmallFile(file))).toEqual({
      kind: 'settings',
      message: `${file} is larger than 1 MiB`,
    })
  })

  it('passes the open file to a check before it is read', () => {
    const file = path.join(emptyFolder(), 'file')
    writeFileSync(file, 'x'.repeat(MIB + 1))
    const refuse = ({ size }: { size: number }) => {
      throw new Error(`${size}`)
    }
    expect(() => readSmallFile(file, {}, refuse)).toThrow(`${MIB + 1}`)
  })

  it('returns undefined for a missing file, and throws for one that cannot be opened', () => {
    const file = path.join(emptyFolder(), 'nothing')
    expect(readSmallFile(file)).toBeUndefined()
    symlinkSync(file, file)
    expect(failure(() => readSmallFile(file))).toEqual({
      kind: 'settings',
      message: `${file} cannot be read`,
    })
  })
})

describeWith('Linux', 'readSmallFile of something that is not a file', () => {
  const refused = (file: string) => ({
    kind: 'settings',
    message: `${file} is not a regular file. Replace it with a file of at most 1 MiB`,
  })

  it('refuses a device, a pipe and a folder at once', () => {
    const folder = emptyFolder()
    const link = path.join(folder, 'link')
    symlinkSync('/dev/zero', link)
    mkdirSync(path.join(folder, 'folder'))
    for (const file of [link, pipe(), path.join(folder, 'folder')])
      expect(failure(() => readSmallFile(file))).toEqual(refused(file))
  })

  it('reads a pipe that may be one until its end', () => {
    expect(readSmallFile(pipe('sleep 0.1; printf one; sleep 0.1; printf " two"'), { streams: true })).toBe(
      'one two',
    )
    expect(readSmallFile('/dev/null', { streams: true })).toBe('')
  })

  it('reads no more than 1 MiB of a pipe or a device, and waits for no writer', () => {
    for (const file of ['/dev/zero', pipe('head -c 2000000 /dev/zero')])
      expect(failure(() => readSmallFile(file, { streams: true }))).toEqual({
        kind: 'settings',
        message: `${file} is larger than 1 MiB`,
      })
    expect(readSmallFile(pipe(), { streams: true })).toBe('')
  })
})
