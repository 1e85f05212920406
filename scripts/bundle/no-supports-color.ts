import type { Plugin } from 'rolldown'

const STUB = '\0no-supports-color'

/** Leaves out how chalk finds out what a terminal can do, for which it loads the terminal: relay tells it. */
export function noSupportsColor(): Plugin {
  return {
    name: 'no-supports-color',
    resolveId: (id) => (id === '#supports-color' ? STUB : undefined),
    load: (id) => (id === STUB ? 'export default { stdout: false, stderr: false }' : undefined),
  }
}
