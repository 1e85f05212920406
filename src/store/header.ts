import { closeSync, fstatSync, openSync, readSync } from 'node:fs'
import { sleep } from '../base/abort.js'

/** An LMDB file of format 2 begins with two meta pages; what is needed of them lies at these offsets. */
const META = {
  flags: 18,
  magic: 24,
  version: 28,
  pageSize: 48,
  freeRoot: 88,
  mainRoot: 136,
  transaction: 152,
}
const META_BYTES = 160
const META_FLAG = 0x08
const MAGIC = 0xbeefc0de
const VERSION = 2
const NO_PAGE = 0xffff_ffff_ffff_ffffn

interface Meta {
  readonly pageSize: bigint
  readonly transaction: bigint
  readonly roots: readonly bigint[]
}

/** Another process may be making the file: it is whole within a write or two. */
const TRIES = 5
const PAUSE = 20

/**
 * Rejects when the file is there and is no database, or was cut short before a root of its trees. lmdb itself would end
 * the process with a segmentation fault, or read nothing where there was something.
 */
export async function checkHeader(path: string): Promise<void> {
  const file = openExisting(path)
  if (file === undefined) return
  try {
    for (let tries = 1; ; tries++) {
      const fault = findFault(file)
      if (!fault) return
      if (tries === TRIES) throw new Error(`${path} ${fault}`)
      await sleep(PAUSE)
    }
  } finally {
    closeSync(file)
  }
}

function openExisting(path: string): number | undefined {
  try {
    return openSync(path, 'r')
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined
    throw error
  }
}

function findFault(file: number): string | undefined {
  const first = readMeta(file, 0n)
  const second = first && readMeta(file, first.pageSize)
  // Last, because a page is written before the meta page that names it.
  const { size } = fstatSync(file)
  if (size === 0) return undefined
  if (!second) return 'is no database'
  const { pageSize, roots } = first.transaction > second.transaction ? first : second
  const missing = roots.some((page) => page !== NO_PAGE && (page + 1n) * pageSize > BigInt(size))
  return missing ? 'is cut short' : undefined
}

function readMeta(file: number, position: bigint): Meta | undefined {
  const buffer = Buffer.alloc(META_BYTES)
  const bytesRead = readSync(file, buffer, 0, META_BYTES, Number(position))
  const valid =
    bytesRead === META_BYTES &&
    (buffer.readUInt16LE(META.flags) & META_FLAG) !== 0 &&
    buffer.readUInt32LE(META.magic) === MAGIC &&
    buffer.readUInt16LE(META.version) === VERSION
  if (!valid) return undefined
  return {
    pageSize: BigInt(buffer.readUInt32LE(META.pageSize)),
    transaction: buffer.readBigUInt64LE(META.transaction),
    roots: [META.freeRoot, META.mainRoot].map((offset) => buffer.readBigUInt64LE(offset)),
  }
}
