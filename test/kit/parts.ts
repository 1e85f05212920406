import { once } from 'node:events'
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { inject } from 'vitest'
import type { Env } from './folder.js'

/** The real programs that a run starts once, on first use, and what tests need to find them. */
export interface Parts {
  /** The folder of a PostgreSQL cluster that no server uses: servers get copies. */
  readonly cluster: string
  /** The port of the PostgreSQL server. */
  readonly postgres: number
  /** The environment of a D-Bus session with an unlocked keyring. */
  readonly keyring: Env
  /** Where Chromium takes Playwright's connections. */
  readonly chromium: string
}

declare module 'vitest' {
  interface ProvidedContext {
    /** The Unix socket on which setup.ts takes requests for parts. */
    parts: string
  }
}

const known = new Map<keyof Parts, Promise<unknown>>()

/** A part of this run, which setup.ts starts if no other test has asked for it. */
export async function part<Name extends keyof Parts>(name: Name): Promise<Parts[Name]>
export async function part(name: keyof Parts): Promise<unknown> {
  const asked = known.get(name) ?? ask(name)
  known.set(name, asked)
  return asked
}

async function ask<Name extends keyof Parts>(name: Name): Promise<Parts[Name]> {
  const socket = connect(inject('parts'))
  await once(socket, 'connect')
  socket.write(name)
  const answer: { value: Parts[Name] } | { error: string } = JSON.parse(await text(socket))
  if ('error' in answer) throw new Error(`${name} cannot be started: ${answer.error}`)
  return answer.value
}
