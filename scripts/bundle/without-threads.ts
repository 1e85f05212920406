import type { Plugin } from 'rolldown'

const CLOSED = 'fs.close(fd, () => {})'

/** Has detect-libc close what it reads at once: to do so without waiting starts four threads, which a short command has no other use for. */
export function withoutThreads(): Plugin {
  return {
    name: 'without-threads',
    transform: {
      filter: { id: /detect-libc\/lib\/filesystem\.js$/ },
      handler(code, id) {
        if (!code.includes(CLOSED)) this.error(`${id} closes files in another way`)
        return { code: code.replaceAll(CLOSED, 'fs.closeSync(fd)'), map: null }
      },
    },
  }
}
