/** Types of the part of the package that relay uses, since it has none of its own. */
declare module 'pgpass' {
  import type { Writable } from 'node:stream'
  type Server = Readonly<Record<'host' | 'user' | 'database', string> & { port: number }>
  /** Looks up the password in the file that PGPASSFILE names, or `~/.pgpass`. */
  function pgpass(server: Server, callback: (password: string | undefined) => void): void
  namespace pgpass {
    /** Sets the stream for warnings about a file that is not used. Default: stderr. */
    function warnTo(stream: Writable): Writable
  }
  export default pgpass
}
