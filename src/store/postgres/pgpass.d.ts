/** The part of the package that relay uses; it has no types of its own. */
declare module 'pgpass' {
  interface ConnectionInfo {
    readonly host: string
    readonly port: number
    readonly user: string
    readonly database: string
  }
  /** Looks the password up in the file that PGPASSFILE names, or `~/.pgpass`. */
  export default function pgpass(info: ConnectionInfo, callback: (password: string | undefined) => void): void
}
