import { start, type Started } from '../programs/start.js'

/** A program that holds a database in a process of its own. */
export interface Program extends Started {
  /** Has it do something; see `programs/journal.ts`. Fails when that fails. */
  ask<Result = unknown>(name: string, value?: number): Promise<Result>
  /** The same; resolves to the reason of the failure and how long it took. */
  fails(name: string, value?: number): Promise<{ readonly error: string | undefined; readonly ms: number }>
}

export async function startJournal(
  folder: string,
  where: 'here' | 'thread',
  wrapper: readonly string[] = [],
): Promise<Program> {
  const program = start('store/programs/journal', [folder, where], wrapper)
  await program.line()
  const answer = async (name: string, value = 0) => {
    program.tell(`${name} ${value}`)
    return JSON.parse(await program.line())
  }
  return {
    ...program,
    async ask(name, value) {
      const { result, error } = await answer(name, value)
      if (error !== undefined) throw new Error(error)
      return result
    },
    fails: answer,
  }
}
