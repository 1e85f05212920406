import { type Env, emptyFolder } from './folder.js'
import { type Ran, type Running, start, type StartOptions } from './run.js'

/** A hub that runs, with the folder of its data, which outlives it. */
export interface TestHub extends Running {
  readonly address: string
  readonly env: Env
  /** Makes an invitation. */
  invite(...flags: string[]): Promise<string>
  /** Runs `relay hub …` beside it. */
  operate(...argv: string[]): Promise<Ran>
}

export interface HubOptions extends StartOptions {
  readonly flags?: readonly string[]
  /** Default: any free one. */
  readonly port?: number
}

/** Starts `relay hub` and waits until it listens. */
export async function hub({
  flags = [],
  port = 0,
  env: given,
  ...options
}: HubOptions = {}): Promise<TestHub> {
  const env = { RELAY_HOME: emptyFolder(), ...given }
  const running = start(['hub', '--port', String(port), '--json', ...flags], { ...options, env })
  const operate = async (...argv: string[]): Promise<Ran> => {
    const where = options.wrapper && { wrapper: options.wrapper }
    const { code, out, err } = await start(['hub', ...argv], { env, ...where }).ended
    return { code: code ?? 1, out, err }
  }
  return Object.assign(running, {
    address: await running.url(),
    env,
    operate,
    async invite(...more: string[]) {
      const { code, out, err } = await operate('invite', ...more)
      if (code !== 0) throw new Error(err)
      return out.trim()
    },
  })
}

/** What a workstation needs to join a hub. */
export async function joining(server: TestHub): Promise<Env> {
  return { RELAY_HUB_TOKEN: await server.invite(), RELAY_TUNNEL: server.address }
}
