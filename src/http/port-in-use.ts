import { RelayError } from '../base/errors.js'

/** Error for a port on which another program, or another relay, listens. */
export class PortInUseError extends RelayError {
  readonly port: number
  /** Option that sets the port. */
  readonly portFlag: string

  /** @param how completes "Port 8787 is …" */
  constructor(
    { port, portFlag = '--port' }: { readonly port: number; readonly portFlag?: string },
    how: string,
    options: ErrorOptions,
  ) {
    const message = `Port ${port} is ${how}. Choose another with ${portFlag}, or 0 for any free port.`
    super('unavailable', message, options)
    this.port = port
    this.portFlag = portFlag
  }
}
