import path from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { hold } from './disk.js'
import type { Place, Serving } from './place.js'

/** Stops a process by SIGSTOP, but not within a write, where it would hold the database until it continues. */
export async function stopBetweenWrites(program: Serving, { home }: Pick<Place, 'home'>): Promise<void> {
  for (;;) {
    program.kill('SIGSTOP')
    try {
      hold(path.join(home, 'default')).release()
      return
    } catch {
      program.kill('SIGCONT')
      await setImmediate()
    }
  }
}
