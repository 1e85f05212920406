import { type Context, Hono } from 'hono'
import { z } from 'zod'
import { RelayError } from '../base/errors.js'
import { fixtureText, toFixture } from '../replay/fixture.js'
import { readBody, type HttpEnv } from '../http/body.js'
import type { Access } from './access.js'
import type {
  DeliveryDetail,
  DeliveryPage,
  ForwardRequest,
  InstanceState,
  RefusedDetail,
  RefusedPage,
  SendRequest,
  Sent,
  Timeline,
} from './api.js'
import { curlCommand } from './curl.js'
import type { InspectorData } from './data.js'
import { findEntry } from './detail.js'
import { cookieOf, requireKey } from './guard.js'
import type { Live } from './live.js'
import type { InspectorParts } from './parts.js'
import { forwardAgain, sendEdited } from './send.js'

const API = '/inspect/api'

export interface ApiParts {
  readonly parts: InspectorParts
  readonly data: InspectorData
  readonly live: Live
  readonly access: Access
}

/** The inspector's API; see api.ts. */
export function apiRoutes({ parts, data, live, access }: ApiParts) {
  const app = new Hono<HttpEnv>()
  app.post(`${API}/*`, requireKey(access))
  return app
    .get(`${API}/deliveries`, async (c) => c.json<DeliveryPage>(await data.list(c.req.query())))
    .get(`${API}/deliveries/:n`, async (c) => c.json<DeliveryDetail>(await data.delivery(numberOf(c, 'n'))))
    .get(`${API}/refused`, async (c) => c.json<RefusedPage>(await data.refused()))
    .get(`${API}/refused/:id`, async (c) => c.json<RefusedDetail>(await data.refusedEntry(numberOf(c, 'id'))))
    .get(`${API}/state`, async (c) => c.json<InstanceState>(await data.state()))
    .get(`${API}/timeline`, async (c) => c.json<Timeline>(await data.timeline()))
    .get(`${API}/live`, (c) => {
      const cookie = cookieOf(c)
      const { incoming, outgoing } = c.env
      // The service leaves a connection open that a client has half closed; a page that is gone closes it so.
      incoming.socket.once('end', () => outgoing.destroy())
      return live.open(c.req.header('last-event-id') ?? c.req.query('after'), {
        isOpen: () => access.mayRead(cookie),
        onGone: (listener) => outgoing.once('close', listener),
        cut: () => outgoing.destroy(),
      })
    })
    .route('/', fileRoutes(parts))
    .post(`${API}/deliveries/:n/forward`, async (c) => {
      const request: ForwardRequest = await readJson(c, FORWARD, MAX_REQUEST)
      return c.json<Sent>(await forwardAgain(parts, numberOf(c, 'n'), request))
    })
    .post(`${API}/send`, async (c) => {
      // JSON may write each byte of a text as six.
      const request: SendRequest = await readJson(c, SEND, parts.maxBody * 6 + MAX_REQUEST)
      return c.json<Sent>(await sendEdited(parts, request))
    })
}

/** What is taken out of the inspector: the exact bytes, a fixture, a command. */
function fileRoutes(parts: InspectorParts) {
  return new Hono<HttpEnv>()
    .get(`${API}/deliveries/:n/body`, async (c) => {
      const { n, body } = await findEntry(parts, numberOf(c, 'n'))
      return c.body(new Uint8Array(body), 200, download(`delivery-${n}`, 'application/octet-stream'))
    })
    .get(`${API}/deliveries/:n/fixture`, async (c) => {
      const entry = await findEntry(parts, numberOf(c, 'n'))
      const name = `${entry.event.replaceAll(/[^\w-]/g, '-')}-${entry.n}.json`
      return c.body(fixtureText(toFixture(entry)), 200, download(name, 'application/json'))
    })
    .get(`${API}/deliveries/:n/curl`, async (c) => {
      const entry = await findEntry(parts, numberOf(c, 'n'))
      return c.text(curlCommand(entry, `${parts.url()}/webhook`))
    })
}

/** 16 KiB: the ids of targets, which are addresses and commands. */
const MAX_REQUEST = 16_384
const FORWARD = z.strictObject({ targets: z.array(z.string()).optional() })
const SEND = z.strictObject({
  from: z.int().positive(),
  event: z.string(),
  body: z.string(),
  target: z.string().optional(),
})

/** @throws RelayError `bad_request` for what is not of this form, `too_large`. */
async function readJson<Schema extends z.ZodType>(
  c: Context<HttpEnv>,
  schema: Schema,
  limit: number,
): Promise<z.infer<Schema>> {
  const text = Buffer.from(await readBody(c, limit)).toString()
  try {
    return schema.parse(JSON.parse(text))
  } catch (cause) {
    throw new RelayError('bad_request', 'Invalid request', { cause })
  }
}

function download(name: string, type: string): Record<string, string> {
  return { 'Content-Type': type, 'Content-Disposition': `attachment; filename="${name}"` }
}

/** @throws RelayError `not_found` for what is no number. */
function numberOf(c: Context<HttpEnv>, name: string): number {
  const text = c.req.param(name) ?? ''
  if (/^[1-9]\d{0,14}$/.test(text)) return Number(text)
  throw new RelayError('not_found', 'Not found')
}
