// The webhook endpoint over a database in the folder given. Prints its address, and serves until it is killed.
import { openDatabase } from '../../../src/store/open.js'
import { startWebhookService } from '../../helpers/webhook-service.js'

const [, , folder = ''] = process.argv
const service = await startWebhookService({ database: await openDatabase({ kind: 'file', folder }) })
process.stdout.write(`${service.url}\n`)
