import type { Plugin } from 'rolldown'

const LOADED = "const childProcess = require('node:child_process');"
const LATE = "const childProcess = { spawn: (...args) => require('node:child_process').spawn(...args) };"

/** Has commander load what starts other programs, which none of our commands is, when it starts one. */
export function lateChildProcess(): Plugin {
  return {
    name: 'late-child-process',
    transform: {
      filter: { id: /commander\/lib\/command\.js$/ },
      handler(code) {
        if (!code.includes(LOADED)) this.error('commander loads child_process in another way')
        return { code: code.replace(LOADED, LATE), map: null }
      },
    },
  }
}
