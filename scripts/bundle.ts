// Bundles the command line and the library into few files (at every start, each costs about a millisecond), and the inspector's page.
// tsc has written the declarations. See docs/decisions/004.
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import path from 'node:path'
import { gzipSync } from 'node:zlib'
import { build, type Plugin } from 'rolldown'
import { parseAst } from 'rolldown/parseAst'

const MCP_SERVER = path.resolve('node_modules/@modelcontextprotocol/server/dist')
await build({
  platform: 'node',
  tsconfig: false,
  transform: { target: 'es2023' },
  input: { relay: 'bin/relay.ts', index: 'src/index.ts', testing: 'src/testing/index.ts' },
  // Packages that are native, read files of their own, or serve few commands.
  external: [
    '@photostructure/sqlite',
    'keytar',
    'open',
    'pg',
    'pgpass',
    'prom-client',
    're2js',
    'smee-client',
  ],
  // What checks schemas that relay mcp never gets is Ajv on Node, 200 KB of code; in browsers it is small.
  resolve: { alias: { '@modelcontextprotocol/server/_shims': `${MCP_SERVER}/shimsBrowser.mjs` } },
  // Some modules load lazily what others load at once.
  checks: { ineffectiveDynamicImport: false },
  plugins: [licences(), plainRequire(), plainExports()],
  output: {
    dir: 'dist/bin',
    // Node's loader of ES modules takes 3 to 6 ms more.
    format: 'cjs',
    entryFileNames: '[name].cjs',
    // A command and what it runs can have the same name.
    chunkFileNames: ({ facadeModuleId }) =>
      /cli[\\/]commands[\\/][^\\/]*$/.test(facadeModuleId ?? '') ? 'command-[name].cjs' : '[name].cjs',
    sourcemap: true,
    // Names of functions stay, for the stack of a defect; comments are a third of what would be read at each start.
    minify: { compress: false, mangle: { keepNames: true }, codegen: { removeWhitespace: true } },
    codeSplitting: {
      // Each group contains its imports that no earlier group contains.
      groups: [
        // All that `relay --version` needs.
        { name: 'version', test: /package\.json$/ },
        // With what bin/process.ts needs besides: that file runs the program, so it is in none that the library loads.
        {
          name: 'main',
          test: /(?:src[\\/](?:cli[\\/](?:main|options)|base[\\/]trust)\.ts|env-paths[\\/]index\.js)$/,
        },
        // What the commands that read a profile share, and nearly all that print.
        {
          name: 'profile',
          test: /src[\\/](?:cli[\\/](?:profile|journal|refused|output[\\/](?:output|deliveries))|store[\\/](?:open|schema|sql)|codehost[\\/]actions)\.ts$/,
        },
        // The schemes of the code hosts, without those of other senders.
        { name: 'host-schemes', test: /src[\\/]senders[\\/]hosts\.ts$/ },
        // With the native code of SQLite.
        { name: 'sqlite', test: /src[\\/]store[\\/]sqlite\.ts$/ },
        // What the commands that act for a user share.
        {
          name: 'user-profile',
          test: /src[\\/](?:cli[\\/](?:user-profile|account|stored-setup)|codehost[\\/](?:hooks|repo))\.ts$/,
        },
        { name: 'action', test: /src[\\/]cli[\\/]action\.ts$/ },
        // What the commands that know the sources share.
        { name: 'sources', test: /src[\\/](?:cli[\\/]sources|senders[\\/]source)\.ts$/ },
        { name: 'schemas', test: /node_modules[\\/]zod[\\/]v4[\\/]mini[\\/]/ },
        // With GitHub, as most have; the other code hosts are loaded besides.
        { name: 'code-host', test: /src[\\/]codehost[\\/](?:hosts|github[\\/]github)\.ts$/ },
        // What relay login and the services share, and what the services share.
        { name: 'listen', test: /src[\\/]http[\\/]listen\.ts$/ },
        { name: 'sign-in', test: /src[\\/](?:auth[\\/]sign-in|server[\\/]home)\.ts$/ },
        { name: 'prepare', test: /src[\\/]replay[\\/]prepare\.ts$/ },
        { name: 'service', test: /src[\\/]serve[\\/](?:start|readiness)\.ts$/ },
        { name: 'serve', test: /src[\\/]cli[\\/]commands[\\/]serve[\\/](?:serve|events)\.ts$/ },
      ],
    },
  },
})

const LIBRARY = { index: 'dist/src/index', testing: 'dist/src/testing/index' }
const built = createRequire(import.meta.url)
const declarations = new Set<string>()
for (const [name, entry] of Object.entries(LIBRARY)) {
  const bundle = path.resolve('dist/bin', `${name}.cjs`)
  const values: Readonly<Record<string, unknown>> = built(bundle)
  const names = Object.keys(values).toSorted()
  const from = path.relative(path.dirname(entry), `dist/bin/${name}.cjs`)
  writeFileSync(`${entry}.js`, `export { ${names.join(', ')} } from '${from.replaceAll('\\', '/')}'\n`)
  writeFileSync(`${entry}.d.cts`, declarationsForRequire(`${entry}.d.ts`, values))
  addDeclarations(`${entry}.d.ts`)
}
for (const file of readdirSync('dist/src', { recursive: true, encoding: 'utf8' })) {
  const declaration = path.join('dist/src', file)
  if (file.endsWith('.d.ts') && !declarations.has(declaration)) rmSync(declaration)
}

