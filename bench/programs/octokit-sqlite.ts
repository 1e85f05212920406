// What somebody would write by hand: @octokit/webhooks' middleware, and an insert into SQLite for each delivery.
import path from 'node:path'
import { createNodeMiddleware, Webhooks } from '@octokit/webhooks'
import { DatabaseSync } from '@photostructure/sqlite'
import { listenHere } from './listen.js'

const database = new DatabaseSync(path.join(process.env['RELAY_HOME'] ?? '', 'deliveries.db'))
database.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL')
database.exec('CREATE TABLE delivery (id TEXT PRIMARY KEY, event TEXT, payload TEXT)')
const insert = database.prepare('INSERT OR IGNORE INTO delivery VALUES (?, ?, ?)')
// Kept referenced as well: the statements of a database that was collected fail.
process.once('exit', () => database.close())

const webhooks = new Webhooks({ secret: process.env['RELAY_WEBHOOK_SECRET'] ?? '' })
webhooks.onAny(({ id, name, payload }) => void insert.run(id, name, JSON.stringify(payload)))
const middleware = createNodeMiddleware(webhooks, { path: '/webhook' })

listenHere((request, response) => void middleware(request, response))
