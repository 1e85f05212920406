import { messageFrom } from '../data/request.js'
import { notify } from './toast.js'

/** Puts text on the clipboard once it is there, and says so. */
export async function copy(what: string, text: Promise<string>): Promise<void> {
  try {
    await navigator.clipboard.writeText(await text)
    notify(`Copied ${what}`)
  } catch (error) {
    notify(`Could not copy ${what}: ${messageFrom(error)}`, true)
  }
}
