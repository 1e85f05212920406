// Uses the keychain of its environment, and leaves it to the end of the process to clean up.
import path from 'node:path'
import { openDatabase } from '../../../src/store/open.js'
import { helpersOf } from '../../helpers/keyring.js'
import { say } from './talk.js'

const [, , folder = ''] = process.argv
const { store } = await openDatabase({ kind: 'keychain', folder: path.join(folder, 'profile') })

await store.put('token:ada', 1)
say(helpersOf(process.pid)[0])
