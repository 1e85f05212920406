// Checks the package as it would be published, from a build: `npm run check:package`. Its size and its types (attw).
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'

/**
 * Bytes, unpacked: all that `npm install` writes of it. It has 3.4 MB, and grows with the senders and their examples. What it
 * must not have is more than is left: the bundle twice (1.5 MB), or its source maps (5 MB).
 */
const MAX_SIZE = 3_800_000

const folder = mkdtempSync(path.join(tmpdir(), 'relay-package-'))
try {
  // Without "prepack", which would build again.
  const pack = ['pack', '--json', '--ignore-scripts', '--pack-destination', folder]
  const [packed] = JSON.parse(
    execFileSync('npm', pack, { encoding: 'utf8', shell: process.platform === 'win32' }),
  )
  const { filename, unpackedSize }: { filename: string; unpackedSize: number } = packed
  if (unpackedSize > MAX_SIZE)
    throw new Error(`the package has ${unpackedSize} bytes unpacked, more than ${MAX_SIZE}`)
  // Resolution as before Node 12 is not offered.
  const attw = ['--profile', 'node16', '--format', 'ascii', '--no-color', '--no-emoji']
  const tool = path.resolve('node_modules/@arethetypeswrong/cli/dist/index.js')
  execFileSync(process.execPath, [tool, ...attw, path.join(folder, filename)], {
    stdio: 'inherit',
  })
} finally {
  rmSync(folder, { recursive: true })
}
