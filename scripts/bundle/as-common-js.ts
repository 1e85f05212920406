import type { Plugin } from 'rolldown'

/** Says beside a bundle that its files are CommonJS modules, whatever the package's others are. */
export function asCommonJs(): Plugin {
  return {
    name: 'as-common-js',
    generateBundle() {
      this.emitFile({ type: 'asset', fileName: 'package.json', source: '{ "type": "commonjs" }\n' })
    },
  }
}
