import { pipeline, type Transform } from 'node:stream'
import { printable } from '../base/text.js'
import { NetFailure } from './failure.js'

/** Error for a body whose compression relay cannot undo. */
export class EncodingError extends NetFailure {
  override readonly name = 'EncodingError'

  constructor(encoding: string, options?: ErrorOptions) {
    super(`its answer cannot be read: it is compressed (${printable(encoding.slice(0, MAX_SHOWN))})`, options)
  }
}

/** Most characters of a `Content-Encoding` in a message. */
const MAX_SHOWN = 60
/** Most codings of one body. Each costs a further decompressor, and no server uses more than one. */
const MAX_CODINGS = 3

type Bytes = AsyncIterable<Uint8Array>

/**
 * Undoes the codings that a body's `Content-Encoding` names (RFC 9110 section 8.4). Decompresses only as fast as it is
 * read, so that the reader limits the size. A truncated body is decompressed up to its end.
 * @throws EncodingError for a coding that this Node cannot undo, or more than three; during reading, for malformed data
 */
export function decompressed(body: Bytes, encoding = ''): Bytes {
  const names = encoding.split(',').map((name) => name.trim().toLowerCase().replace(/^x-/, ''))
  const codings = names.filter((name) => name !== '' && name !== 'identity')
  const openers = codings.slice(0, MAX_CODINGS).map(openerOf)
  if (codings.length > MAX_CODINGS || openers.includes(undefined)) throw new EncodingError(encoding)
  return openers.reduceRight<Bytes>((packed, open) => (open ? unpack(packed, open, encoding) : packed), body)
}

/** Opens a decompressor for a body with this first byte. */
type Opener = (first: number) => Transform

async function* unpack(packed: Bytes, open: Opener, encoding: string): AsyncGenerator<Uint8Array> {
  const chunks = packed[Symbol.asyncIterator]()
  const first = await chunks.next()
  if (first.done === true) return
  let broken: unknown
  const whole = async function* (): AsyncGenerator<Uint8Array> {
    try {
      yield first.value
      yield* { [Symbol.asyncIterator]: () => chunks }
    } catch (error) {
      broken = error
      throw error
    } finally {
      await chunks.return?.()
    }
  }
  try {
    yield* pipeline(whole(), open(first.value[0] ?? 0), () => {})
  } catch (cause) {
    throw cause === broken ? cause : new EncodingError(encoding, { cause })
  }
}

function openerOf(coding: string): Opener | undefined {
  const { constants, ...zlib } = process.getBuiltinModule('node:zlib')
  const part = { finishFlush: constants.Z_SYNC_FLUSH }
  switch (coding) {
    case 'gzip':
      return () => zlib.createGunzip(part)
    case 'deflate':
      // Some servers omit the header that RFC 1950 requires, whose first byte ends in 8.
      return (first) => ((first & 0x0f) === 8 ? zlib.createInflate(part) : zlib.createInflateRaw(part))
    case 'br':
      return () => zlib.createBrotliDecompress({ finishFlush: constants.BROTLI_OPERATION_FLUSH })
    case 'zstd': {
      // Available from Node 22.15 (RFC 8878).
      const create: unknown = Reflect.get(zlib, 'createZstdDecompress')
      return isMaker(create) ? create : undefined
    }
    default:
      return undefined
  }
}

function isMaker(value: unknown): value is () => Transform {
  return typeof value === 'function'
}
