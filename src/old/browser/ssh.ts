/** Whether this shell is on another machine than its user's browser, as far as SSH says. */
export function isRemote(env: Readonly<Record<string, string | undefined>>): boolean {
  return Boolean(env['SSH_CONNECTION'])
}

/** For a browser on another machine than relay, where 127.0.0.1 is that machine. */
export function forwardingHint(address: string): string {
  const { hostname, port } = new URL(address)
  return `From another machine, forward the port first: ssh -L ${port}:${hostname}:${port} <this machine>`
}
