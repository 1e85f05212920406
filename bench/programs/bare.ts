// node:http, HMAC and JSON.parse; stores nothing.
import { receive } from './receive.js'

receive(() => {})
