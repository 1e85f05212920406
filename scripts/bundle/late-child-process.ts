import type { Plugin } from 'rolldown'

const LOADED = /const childProcess = require\('(?:node:)?child_process'\);/
const LATE = `const childProcess = {
  spawn: (...args) => require('node:child_process').spawn(...args),
  exec: (...args) => require('node:child_process').exec(...args),
  execSync: (...args) => require('node:child_process').execSync(...args),
};`

/**
 * Has two packages load what starts other programs when they start one: commander, for commands that are programs, which none of
 * ours is; and detect-libc, for systems whose files do not tell what lmdb's compiled part is to fit.
 */
export function lateChildProcess(): Plugin {
  return {
    name: 'late-child-process',
    transform: {
      filter: { id: /commander\/lib\/command\.js$|detect-libc\/lib\/detect-libc\.js$/ },
      handler(code, id) {
        if (!LOADED.test(code)) this.error(`${id} loads child_process in another way`)
        return { code: code.replace(LOADED, LATE), map: null }
      },
    },
  }
}
