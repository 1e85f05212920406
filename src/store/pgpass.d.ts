/** The part of the package that relay uses; it has no types of its own. */
declare module 'pgpass' {
  interface ConnectionInfo {
    readonly host: string
    readonly port: number
    readonly user: string
    readonly database: string
  }
  /** Looks the password up in the file that PGPASSFILE names, or `~/.pgpass`. */
  function pgpass(info: ConnectionInfo, callback: (password: string | undefined) => void): void
  namespace pgpass {
    /** Where warnings go, of a file that is not used. Default: stderr. */
    function warnTo(stream: NodeJS.WritableStream): NodeJS.WritableStream
  }
  export default pgpass
}
