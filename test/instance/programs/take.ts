// Takes the profile as `serve` does: first the row, then the port, then the row with the address. Prints how that ended.
import { takeInstance } from '../../../src/instance/instance.js'
import { openDatabase } from '../../../src/store/open.js'
import { heard, say } from '../../store/programs/talk.js'
import { answer, serve } from '../rig.js'

const [, , folder = ''] = process.argv
const { store } = await openDatabase({ kind: 'file', folder })
const own = {
  pid: process.pid,
  url: 'http://127.0.0.1:1',
  provider: 'github',
  providerUrl: 'https://github.com',
}

say('ready')
await heard()
try {
  const instance = await takeInstance(store, own)
  const { url } = await serve(answer(instance.prove))
  await instance.moveTo(url)
  say(url)
} catch (error) {
  say(String(error))
}
