import type { Plugin } from 'rolldown'

/**
 * Has the CommonJS files of a bundle load Node's own modules when they are first used, and as they are: not every command has
 * a use for streams, terminals or compression, and each of these takes milliseconds.
 */
export function lateBuiltins(): Plugin {
  return {
    name: 'late-builtins',
    generateBundle(_, bundle) {
      for (const file of Object.values(bundle)) {
        if (file.type !== 'chunk') continue
        file.code = late(file.code)
        // What the expressions below do not know would else be found out by who runs it.
        this.parse(file.code)
      }
    },
  }
}

/** As rolldown writes it: the module and, where its default is imported, a copy that has one, under its name or another. */
const LOADED =
  /^let ([\w$]+) = require\("(node:[\w/]+)"\);\n((?:(?:let [\w$]+|\1) = .*__toESM\(\1(?:, 1)?\);\n)*)/gm

/** The other name of a copy. */
const COPY = /^let ([\w$]+)/gm

/** The rest of rolldown's own code is not needed by a file that had it for such copies alone. */
const RUNTIME = /^const (\w+) = require\(".\/rolldown-runtime.js"\);\n(?![^]*\b\1\b)/m

function late(code: string): string {
  const modules = [...code.matchAll(LOADED)].flatMap(([, name = '', module = '', copies = '']) =>
    [name, ...[...copies.matchAll(COPY)].map(([, copy = '']) => copy)].map((own) => ({ name: own, module })),
  )
  const [first] = modules
  if (!first) return code
  const names = modules.map(({ name }) => name.replaceAll('$', String.raw`\$`))
  const use = new RegExp(String.raw`(?<![\w$]|(?<!\.\.)\.)(${names.join('|')})(?:\.default)?(?![\w$])`, 'g')
  const changed = code
    .replaceAll(LOADED, (lines, name: string) => `${name === first.name ? HERE : ''}${emptied(lines)}`)
    .replace(RUNTIME, emptied)
    .replaceAll(use, 'late$builtins.$1')
  if (ASSIGNED.test(changed)) throw new Error('A module of Node is assigned to, which cannot be loaded late')
  return changed.replace(HERE, () => `const late$builtins = { ${modules.map(getter).join(', ')} };`)
}

const ASSIGNED = /late\$builtins\.[\w$]+ = /

/** Source maps tell lines. */
const emptied = (lines: string): string => lines.replaceAll(/[^\n]/g, '')

/** Where the first of them was. */
const HERE = '/* late */'

interface Builtin {
  readonly name: string
  readonly module: string
}

/** The first use puts the module in the getter's place. What is there anyway need not be loaded. */
function getter({ name, module }: Builtin): string {
  if (module === 'node:process') return `${name}: process`
  return `get ${name}() { const value = require("${module}"); Object.defineProperty(this, "${name}", { value }); return value; }`
}
