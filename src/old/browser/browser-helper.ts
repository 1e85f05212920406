// Opens a browser, in a process of its own. Its arguments are the address and, if the user names one, the browser. Exit 0 means
// that the browser has started.
import { once } from 'node:events'
import { sleep } from '../../base/abort.js'

/** A browser command that has not failed within this time has started the browser. */
const START_LIMIT_MS = 2_000

const [, , address = '', browser] = process.argv

void run()

async function run(): Promise<void> {
  process.exitCode = (await isOpened()) ? 0 : 1
}

async function isOpened(): Promise<boolean> {
  const settled = new AbortController()
  const { signal } = settled
  try {
    const { default: open } = await import('open')
    const child = await open(address, browser ? { app: { name: browser } } : {})
    const exit = once(child, 'exit', { signal })
    // The wait keeps this process alive; the browser, which can outlive it, does not.
    const wait = sleep(START_LIMIT_MS, { signal })
    return await Promise.race([exit.then(([code]) => code === 0), wait.then(() => true)])
  } catch {
    return false
  } finally {
    settled.abort()
  }
}
