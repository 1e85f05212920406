import { execFile } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { promisify } from 'node:util'
import { packedManifest } from '../../scripts/manifest.js'
import { emptyFolder } from './folder.js'

const run = promisify(execFile)
const COMPILED = 'build/Release/keytar.node'

/** A project in which somebody has installed the packed tarball, and has tools of this one's: vitest, and Node's types. */
export type PackedProject = Awaited<ReturnType<typeof packedProject>>

/** @param from a folder whose packages the project has too, as of `installed` */
export async function packedProject(from?: string) {
  const folder = emptyFolder()
  const tarball = await packInto(folder)
  const dependencies: object =
    from === undefined ? {} : JSON.parse(readFileSync(path.join(from, 'package.json'), 'utf8'))
  writeFileSync(path.join(folder, 'package.json'), JSON.stringify({ ...dependencies, type: 'module' }))
  if (from !== undefined) await run('cp', ['-r', path.join(from, 'node_modules'), folder])
  await offerKeytar(folder)
  const install = ['install', '--prefer-offline', '--no-audit', '--no-fund', `./${tarball}`]
  const { stderr: warnings } = await run('npm', install, { cwd: folder })
  for (const name of ['vitest', '@types']) {
    const place = path.join(folder, 'node_modules', name)
    if (!existsSync(place)) symlinkSync(path.resolve('node_modules', name), place)
  }
  return {
    folder,
    /** What npm said on standard error when it was installed. */
    warnings,
    /** Runs a program there; rejects, with its output, unless it ends with 0. Its standard output. */
    async run(program: string, ...args: readonly string[]): Promise<string> {
      try {
        return (await run(program, args, { cwd: folder })).stdout
      } catch (error) {
        const { message, stdout }: Record<string, unknown> = Object(error)
        throw new Error(`${String(message)}\n${String(stdout)}`, { cause: error })
      }
    },
    /** The tool's script, to be run by node. */
    tool: (file: string): string => path.resolve('node_modules', file),
  }
}

/** Packs what is built, as `npm pack` does. The name of the tarball in the folder. */
export async function packInto(folder: string): Promise<string> {
  // In a copy, and not through "prepack", which would build again under the other tests and change their package.json.
  const source = path.join(folder, 'source')
  mkdirSync(source)
  for (const name of ['dist', 'fixtures', 'README.md', 'LICENSE'])
    cpSync(name, path.join(source, name), { recursive: true })
  writeFileSync(path.join(source, 'package.json'), packedManifest(readFileSync('package.json', 'utf8')))
  const pack = ['pack', './source', '--silent', '--pack-destination', folder]
  const { stdout: tarball } = await run('npm', pack, { cwd: folder })
  return tarball.trim()
}

/**
 * Has the install script of keytar find its compiled file wherever it runs below this folder, as it finds the published one where it reaches
 * GitHub. Otherwise it compiles it, which `npm ci` has done once here, and takes 12 s of a core.
 */
export async function offerKeytar(folder: string): Promise<void> {
  // It is left out where it cannot be built.
  if (!existsSync(`node_modules/keytar/${COMPILED}`)) return
  const { version } = JSON.parse(readFileSync('node_modules/keytar/package.json', 'utf8'))
  const prebuilds = emptyFolder()
  const name = `keytar-v${version}-napi-v3-${process.platform}-${process.arch}.tar.gz`
  const pack = ['-czf', path.join(prebuilds, name), '-C', 'node_modules/keytar', COMPILED]
  await run('tar', pack)
  // What configures prebuild-install, from any folder above.
  writeFileSync(path.join(folder, '.prebuild-installrc'), JSON.stringify({ 'local-prebuilds': prebuilds }))
}
