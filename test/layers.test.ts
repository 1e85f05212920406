import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, it } from 'vitest'

/** From the ground up. A room may use only rooms of a lower rank, and itself. */
const RANKS: readonly (readonly string[])[] = [
  ['base', 'json'],
  ['store', 'http', 'net'],
  ['tokens', 'journal', 'instance'],
  ['senders'],
  ['codehost'],
  ['webhook', 'dispatch', 'hub'],
  ['tunnel', 'replay', 'auth'],
  ['events'],
  ['server', 'inspector', 'metrics', 'sandbox'],
  ['core.ts'],
  ['relay.ts'],
  ['serve'],
  ['cli', 'testing', 'index.ts'],
]
/** Exported names that two files share on purpose, with the reason. */
const SHARED_NAMES: Readonly<Record<string, string>> = {
  Journal: 'index.ts publishes the part of journal/journal.ts that only reads',
}
const SRC = path.resolve('src')
const BROWSER = path.join('inspector', 'page')

describe('the layers of src', () => {
  const files = readdirSync(SRC, { recursive: true, encoding: 'utf8' }).filter((file) => /\.tsx?$/.test(file))
  const edges = files.flatMap((file) =>
    relativeImports(path.join(SRC, file)).map((target) => ({ file, from: roomOf(file), to: roomOf(target) })),
  )

  it('has a rank for every room', () => {
    expect(files.map(roomOf).filter((room) => rankOf(room) === -1)).toEqual([])
  })

  it('imports strictly downwards', () => {
    const wrong = edges.filter(({ from, to }) => from !== to && rankOf(to) >= rankOf(from))
    expect(wrong.map(({ file, from, to }) => `${file}: ${from} → ${to}`)).toEqual([])
  })

  it('has no circle of imports, also of types or of what is loaded late', () => {
    const imports = new Map(files.map((file) => [file, relativeImports(path.join(SRC, file))]))
    expect(circleOf({ start: ['a'], a: ['b', 'c'], b: [], c: ['a'] })).toEqual(['a', 'c', 'a'])
    expect(circleOf(Object.fromEntries(imports))).toEqual([])
  })

  it('reads process.env, signals and process.exit nowhere below the command line, but for proxies', () => {
    const touching = files.filter((file) =>
      /\bprocess\.(env|on|once|exit)\b/.test(readFileSync(path.join(SRC, file), 'utf8')),
    )
    // Every HTTP client finds them there, and undici did before, in a program that embeds relay, too.
    expect(touching).toEqual(['net/agent.ts'])
  })

  it('casts nothing by Object(…), which makes an object of anything', () => {
    const casting = files.filter((file) =>
      /(?<![\w.])Object\(/.test(readFileSync(path.join(SRC, file), 'utf8')),
    )
    expect(casting).toEqual([])
  })

  it('brings nothing of Node to the browser', () => {
    const importing = files.filter(
      (file) => file.startsWith(BROWSER) && /from 'node:/.test(readFileSync(path.join(SRC, file), 'utf8')),
    )
    expect(importing).toEqual([])
  })

  it('prints and paints in one place', () => {
    const painters = files.filter((file) =>
      /from 'chalk'|\bconsole\./.test(readFileSync(path.join(SRC, file), 'utf8')),
    )
    expect(painters).toEqual(['cli/output/text.ts'])
  })

  it('names keytar, which may be missing, in one place', () => {
    const naming = files.filter((file) => readFileSync(path.join(SRC, file), 'utf8').includes('keytar'))
    expect(naming).toEqual(['store/keychain.ts'])
  })

  it('sends HTTP from one folder', () => {
    // The browser has its own client.
    const senders = files.filter(
      (file) => !file.startsWith(BROWSER) && sendsHttp(readFileSync(path.join(SRC, file), 'utf8')),
    )
    const answering = 'http/listen.ts'
    expect(senders.filter((file) => roomOf(file) !== 'net' && file !== answering)).toEqual([])
    expect(senders).toEqual(expect.arrayContaining(['net/agent.ts', 'net/loopback.ts', answering]))
  })

  it('lets no command import another: what they share is beside them', () => {
    const commands = files.filter((file) => /^cli\/commands\/[^/]+$/.test(file))
    // A large command has a folder of its name.
    const importing = commands.filter((file) => {
      const source = readFileSync(path.join(SRC, file), 'utf8').replaceAll(
        `'./${path.basename(file, '.ts')}/`,
        '',
      )
      return source.includes("from './")
    })
    expect({ commands: commands.length > 20, importing }).toEqual({ commands: true, importing: [] })
  })

  it('gives one exported name to one thing', () => {
    const owners = new Map<string, string[]>()
    for (const file of files)
      for (const name of exportsOf(readFileSync(path.join(SRC, file), 'utf8')))
        owners.set(name, [...(owners.get(name) ?? []), file])
    const known = new Set(Object.keys(SHARED_NAMES))
    const shared = [...owners].filter(([name, all]) => all.length > 1 && !known.has(name))
    expect(shared.map(([name, all]) => `${name}: ${all.toSorted().join(', ')}`).toSorted()).toEqual([])
    expect(owners.get('Journal')).toEqual(
      expect.arrayContaining(['index.ts', path.join('journal', 'journal.ts')]),
    )
  })

  it('is known to the acceptance suite by three files of its kit alone', () => {
    const suite = ['outside', 'process', 'browser', 'service', 'kit'].flatMap((folder) =>
      readdirSync(path.join('test', folder), { recursive: true, encoding: 'utf8' })
        .filter((file) => file.endsWith('.ts'))
        .map((file) => path.join('test', folder, file)),
    )
    const knowing = suite.filter((file) => /['"](?:\.\.\/)+src\//.test(readFileSync(file, 'utf8')))
    expect(knowing.toSorted()).toEqual(['test/kit/journal.ts', 'test/kit/place.ts', 'test/kit/run.ts'])
  })

  it('asks a sender what depends on it, and reads no scheme itself', () => {
    const ofScheme = /^senders\/(?:describe|making|members|proof|proving|scheme|scheme-sender|table)\.ts$/
    const knowing = files.filter(
      (file) =>
        roomOf(file) !== 'senders' && valueImports(path.join(SRC, file)).some((each) => ofScheme.test(each)),
    )
    // `--set` writes a body as its sender does.
    expect(knowing).toEqual([path.join('replay', 'edit.ts')])
    const naming = files.filter(
      (file) =>
        roomOf(file) !== 'senders' &&
        !file.startsWith(path.join('codehost', 'gitlab')) &&
        /\bgitlab\b/i.test(withoutText(path.join(SRC, file))),
    )
    // The tables of code hosts, and what help says.
    expect(naming.map((file) => file.replaceAll(path.sep, '/')).toSorted()).toEqual([
      'base/source-names.ts',
      'cli/commands/catch-up.ts',
      'cli/commands/comment.ts',
      'cli/commands/merge.ts',
      'cli/commands/revoke.ts',
      'cli/commands/setup.ts',
      'cli/commands/source.ts',
      'cli/settings/table.ts',
      'codehost/hosts.ts',
      'replay/load.ts',
      'replay/synthesize.ts',
    ])
  })

  it('finds the imports it checks', () => {
    expect(edges).toContainEqual({ file: 'cli/main.ts', from: 'cli', to: 'base' })
    expect(edges.length).toBeGreaterThan(files.length)
  })
})

/** The files, relative to src, that a file imports by a relative path: statically, dynamically, or for re-export. */
function relativeImports(file: string): string[] {
  const source = readFileSync(file, 'utf8')
  const specifiers = [...source.matchAll(/(?:\bfrom\s+|\bimport\s+|\bimport\(\s*)'(\.[^']+)'/g)].map(
    (match) => match[1] ?? '',
  )
  return specifiers.map((specifier) =>
    path.relative(SRC, path.resolve(path.dirname(file), specifier)).replace(/\.js$/, '.ts'),
  )
}

/** The files, relative to src, of which a file imports more than types. */
function valueImports(file: string): string[] {
  const source = readFileSync(file, 'utf8').replaceAll(/import type [^']*'[^']*'/g, '')
  return [...source.matchAll(/(?:\bfrom\s+|\bimport\(\s*)'(\.[^']+)'/g)].map(([, specifier = '']) =>
    path.relative(SRC, path.resolve(path.dirname(file), specifier)).replace(/\.js$/, '.ts'),
  )
}

/** A file's code, without comments. */
function withoutText(file: string): string {
  return readFileSync(file, 'utf8').replaceAll(/\/\*[^]*?\*\/|\/\/.*/g, '')
}

/** The files of the first circle that is found, in order, with the first once more; empty if there is none. */
function circleOf(imports: Readonly<Record<string, readonly string[]>>): readonly string[] {
  const done = new Set<string>()
  const visit = (file: string, above: readonly string[]): readonly string[] => {
    if (above.includes(file)) return [...above.slice(above.indexOf(file)), file]
    if (done.has(file)) return []
    for (const next of imports[file] ?? []) {
      const circle = visit(next, [...above, file])
      if (circle.length > 0) return circle
    }
    done.add(file)
    return []
  }
  for (const file of Object.keys(imports)) {
    const circle = visit(file, [])
    if (circle.length > 0) return circle
  }
  return []
}

/** The names that a file declares and exports. Re-exports do not count: they are the same thing. */
function exportsOf(source: string): ReadonlySet<string> {
  const declaration =
    /^export (?:declare )?(?:abstract )?(?:async )?(?:function\*?|class|interface|type|const|let|enum) (\w+)/gm
  return new Set([...source.matchAll(declaration)].map(([, name = '']) => name))
}

/** Whether a file uses undici, a client of Node's, or a function called `fetch`, which may be the application's own. */
function sendsHttp(source: string): boolean {
  const [nodes, others] = [
    /import \{([^}]*)\} from 'node:https?'/g,
    /'(?:undici|node:http2)'|(?:import|getBuiltinModule)\('node:https?'\)/,
  ]
  const names = [...source.matchAll(nodes)].flatMap(([, list = '']) =>
    list.split(',').map((name) => name.trim()),
  )
  const clients = names.filter((name) => name && !/^(?:type .*|createServer|STATUS_CODES)$/.test(name))
  return clients.length > 0 || others.test(source) || /(?<![.\w])(?:globalThis\.)?fetch\(/.test(source)
}

function roomOf(file: string): string {
  return file.split(path.sep)[0] ?? file
}

function rankOf(room: string): number {
  return RANKS.findIndex((rooms) => rooms.includes(room))
}
