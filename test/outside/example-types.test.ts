import { execFile } from 'node:child_process'
import { readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { expect, it } from 'vitest'
import { EXAMPLE_TYPES } from '../kit/example-types.js'
import { emptyFolder } from '../kit/folder.js'

const OPTIONS = {
  target: 'es2023',
  lib: ['es2023', 'dom'],
  module: 'nodenext',
  types: ['node'],
  strict: true,
  skipLibCheck: true,
  noEmit: true,
}

/** A type as its values are sent: without objects for times, and what is sent no more, and only to be read. */
const WIRE = `type Wire<Type> = Type extends Date
  ? string
  : Type extends readonly (infer Item)[]
    ? readonly Wire<Item>[]
    : Type extends object
      ? { readonly [Name in keyof Type as Name extends Gone ? never : Name]: Wire<Type[Name]> }
      : Type
; declare function has<Type>(value: Wire<Type>): void`.replaceAll('\n', ' ')

/** What the compiler says of these files, line by line. */
function check(folder: string): Promise<string> {
  const tsc = path.resolve('node_modules/typescript/bin/tsc')
  return new Promise((resolve) => {
    execFile(process.execPath, [tsc, '-p', folder, '--pretty', 'false'], (_, stdout) => resolve(stdout))
  })
}

it('the examples have all that the types of their packages require', async () => {
  const folder = emptyFolder()
  symlinkSync(path.resolve('node_modules'), path.join(folder, 'node_modules'), 'dir')
  const rows: Record<string, string[]> = {}
  for (const [sender, { imports, typeOf, otherwise, gone = [], nullable, open }] of Object.entries(
    EXAMPLE_TYPES,
  )) {
    const write = (value: unknown, name = ''): string => {
      if (Array.isArray(value)) return `[${value.map((each) => write(each, name)).join()}]`
      if (value === null || typeof value !== 'object' || otherwise?.test(name))
        return (value === null && nullable) || otherwise?.test(name) ? 'null as never' : JSON.stringify(value)
      return `{${Object.entries(value)
        .map(([key, each]) => `${JSON.stringify(key)}:${write(each, key)}`)
        .join()}}`
    }
    const names = gone.map((name) => `'${name}'`).join(' | ') || 'never'
    const lines = [`${imports}; type Gone = ${names}; ${WIRE}`]
    const checked = ['']
    for (const file of readdirSync(`fixtures/${sender}`)) {
      const { event, payload } = JSON.parse(readFileSync(`fixtures/${sender}/${file}`, 'utf8'))
      const type = typeOf(event, payload)
      if (type === undefined) continue
      const literal = write(payload)
      // A variable may have more members than the type of a parameter.
      const name = `value${lines.length}`
      lines.push(
        open ? `const ${name} = ${literal} as const; has<${type}>(${name})` : `has<${type}>(${literal})`,
      )
      checked.push(event)
    }
    rows[sender] = checked
    writeFileSync(path.join(folder, `${sender}.ts`), lines.join('\n'))
  }
  writeFileSync(path.join(folder, 'package.json'), '{"type":"module"}')
  const files = Object.keys(rows).map((sender) => `${sender}.ts`)
  writeFileSync(path.join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions: OPTIONS, files }))
  const said = await check(folder)
  const named = said.replaceAll(/^\S*?([\w-]+)\.ts\((\d+),\d+\)/gm, (_, sender: string, line: string) => {
    return `${sender} ${rows[sender]?.[Number(line) - 1]}`
  })
  expect(named).toBe('')
})
