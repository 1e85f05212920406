import type { Plugin } from 'rolldown'

const FILE = 'rolldown-runtime.js'
const LOADED = `require("./${FILE}")`

/** Gives each file of a CommonJS bundle rolldown's few own functions, where it uses them: a file more takes longer than these. */
export function ownRuntime(): Plugin {
  return {
    name: 'own-runtime',
    generateBundle(_, bundle) {
      const runtime = bundle[FILE]
      if (runtime?.type !== 'chunk') throw new Error(`rolldown wrote no ${FILE}`)
      const own = inOneLine(runtime.code)
      for (const file of Object.values(bundle))
        if (file.type === 'chunk') file.code = file.code.replace(LOADED, () => own)
      delete bundle[FILE]
    },
  }
}

/** Source maps tell lines. Each of its statements ends with a semicolon or a brace. */
function inOneLine(code: string): string {
  const lines = code.split('\n').filter((line) => !line.startsWith('//'))
  return `(() => { const exports = {}; ${lines.map((line) => line.trim()).join(' ')} return exports; })()`
}
