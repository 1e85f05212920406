// What the schemes of one's own can say: one sender for each ability, signed as real ones sign.
import { createHash, createHmac } from 'node:crypto'
import type { Header, WebhookRequest } from './delivery.js'

/** A request to an address. */
export interface Sent extends WebhookRequest {
  /** With its question mark, and with the path before it where that has the proof. Empty: none. */
  readonly query: string
}

export interface OwnSender {
  readonly name: string
  /** What the settings say after the source's name. */
  readonly scheme: string
  readonly secret: string
  readonly body: string
  /** Default: JSON. */
  readonly type?: string
  /** True if it signs a time, so that an old request is refused. */
  readonly isTimed: boolean
  /** True if the signature covers the body. */
  readonly coversBody: boolean
  /** What is signed of a body that is not signed whole, and its signature: each change is refused. */
  readonly signed?: readonly string[]
  /** All that proves the request. `url` is the source's address, `now` milliseconds since 1970-01-01 UTC. */
  readonly sign: (
    body: string,
    now: number,
    url: string,
  ) => { headers?: readonly Header[]; query?: string; body?: string }
}

const JSON_BODY = '{"kind":"paid","n":1}'
const FORM = 'application/x-www-form-urlencoded'
const FIELDS = 'From=%2B1555&Body=hello+you&kind=paid'
const SECRET = 's3cret-0123456789'
const KEY = Buffer.from('0123456789abcdef0123456789abcdef')
const seconds = (now: number): string => String(Math.floor(now / 1000))

type Key = string | Buffer
const hmac = (text: string, algorithm = 'sha256', key: Key = SECRET): Buffer =>
  createHmac(algorithm, key).update(text).digest()
const hex = (text: string, algorithm?: string, key?: Key): string =>
  hmac(text, algorithm, key).toString('hex')
const base64 = (text: string, algorithm?: string, key?: Key): string =>
  hmac(text, algorithm, key).toString('base64')

type Row = Pick<OwnSender, 'scheme' | 'sign'> & Partial<OwnSender>
const row = (name: string, given: Row): OwnSender => ({
  name,
  secret: SECRET,
  body: JSON_BODY,
  isTimed: /\btime=/.test(given.scheme),
  coversBody: true,
  ...given,
  scheme: `${given.scheme} event=$.kind`,
})
const signature = (value: string): { headers: readonly Header[] } => ({ headers: [['X-Sign', value]] })

const sortedFields = (body: string): string =>
  [...new URLSearchParams(body)]
    .toSorted(([one], [other]) => (one < other ? -1 : 1))
    .map(([name, value]) => name + value)
    .join('')

