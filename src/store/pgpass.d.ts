/** The part of the package that relay uses; it has no types of its own. */
declare module 'pgpass' {
  import type { Writable } from 'node:stream'
  type Server = Readonly<Record<'host' | 'user' | 'database', string> & { port: number }>
  /** Looks the password up in the file that PGPASSFILE names, or `~/.pgpass`. */
  function pgpass(server: Server, callback: (password: string | undefined) => void): void
  namespace pgpass {
    /** Where warnings go, of a file that is not used. Default: stderr. */
    function warnTo(stream: Writable): Writable
  }
  export default pgpass
}
