import {
  type ChildProcess,
  execFile,
  execFileSync,
  type ExecFileOptionsWithStringEncoding,
  spawn,
} from 'node:child_process'
import { once } from 'node:events'
import { cpSync, existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { promisify } from 'node:util'
import { emptyFolder, type Env } from './folder.js'

// Carries out a Dockerfile where there is no container engine, as root: in folders instead of layers, with `chroot` instead of a runtime. The base
// images are made from Debian's packages and npm's `node`, as the real ones are, since none can be fetched.

/** What an image has besides its files, as the last stage says it. */
export interface ImageConfig {
  readonly env: Record<string, string>
  user: string
  workdir: string
  readonly volumes: string[]
  entrypoint: readonly string[]
  cmd: readonly string[]
  healthcheck: readonly string[]
}

export interface Image {
  /** The folder with its files. */
  readonly root: string
  readonly config: ImageConfig
  /** Of all its files. */
  readonly bytes: number
}

const PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'

/** Runs a program, behind all that other tests do: a build takes minutes of both cores. */
function run(program: string, args: readonly string[], options: ExecFileOptionsWithStringEncoding = {}) {
  return promisify(execFile)('nice', ['-n', '5', program, ...args], options)
}

/** A Dockerfile's instructions, with the stage of `COPY --from`. A backslash at the end of a line joins it with the next. */
function readDockerfile(text: string) {
  const lines = text
    .replaceAll(/^#.*\n/gm, '')
    .replaceAll('\\\n', ' ')
    .split('\n')
  return lines.filter(Boolean).map((line) => {
    const [, keyword, flags = '', rest = ''] = /^([A-Z]+)((?: --\S+)*) +(.*)$/.exec(line) ?? []
    if (keyword === undefined) throw new Error(`no instruction: ${line}`)
    return { keyword, from: /--from=(\S+)/.exec(flags)?.[1], text: rest.trim() }
  })
}

/** The names that a .dockerignore lets through, which must leave out all others. */
function readDockerignore(text: string): string[] {
  const [all, ...names] = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'))
  if (all !== '*' || !names.every((name) => /^!\w[\w.-]*$/.test(name)))
    throw new Error('not only names after *')
  return names.map((name) => name.slice(1))
}

/** Builds the image of a folder with a Dockerfile. Takes some minutes, and needs the package registries. */
export async function buildImage(context: string): Promise<Image> {
  const debian = await makeDebian()
  const stages = new Map<string, Stage>()
  const fileOf = (name: string): string => readFileSync(path.join(context, name), 'utf8')
  const sent = readDockerignore(fileOf('.dockerignore'))
  let stage: Stage | undefined
  for (const { keyword, from, text } of readDockerfile(fileOf('Dockerfile'))) {
    if (keyword === 'FROM') {
      const [base = '', , name = ''] = text.split(' ')
      stage = await openStage(base, debian)
      stages.set(name, stage)
    } else if (!stage) throw new Error(`${keyword} before FROM`)
    else if (keyword === 'RUN') await stage.run(text)
    else if (keyword === 'COPY') {
      const names = text.split(' ')
      const source = from === undefined ? context : stages.get(from)?.root
      if (source === undefined) throw new Error(`there is no stage ${from}`)
      const copied = names.slice(0, -1).flatMap((each) => (each === '.' ? sent : [each]))
      if (from === undefined && !copied.every((each) => sent.includes(each)))
        throw new Error(`${text} is ignored`)
      stage.copy(source, copied, names.at(-1) ?? '')
    } else stage.configure(keyword, text)
  }
  if (!stage) throw new Error('no FROM')
  const { root, config } = stage
  const { stdout } = await run('du', ['--summarize', '--apparent-size', '--block-size=1', root])
  return { root, config, bytes: Number(stdout.split('\t', 1)) }
}

/** The first layer of a stage: Debian, with Node and npm in an image of Node's. */
async function openStage(image: string, debian: string): Promise<Stage> {
  const [, version] = /^node:(\d+)-bookworm-slim$/.exec(image) ?? []
  if (version === undefined && image !== 'debian:bookworm-slim')
    throw new Error(`unknown base image ${image}`)
  const root = path.join(emptyFolder(), 'root')
  await run('cp', ['-a', '--reflink=auto', debian, root])
  if (version === undefined) return new Stage(root, false)
  const own = path.join(root, 'usr/local')
  const npm = await run('npm', ['root', '--global'])
  cpSync(await nodeProgram(version), path.join(own, 'bin/node'))
  cpSync(path.join(npm.stdout.trim(), 'npm'), path.join(own, 'lib/node_modules/npm'), { recursive: true })
  symlinkSync('../lib/node_modules/npm/bin/npm-cli.js', path.join(own, 'bin/npm'))
  return new Stage(root, true)
}

/** One stage of a build. */
class Stage {
  readonly root: string
  readonly config: ImageConfig = {
    env: {},
    user: 'root',
    workdir: '/',
    volumes: [],
    entrypoint: [],
    cmd: [],
    healthcheck: [],
  }
  /** Whether its commands reach the package registries, as this machine does. */
  readonly #isConnected: boolean

  constructor(root: string, isConnected: boolean) {
    this.root = root
    this.#isConnected = isConnected
  }

  async run(command: string): Promise<void> {
    const { env, user, workdir } = this.config
    if (user !== 'root') throw new Error('RUN after USER')
    const mounts = this.#isConnected ? await connection(this.root) : { binds: [], env: {} }
    const inside = ['env', '-C', workdir, 'sh', '-c', command]
    const [program = '', ...args] = enter(this.root, { binds: mounts.binds, argv: inside })
    try {
      await run(program, args, {
        env: { PATH, HOME: '/root', ...mounts.env, ...env },
        maxBuffer: 2 ** 26,
      })
    } catch (error) {
      const { stdout, stderr }: Record<string, unknown> = Object(error)
      throw new Error(`RUN ${command}\n${String(stdout)}\n${String(stderr)}`, { cause: error })
    }
  }

  /** Copies files, and of folders that are named alone what is in them. */
  copy(source: string, names: readonly string[], to: string): void {
    const target = path.join(this.root, to.startsWith('/') ? to : path.join(this.config.workdir, to))
    const isFolder = to.endsWith('/') || to === '.'
    for (const name of names)
      cpSync(path.join(source, name), isFolder ? path.join(target, path.basename(name)) : target, {
        recursive: true,
        verbatimSymlinks: true,
      })
  }

  configure(keyword: string, text: string): void {
    const { config } = this
    if (keyword === 'ENV')
      for (const [, name = '', value = ''] of text.matchAll(/(\w+)=(\S*)/g)) config.env[name] = value
    else if (keyword === 'USER') config.user = text
    else if (keyword === 'VOLUME') config.volumes.push(text)
    else if (keyword === 'ENTRYPOINT') config.entrypoint = JSON.parse(text)
    else if (keyword === 'CMD') config.cmd = JSON.parse(text)
    else if (keyword === 'HEALTHCHECK') config.healthcheck = JSON.parse(text.replace(/^CMD /, ''))
    else if (keyword === 'WORKDIR') {
      config.workdir = text
      mkdirSync(path.join(this.root, text), { recursive: true })
    } else if (keyword !== 'EXPOSE') throw new Error(`unknown instruction ${keyword}`)
  }
}

/** As debian:bookworm-slim: the packages that are required, without manuals, documentation and translations. */
async function makeDebian(): Promise<string> {
  const root = path.join(emptyFolder(), 'root')
  const without = ['doc', 'info', 'locale', 'man'].map(
    (name) => `--dpkgopt=path-exclude=/usr/share/${name}/*`,
  )
  // Without a flush for each file, since it is thrown away.
  const options = ['--hook-dir=/usr/share/mmdebstrap/hooks/merged-usr', '--dpkgopt=force-unsafe-io']
  await run('mmdebstrap', ['--quiet', '--variant=minbase', ...options, ...without, 'bookworm', root])
  return root
}

/** The newest Node of a version, which npm's package `node` brings. */
async function nodeProgram(version: string): Promise<string> {
  const cwd = emptyFolder()
  writeFileSync(path.join(cwd, 'package.json'), '{"allowScripts":{"node":true}}')
  await run('npm', ['install', '--no-audit', '--no-fund', `node@${version}`], { cwd })
  return path.join(cwd, 'node_modules/node/bin/node')
}

interface Bind {
  readonly from: string
  /** In the image. */
  readonly to: string
}

/** What lets npm reach the registry from inside as it does outside: names, certificates, and what it has fetched before. */
async function connection(root: string): Promise<{ readonly binds: Bind[]; readonly env: Env }> {
  const { stdout } = await run('npm', ['config', 'get', 'cache'])
  const cache = stdout.trim()
  mkdirSync(cache, { recursive: true })
  const names = Object.keys(process.env).filter((name) =>
    /^(?:https?_proxy|no_proxy|npm_config_registry|node_extra_ca_certs)$/i.test(name),
  )
  const env = Object.fromEntries(names.map((name) => [name, process.env[name]]))
  const files = ['/etc/resolv.conf', '/etc/hosts', process.env['NODE_EXTRA_CA_CERTS'] ?? ''].filter((file) =>
    existsSync(file),
  )
  for (const file of files) {
    mkdirSync(path.join(root, path.dirname(file)), { recursive: true })
    cpSync(file, path.join(root, file), { dereference: true })
  }
  mkdirSync(path.join(root, 'root/.npm'), { recursive: true })
  return { binds: [{ from: cache, to: '/root/.npm' }], env }
}

interface Inside {
  readonly binds: readonly Bind[]
  /** Nothing can be written but to these mounts, and to a `/tmp` in memory. Default: false. */
  readonly readOnly?: boolean
  readonly argv: readonly string[]
}

/**
 * A command that runs another one, as process 1 of its own, with a folder as its file system, and ends it when this process is gone. What it
 * mounts only it sees.
 */
function enter(root: string, { binds, readOnly = false, argv }: Inside): string[] {
  const mounts = [
    'set -e',
    'mount --bind "$0" "$0"',
    'mount --bind /dev "$0/dev"',
    'mount -t proc proc "$0/proc"',
    ...binds.flatMap(({ from, to }) => [
      // Never replaces a file, which another container may have mounted something on.
      `[ -e "$0${to}" ] || { mkdir -p "$0${path.dirname(to)}"; : >>"$0${to}"; }`,
      `mount --bind '${from}' "$0${to}"`,
    ]),
    ...(readOnly ? ['mount -o remount,bind,ro "$0"', 'mount -t tmpfs tmpfs "$0/tmp"'] : []),
    'exec chroot "$0" "$@"',
  ]
  const isolated = [
    'unshare',
    '--mount',
    '--pid',
    '--fork',
    '--kill-child',
    'sh',
    '-c',
    mounts.join('\n'),
    root,
  ]
  return ['setpriv', '--pdeathsig=KILL', ...isolated, ...argv]
}

export interface ContainerOptions {
  readonly env?: Env
  /** In place of the image's CMD. */
  readonly cmd?: readonly string[]
  /** Files and folders of this machine, by where they are in the container, in addition to the image's volumes. */
  readonly binds?: readonly Bind[]
  readonly readOnly?: boolean
}

/** A running image, with this machine's network, and as its user without any right of root. Disposing of it kills it. */
export class Container implements AsyncDisposable {
  readonly #image: Image
  readonly #env: Record<string, string | undefined>
  readonly #child: ChildProcess
  /** Its exit code. */
  readonly ended: Promise<number | null>
  /** What it has printed so far. */
  out = ''

  constructor(
    image: Image,
    { env, cmd = image.config.cmd, binds = [], readOnly = false }: ContainerOptions = {},
  ) {
    const { entrypoint, volumes, workdir } = image.config
    this.#image = image
    this.#env = { PATH, HOME: '/var/lib/relay', ...image.config.env, ...env }
    const argv = [...this.#asUser(), 'env', '-C', workdir, ...entrypoint, ...cmd]
    const own = volumes.map((to) => ({ from: volumeOf(image, to), to }))
    const [program = '', ...args] = enter(image.root, { binds: [...own, ...binds], readOnly, argv })
    this.#child = spawn(program, args, { env: this.#env, stdio: ['ignore', 'pipe', 'pipe'] })
    for (const stream of [this.#child.stdout, this.#child.stderr])
      stream?.setEncoding('utf8').on('data', (text: string) => (this.out += text))
    this.ended = once(this.#child, 'close').then(([code]) => code)
  }

  /** Sends a signal to its process 1. */
  kill(signal: NodeJS.Signals): void {
    process.kill(this.#first(), signal)
  }

  /** Runs a command in it, as `docker exec` does. Its exit code, and what it printed. */
  async exec(...argv: string[]): Promise<{ readonly code: number; readonly out: string }> {
    const into = ['--target', String(this.#first()), '--mount', '--pid', '--root', '--wd']
    try {
      const { stdout, stderr } = await run('nsenter', [...into, ...this.#asUser(), ...argv], {
        env: this.#env,
      })
      return { code: 0, out: stdout + stderr }
    } catch (error) {
      const { code, stdout, stderr }: Record<string, unknown> = Object(error)
      // It has no code where a signal ended it.
      return { code: typeof code === 'number' ? code : 128, out: `${String(stdout)}${String(stderr)}` }
    }
  }

  /** Whether its health check succeeds. */
  async isHealthy(): Promise<boolean> {
    return (await this.exec(...this.#image.config.healthcheck)).code === 0
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#child.kill('SIGKILL')
    await this.ended
  }

  /** As `cap_drop: [ALL]` and `no-new-privileges` leave it. */
  #asUser(): string[] {
    const { user } = this.#image.config
    const owner = [`--reuid=${user}`, `--regid=${user}`, '--clear-groups']
    // Another user's process is no longer ended with its parent unless it asks for that again.
    return [
      'setpriv',
      ...owner,
      '--pdeathsig=KILL',
      '--no-new-privs',
      '--bounding-set=-all',
      '--inh-caps=-all',
    ]
  }

  /** The number of its process 1 outside. @throws Error when it has ended. */
  #first(): number {
    const { pid, exitCode, signalCode } = this.#child
    const [first] =
      exitCode === null && signalCode === null
        ? readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ')
        : []
    if (first === undefined || first === '') throw new Error(`the container has ended:\n${this.out}`)
    return Number(first)
  }
}

/** A new volume, with what the image has there and its owner. */
function volumeOf({ root }: Image, to: string): string {
  const folder = path.join(emptyFolder(), 'volume')
  execFileSync('cp', ['-a', path.join(root, to), folder])
  return folder
}