export const OWN_SENDERS: readonly OwnSender[] = [
  row('seconds, as Zendesk before its dates', {
    scheme: 'hmac header=X-Sign signed={timestamp}{body} time=X-Time',
    sign: (body, now) => ({
      headers: [
        ['X-Time', seconds(now)],
        ['X-Sign', hex(seconds(now) + body)],
      ],
    }),
  }),
  row('milliseconds, as WorkOS', {
    scheme: 'hmac header=X-Sign prefix=v1= time=X-Sign#t unit=ms',
    sign: (body, now) => signature(`t=${now}, v1=${hex(`${now}.${body}`)}`),
  }),
  row('a date, as Zendesk', {
    scheme: 'hmac header=X-Sign encoding=base64 signed={timestamp}{body} time=X-Time unit=rfc3339',
    sign: (body, now) => {
      const time = new Date(now).toISOString()
      return { headers: [['X-Time', time], ...(signature(base64(time + body)).headers ?? [])] }
    },
  }),
  row('a date after the body, as Box', {
    scheme: 'hmac header=X-Sign encoding=base64 signed={body}{timestamp} time=X-Time unit=rfc3339',
    sign: (body, now) => {
      const time = new Date(now - 7 * 3_600_000).toISOString().replace(/\.\d+Z$/, '-07:00')
      return {
        headers: [
          ['X-Time', time],
          ['X-Sign', base64(body + time)],
        ],
      }
    },
  }),
  row('an id next to a date, as Twitch', {
    scheme: 'hmac header=X-Sign prefix=sha256= signed={id}{timestamp}{body} id=X-Id time=X-Time unit=rfc3339',
    sign: (body, now) => {
      const time = new Date(now).toISOString()
      return {
        headers: [
          ['X-Id', 'e76c6bd4-55c9-4987-8304-da1588d8988b'],
          ['X-Time', time],
          ['X-Sign', `sha256=${hex(`e76c6bd4-55c9-4987-8304-da1588d8988b${time}${body}`)}`],
        ],
      }
    },
  }),
  row('pairs with a semicolon, as Paddle', {
    scheme: 'hmac header=X-Sign prefix=h1= separator=; signed={timestamp}:{body} time=X-Sign#ts',
    sign: (body, now) => signature(`ts=${seconds(now)};h1=${hex(`${seconds(now)}:${body}`)}`),
  }),
  row('signatures without keys, as Recurly', {
    scheme: 'hmac header=X-Sign separator=, time=X-Sign#1 unit=ms',
    sign: (body, now) => signature(`${now},${'0'.repeat(64)},${hex(`${now}.${body}`)}`),
  }),
  row('several with a space', {
    scheme: 'hmac header=X-Sign separator=space',
    sign: (body) => signature(`${'0'.repeat(64)} ${hex(body)}`),
  }),
  row('upper-case hex', {
    scheme: 'hmac header=X-Sign encoding=HEX',
    sign: (body) => signature(hex(body).toUpperCase()),
  }),
  row('base64url without padding, as Sanity', {
    scheme: 'hmac header=X-Sign prefix=v1= encoding=base64url time=X-Sign#t unit=ms',
    sign: (body, now) => signature(`t=${now},v1=${hmac(`${now}.${body}`).toString('base64url')}`),
  }),
  row('base64url with padding', {
    scheme: 'hmac header=X-Sign encoding=base64url',
    sign: (body) => signature(`${hmac(body).toString('base64url')}=`),
  }),
  ...['md5', 'sha1', 'sha384', 'sha512'].map((algorithm) =>
    row(algorithm, {
      scheme: `hmac header=X-Sign algorithm=${algorithm}`,
      sign: (body: string) => signature(hex(body, algorithm)),
    }),
  ),
  row('a key in base64, as Airtable', {
    scheme: 'hmac header=X-Sign prefix=hmac-sha256= key=base64',
    secret: KEY.toString('base64'),
    sign: (body) => signature(`hmac-sha256=${hex(body, 'sha256', KEY)}`),
  }),
  row('a key in hex, as Squarespace', {
    scheme: 'hmac header=X-Sign key=hex',
    secret: KEY.toString('hex'),
    sign: (body) => signature(hex(body, 'sha256', KEY)),
  }),
  row('address before the body, as Square', {
    scheme: 'hmac header=X-Sign encoding=base64 signed={url}{body}',
    sign: (body, _, url) => signature(base64(url + body)),
  }),
  row('address after the body, as Trello', {
    scheme: 'hmac header=X-Sign encoding=base64 algorithm=sha1 signed={body}{url}',
    sign: (body, _, url) => signature(base64(body + url, 'sha1')),
  }),
  row('an address with a query before JSON', {
    scheme: 'hmac header=X-Sign signed={url}{body}',
    sign: (body, _, url) => ({ ...signature(hex(`${url}?shop=a${body}`)), query: '?shop=a' }),
  }),
  row('method and address, as HubSpot', {
    scheme: 'hmac header=X-Sign encoding=base64 signed={method}{url}{body}{timestamp} time=X-Time unit=ms',
    sign: (body, now, url) => ({
      headers: [
        ['X-Time', String(now)],
        ['X-Sign', base64(`POST${url}${body}${now}`)],
      ],
    }),
  }),
  row('path, query and body, on lines of their own', {
    scheme: String.raw`hmac header=X-Sign signed={method}\n{path}\n{query}\n{body}`,
    sign: (body, _, url) => ({
      ...signature(hex(`POST\n${new URL(url).pathname}\na=1&b=2\n${body}`)),
      query: '?a=1&b=2',
    }),
  }),
  row('the digest of the body', {
    scheme: 'hmac header=X-Sign signed={timestamp}.{body-sha256} time=X-Time',
    sign: (body, now) => ({
      headers: [
        ['X-Time', seconds(now)],
        ['X-Sign', hex(`${seconds(now)}.${createHash('sha256').update(body).digest('hex')}`)],
      ],
    }),
  }),
  row('sorted fields after the address, as Twilio', {
    scheme: 'hmac header=X-Sign algorithm=sha1 encoding=base64 signed={url}{fields}',
    body: FIELDS,
    type: FORM,
    sign: (body, _, url) => signature(base64(url + sortedFields(body), 'sha1')),
  }),
  row('sorted fields, joined', {
    scheme: 'hmac header=X-Sign signed={fields} fields=k=v&',
    body: FIELDS,
    type: FORM,
    sign: () => signature(hex('Body=hello you&From=+1555&kind=paid')),
  }),
  row('a signature in the query', {
    scheme: 'hmac at=?sign',
    sign: (body) => ({ query: `?sign=${hex(body)}` }),
  }),
  row('a secret in the body, as Figma', {
    scheme: 'token at=$.passcode',
    body: `{"kind":"paid","passcode":"${SECRET}"}`,
    coversBody: false,
    sign: () => ({}),
  }),
  row('a secret in a field', {
    scheme: 'token at=$.token',
    body: `kind=paid&token=${SECRET}`,
    type: FORM,
    coversBody: false,
    sign: () => ({}),
  }),
  row('a secret in the query', {
    scheme: 'token at=?token',
    coversBody: false,
    sign: () => ({ query: `?a=1&token=${SECRET}` }),
  }),
  row('a secret in the path', {
    scheme: 'token at=/1',
    coversBody: false,
    sign: () => ({ query: `/${SECRET}?a=1` }),
  }),
  row('a signature in the path', {
    scheme: 'hmac at=/2',
    sign: (body) => ({ query: `/v1/${hex(body)}` }),
  }),
  row('a signature in the body, as Mailgun', {
    scheme: 'hmac at=$.signature.signature signed={timestamp}{$.signature.token} time=$.signature.timestamp',
    coversBody: false,
    signed: ['timestamp":"1', 'token":"a8', 'signature":"'],
    sign: (body, now) => {
      const [timestamp, token] = [seconds(now), 'a8ce0edb2dd8301dee6c2405235584e4']
      const signature = { timestamp, token, signature: hex(timestamp + token) }
      return { body: JSON.stringify({ ...JSON.parse(body), signature }) }
    },
  }),
  row('signatures of each member of a list, as Adyen', {
    scheme:
      'hmac at=$.item.additionalData.sign each=$.items encoding=base64 key=hex signed={$.item.reference}:{$.item.of}:{$.item.amount.value}:{$.item.success}',
    secret: KEY.toString('hex'),
    coversBody: false,
    signed: ['reference":"8', 'value":11', 'success":"true', 'sign":"', '},{"item"'],
    sign: (body) => {
      const sign = (text: string): { sign: string } => ({ sign: base64(text, 'sha256', KEY) })
      const items = [
        {
          reference: '8515131751',
          amount: { value: 1130 },
          success: 'true',
          additionalData: sign('8515131751::1130:true'),
        },
        {
          reference: '72',
          of: '8515131751',
          amount: { value: 1 },
          success: 'false',
          additionalData: sign('72:8515131751:1:false'),
        },
      ]
      return { body: JSON.stringify({ ...JSON.parse(body), items: items.map((item) => ({ item })) }) }
    },
  }),
  row('a signature in a field, with the name of its key, as Braintree', {
    scheme: 'hmac at=$.sign key-name=| separator=& algorithm=sha1 key-hash=sha1 signed={$.payload_text}',
    secret: 'public_1:s3cret',
    body: 'kind=paid&payload_text=PG5vdGlmaWNhdGlvbj4%3D%0A',
    type: FORM,
    coversBody: false,
    signed: ['PG5v', 'public_1'],
    sign: (body) => {
      const key = createHash('sha1').update('s3cret').digest()
      const own = `other|${'0'.repeat(40)}&public_1|${hex('PG5vdGlmaWNhdGlvbj4=\n', 'sha1', key)}`
      return { body: `${body}&sign=${encodeURIComponent(own)}` }
    },
  }),
  row('a signature in the JSON of a multipart form, as Dropbox Sign', {
    scheme:
      'hmac at=$.json.event.event_hash signed={timestamp}{$.json.event.event_type} time=$.json.event.event_time tolerance=none',
    isTimed: false,
    type: 'multipart/form-data; boundary=b1',
    body: '',
    coversBody: false,
    signed: ['event_time":"1', 'event_type":"s', 'event_hash":"'],
    sign: () => {
      const event = {
        event_time: '1525470811',
        event_type: 'signed',
        event_hash: hex('1525470811signed'),
      }
      const part = (name: string, text: string): string =>
        `--b1\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${text}\r\n`
      return { body: `${part('kind', 'paid')}${part('json', JSON.stringify({ event }))}--b1--\r\n` }
    },
  }),
  row('a signature in Authorization, as Microsoft Teams', {
    scheme: 'hmac header=Authorization prefix=HMAC encoding=base64 key=base64',
    secret: KEY.toString('base64'),
    sign: (body) => ({ headers: [['Authorization', `HMAC ${base64(body, 'sha256', KEY)}`]] }),
  }),
  row('the address with a digest of the body in it, as Twilio', {
    scheme: 'hmac header=X-Sign algorithm=sha1 encoding=base64 signed={url} digest=?bodySHA256',
    sign: (body, _, url) => {
      const query = `?bodySHA256=${createHash('sha256').update(body).digest('hex')}`
      return { ...signature(base64(url + query, 'sha1')), query }
    },
  }),
  row('the time behind the signature, as Ghost', {
    scheme: 'hmac header=X-Sign prefix=sha256= separator=, signed={body}{timestamp} time=X-Sign#t unit=ms',
    sign: (body, now) => signature(`sha256=${hex(`${body}${now}`)}, t=${now}`),
  }),
  row('headers that a header lists, as Contentful', {
    scheme: String.raw`hmac header=X-Sign signed={method}\n{path}\n{headers}\n{body} headers=X-List time=X-Time unit=ms`,
    sign: (body, now, url) => {
      const listed = `x-list:x-list,x-time,x-topic;x-time:${now};x-topic:Entry.publish`
      return {
        headers: [
          ['X-Time', String(now)],
          ['X-Topic', 'Entry.publish'],
          ['X-List', 'x-list,x-time,x-topic'],
          ['X-Sign', hex(`POST\n${new URL(url).pathname}\n${listed}\n${body}`)],
        ],
      }
    },
  }),
  row('HTTP Basic, as Chargebee', {
    scheme: 'basic',
    secret: 'shop:pa:ss',
    coversBody: false,
    sign: () => ({ headers: [['Authorization', `Basic ${Buffer.from('shop:pa:ss').toString('base64')}`]] }),
  }),
]

/** The request of a sender to an address. */
export function ownRequest(sender: OwnSender, now: number, url: string, body = sender.body): Sent {
  const { headers = [], query = '', body: signed = body } = sender.sign(body, now, url)
  const type = ['Content-Type', sender.type ?? 'application/json'] as const
  return { headers: [type, ...headers], body: Buffer.from(signed), query }
}