const PAGE = 'src/inspector/page'
const PAGE_FOLDER = 'dist/inspect'
rmSync(PAGE_FOLDER, { recursive: true, force: true })
// `app.js`, and `code.js` with CodeMirror, which is loaded with the first delivery. The names are fixed; the server gives each an ETag.
await build({
  input: { app: `${PAGE}/app.tsx` },
  platform: 'browser',
  tsconfig: false,
  transform: { target: 'es2022', jsx: { runtime: 'automatic', importSource: 'preact' } },
  plugins: [licences()],
  output: {
    dir: PAGE_FOLDER,
    format: 'esm',
    minify: true,
    entryFileNames: '[name].js',
    chunkFileNames: '[name].js',
  },
})
const style = ['base', 'app'].map((name) => readFileSync(`${PAGE}/${name}.css`, 'utf8')).join('')
writeFileSync(`${PAGE_FOLDER}/app.css`, style.replaceAll(/\/\*[^]*?\*\//g, '').replaceAll(/\n\s*/g, '\n'))
// As they are sent: a quarter of the size, in the package too.
for (const name of ['app.js', 'code.js', 'app.css']) {
  const file = path.join(PAGE_FOLDER, name)
  writeFileSync(`${file}.gz`, gzipSync(readFileSync(file), { level: 9 }))
  rmSync(file)
}

/**
 * Declares for `require` what a file of declarations declares for `import`. The types are the same ones, as both load the
 * same bundle: a class with private members would otherwise be two types that do not fit.
 * @param values what it exports at run time
 */
function declarationsForRequire(file: string, values: Readonly<Record<string, unknown>>): string {
  const lists = readFileSync(file, 'utf8').matchAll(/^export (?:type )?(?:\{([^}]+)\}|(\w+) =)/gm)
  const exported = [...lists].flatMap(([, list = '', alias = '']) => [...list.split(','), alias])
  const names = exported.map((name) => name.replace(/^\s*type /, '').trim()).filter((name) => name !== '')
  const isType = (name: string): boolean => !(name in values) || isClass(values[name])
  return [
    `import type * as all from './${path.basename(file, '.d.ts')}.js' with { 'resolution-mode': 'import' }`,
    ...names.filter(isType).map((name) => `export type ${name} = all.${name}`),
    ...Object.keys(values).map((name) => `export declare const ${name}: typeof all.${name}`),
    '',
  ].join('\n')
}

function isClass(value: unknown): boolean {
  return typeof value === 'function' && /^class\b/.test(Function.prototype.toString.call(value))
}

/** Adds the declarations that a file of them needs, itself included. */
function addDeclarations(file: string): void {
  const declaration = path.normalize(file)
  if (declarations.has(declaration)) return
  declarations.add(declaration)
  const imports = readFileSync(declaration, 'utf8').matchAll(
    /(?:from |import |import\()['"](\.[^'"]+)\.js['"]/g,
  )
  for (const [, from = ''] of imports) addDeclarations(path.join(path.dirname(declaration), `${from}.d.ts`))
}

/**
 * Has packages that are loaded late be required by name alone. Tools that collect the files of a program (Next.js with
 * `output: 'standalone'`) find a package in no other form.
 */
function plainRequire(): Plugin {
  const made = "createRequire(import.meta.url)('"
  return {
    name: 'plain-require',
    transform: (code) => (code.includes(made) ? { code: code.replaceAll(made, "require('") } : undefined),
  }
}

/**
 * Has a chunk assign what it exports as a function, a class or a constant, where rolldown defines a getter for each: a
 * thousand take 3 % of a start. A variable could change later, so it keeps its getter.
 */
function plainExports(): Plugin {
  const getter =
    /Object\.defineProperty\(exports,"([\w$]+)",\{enumerable:true,get:function\(\)\{return ([\w$]+)\}\}\)/g
  return {
    name: 'plain-exports',
    generateBundle(_, bundle) {
      for (const file of Object.values(bundle)) {
        if (file.type !== 'chunk') continue
        const constants = constantsOf(file.code)
        file.code = file.code.replaceAll(getter, (whole, name: string, local: string) =>
          constants.has(local) ? `exports.${name}=${local}` : whole,
        )
      }
    },
  }
}

/** Names at the top of a script whose value never changes. */
function constantsOf(code: string): ReadonlySet<string> {
  const names = parseAst(code).body.flatMap((statement) => {
    if (statement.type === 'FunctionDeclaration' || statement.type === 'ClassDeclaration')
      return [statement.id]
    const isConstant = statement.type === 'VariableDeclaration' && statement.kind === 'const'
    return isConstant ? statement.declarations.map(({ id }) => id) : []
  })
  return new Set(names.flatMap((id) => (id?.type === 'Identifier' ? [id.name] : [])))
}

/** Adds a file with the licences of all packages in the bundle. */
function licences(): Plugin {
  return {
    name: 'licences',
    generateBundle(_, bundle) {
      const modules = Object.values(bundle).flatMap((file) => (file.type === 'chunk' ? file.moduleIds : []))
      const packages = modules.flatMap(
        (id) => /^.*[\\/]node_modules[\\/](?:@[^\\/]+[\\/])?[^\\/]+(?=[\\/])/.exec(id)?.[0] ?? [],
      )
      const source = [...new Set(packages)].toSorted().map(licenceOf).join('\n')
      this.emitFile({ type: 'asset', fileName: 'LICENSES.txt', source })
    },
  }
}

function licenceOf(folder: string): string {
  const { name, version, license } = JSON.parse(readFileSync(path.join(folder, 'package.json'), 'utf8'))
  const file = readdirSync(folder).find((name) => /^licen[cs]e/i.test(name))
  if (file === undefined && !license) throw new Error(`${folder} has no licence`)
  // weak-lru-cache names its licence but has no licence file.
  const text = file === undefined ? `${license}\n` : readFileSync(path.join(folder, file), 'utf8')
  return `${name} ${version}\n\n${text}`
}
