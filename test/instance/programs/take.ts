// Takes the profile as `serve` does: listens, writes the record, then answers. Prints its address or the error.
import { type Instance, takeInstance } from '../../../src/instance/instance.js'
import { openDatabase } from '../../../src/store/open.js'
import { heard, say } from '../../store/programs/talk.js'
import { answer, serve } from '../rig.js'

const [, , folder = ''] = process.argv
const { store } = await openDatabase({ kind: 'file', folder })
let instance: Instance | undefined
const { url } = await serve(answer((challenge) => instance?.prove(challenge) ?? ''))
const own = { pid: process.pid, url, publicUrl: url, provider: 'github', providerUrl: 'https://github.com' }

say('ready')
await heard()
try {
  instance = await takeInstance(store, own)
  say(url)
} catch (error) {
  say(String(error))
}
