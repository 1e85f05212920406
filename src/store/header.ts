import { open } from 'node:fs/promises'

/** An LMDB file begins with two meta pages; in each, page flags, magic number and format version lie at these offsets. */
const META = { flags: 18, magic: 24, version: 28, pageSize: 48, bytes: 56 } as const
const META_FLAG = 0x08
const MAGIC = 0xbeefc0de
const VERSION = 2

/**
 * Rejects when the file is there and is no database. lmdb itself ends the process with a segmentation fault on such
 * a file, for instance on one that was cut short.
 */
export async function checkHeader(path: string): Promise<void> {
  const file = await open(path, 'r').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined
    throw error
  })
  if (!file) return
  try {
    const { size } = await file.stat()
    if (size === 0) return
    const pageSize = await readMeta(file, 0)
    await readMeta(file, pageSize)
    if (size < 2 * pageSize) throw new Error(`${path} is cut short`)
  } finally {
    await file.close()
  }

  async function readMeta(file: Awaited<ReturnType<typeof open>>, position: number): Promise<number> {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(META.bytes), 0, META.bytes, position)
    const valid =
      bytesRead === META.bytes &&
      (buffer.readUInt16LE(META.flags) & META_FLAG) !== 0 &&
      buffer.readUInt32LE(META.magic) === MAGIC &&
      buffer.readUInt16LE(META.version) === VERSION
    if (!valid) throw new Error(`${path} is no database`)
    return buffer.readUInt32LE(META.pageSize)
  }
}
