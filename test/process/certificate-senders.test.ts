import { createPublicKey, type KeyObject, sign, verify, X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:https'
import { crc32 } from 'node:zlib'
import { expect, it } from 'vitest'
import { rsaCertificate, selfSigned } from '../kit/certificate.js'
import { type Header, post, type WebhookRequest } from '../kit/delivery.js'
import { valueOf } from '../kit/key-senders.js'
import { describeWith } from '../kit/needs.js'
import { connectProxy } from '../kit/network.js'
import { place } from '../kit/place.js'
import { portOf } from '../kit/ports.js'
import { receiver } from '../kit/receiver.js'
import { objects } from '../outside/example.js'

const TOPIC = 'arn:aws:sns:us-east-1:123456789012:demo'
const WEBHOOK = '1JE4291016473214C'

interface CertificateRow {
  readonly host: string
  /** What the user enters. */
  readonly owner: string
  readonly request: (key: KeyObject, options?: Options) => WebhookRequest
  readonly isRight: (request: WebhookRequest, key: KeyObject) => boolean
  readonly change: (request: WebhookRequest) => WebhookRequest
  readonly set: string
}

interface Options {
  readonly address?: string
  readonly owner?: string
  readonly members?: Readonly<Record<string, unknown>>
}

type Members = Readonly<Record<string, unknown>>

/** By https://docs.aws.amazon.com/sns/latest/dg/sns-verify-signature-of-message.html */
function snsText(members: Members): string {
  const ofType =
    members['Type'] === 'Notification'
      ? ['Message', 'MessageId', 'Subject']
      : ['Message', 'MessageId', 'SubscribeURL']
  const rest = members['Type'] === 'Notification' ? ['Timestamp'] : ['Timestamp', 'Token']
  return [...ofType, ...rest, 'TopicArn', 'Type']
    .filter((name) => members[name] !== undefined)
    .map((name) => `${name}\n${String(members[name])}\n`)
    .join('')
}

const parsed = ({ body }: WebhookRequest): Record<string, unknown> => JSON.parse(String(body))
const snsHost = 'sns.us-east-1.amazonaws.com'

const SENDERS: Readonly<Record<string, CertificateRow>> = {
  sns: {
    host: snsHost,
    owner: TOPIC,
    request(
      key,
      { address = `https://${snsHost}/SimpleNotificationService-1.pem`, owner = TOPIC, members = {} } = {},
    ) {
      const message: Members = {
        Type: 'Notification',
        MessageId: '22b80b92-fdea-4c2c-8f9d-bdfb0c7bf324',
        TopicArn: owner,
        Subject: 'My First Message',
        Message: 'Hello world!',
        Timestamp: new Date().toISOString(),
        SignatureVersion: '2',
        SigningCertURL: address,
        ...members,
      }
      const hash = message['SignatureVersion'] === '1' ? 'sha1' : 'sha256'
      const signature = sign(hash, Buffer.from(snsText(message)), key).toString('base64')
      return {
        headers: [['Content-Type', 'text/plain; charset=UTF-8']],
        body: Buffer.from(JSON.stringify({ ...message, Signature: signature }, null, 2)),
      }
    },
    isRight(request, key) {
      const message = parsed(request)
      const signature = Buffer.from(String(message['Signature']), 'base64')
      return verify('sha256', Buffer.from(snsText(message)), key, signature)
    },
    change: (request) => ({ ...request, body: Buffer.from(String(request.body).replace('Hello', 'Hallo')) }),
    set: 'Message=changed',
  },
  paypal: {
    host: 'api.sandbox.paypal.com',
    owner: WEBHOOK,
    /** By https://developer.paypal.com/api/rest/webhooks/rest/#verify-webhook-signature */
    request(
      key,
      { address = 'https://api.sandbox.paypal.com/v1/notifications/certs/CERT-1', owner = WEBHOOK } = {},
    ) {
      const body = JSON.stringify({
        id: 'WH-1',
        event_type: 'PAYMENT.SALE.COMPLETED',
        resource: { amount: '1.00' },
      })
      const [id, time] = ['69cd13f0-d67a-11e5-baa3-778b53f4ae55', '2026-01-31T12:00:00Z']
      const signature = sign('sha256', Buffer.from(`${id}|${time}|${owner}|${crc32(body)}`), key)
      const headers: Header[] = [
        ['Content-Type', 'application/json'],
        ['PAYPAL-TRANSMISSION-ID', id],
        ['PAYPAL-TRANSMISSION-TIME', time],
        ['PAYPAL-TRANSMISSION-SIG', signature.toString('base64')],
        ['PAYPAL-CERT-URL', address],
        ['PAYPAL-AUTH-ALGO', 'SHA256withRSA'],
      ]
      return { headers, body: Buffer.from(body) }
    },
    isRight(request, key) {
      const [id, time, signature] = ['ID', 'TIME', 'SIG'].map((name) =>
        valueOf(request, `PAYPAL-TRANSMISSION-${name}`),
      )
      const text = `${id}|${time}|${WEBHOOK}|${crc32(request.body)}`
      return verify('sha256', Buffer.from(text), key, Buffer.from(signature ?? '', 'base64'))
    },
    change: (request) => ({ ...request, body: Buffer.from(String(request.body).replace('1.00', '9.00')) }),
    set: 'resource.amount=9.00',
  },
}

describeWith('openssl', 'a sender with certificates', () => {
  it.each(Object.entries(SENDERS))('%s is proved by one of its own host alone', async (name, sender) => {
    const [own, other] = [rsaCertificate(), rsaCertificate()]
    const site = selfSigned(sender.host)
    const asked: string[] = []
    const server = createServer({ key: site.key, cert: site.cert }, ({ url = '' }, response) => {
      asked.push(url)
      if (url.includes('redirect'))
        response.writeHead(302, { location: `https://${sender.host}/1.pem` }).end()
      else response.end(url.includes('Confirm') ? '<ok/>' : own.cert)
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    await using proxy = await connectProxy(() => `https://127.0.0.1:${portOf(server)}`)
    await using here = await place({ host: 'none' })
    await using target = await receiver()
    const added = await here.runWith({ stdin: sender.owner }, 'source', 'add', name, '--json')
    expect(added).toMatchObject({ code: 0 })
    const ownKey = createPublicKey(String(objects(added)[0]?.['ownKey']))
    const env = { NODE_EXTRA_CA_CERTS: site.file, HTTPS_PROXY: proxy.url }
    const relay = await here.serveWith({ built: true, env }, '--forward', `${name}/*=${target.url}`)
    const send = async (request: WebhookRequest): Promise<number> =>
      (await post(`${relay.address}/webhook/${name}`, request)).status
    const reason = async (): Promise<string> => {
      const [source] = objects((await here.run('source', 'list', '--json')).out)
      return JSON.stringify(source?.['lastRefusal'])
    }
    const { privateKey: key } = own
    const right = sender.request(key)
    const elsewhere = [
      'https://sns.us-east-1.amazonaws.com.evil.example/1.pem',
      `http://${sender.host}/1.pem`,
      `https://${sender.host}:8443/1.pem`,
      `https://evil@${sender.host}.evil.example/1.pem`,
      'https://127.0.0.1/1.pem',
    ]
    for (const address of elsewhere) {
      expect(await send(sender.request(other.privateKey, { address }))).toBe(401)
      expect(await reason()).toContain("none of the sender's hosts")
    }
    expect(asked).toEqual([])
    expect(await send(sender.request(key, { owner: 'of-somebody-else' }))).toBe(401)
    expect(await reason()).toMatch(/it is of the topic|is the webhook id right/)
    expect(await send(right)).toBe(200)
    expect(await send(right)).toBe(200)
    expect(asked.length).toBe(1)
    const [got = expect.unreachable()] = (await target.has(1), target.received)
    expect([
      got.body.equals(right.body),
      sender.isRight(got, new X509Certificate(own.cert).publicKey),
    ]).toEqual([true, true])
    expect(await send(sender.change(right))).toBe(401)
    expect(await reason()).toMatch(/was changed on its way|body changed on its way/)
    expect(await send(sender.request(other.privateKey))).toBe(401)
    const redirected = sender.request(key, { address: `https://${sender.host}/redirect.pem` })
    expect(await send(redirected)).toBe(503)
    const count = target.received.length
    expect(await here.runWith({ env }, 'replay', '1', '--set', sender.set)).toMatchObject({ code: 0 })
    await target.has(count + 1)
    const [made = expect.unreachable()] = target.received.slice(-1)
    expect(sender.isRight(made, ownKey)).toBe(true)
    server.close()
    server.closeAllConnections()
  })

  it('confirms a subscription to its topic at SNS alone, and makes no delivery of it', async () => {
    const { sns: { request } = expect.unreachable() } = SENDERS
    const own = rsaCertificate()
    const site = selfSigned(snsHost)
    const asked: string[] = []
    const server = createServer({ key: site.key, cert: site.cert }, ({ url = '' }, response) => {
      asked.push(url)
      response.end(url.includes('Confirm') ? '<ok/>' : own.cert)
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    await using proxy = await connectProxy(() => `https://127.0.0.1:${portOf(server)}`)
    await using here = await place({ host: 'none' })
    await here.runWith({ stdin: TOPIC }, 'source', 'add', 'sns')
    const env = { NODE_EXTRA_CA_CERTS: site.file, HTTPS_PROXY: proxy.url }
    const relay = await here.serveWith({ built: true, env })
    const send = async (members: Members): Promise<number> =>
      (await post(`${relay.address}/webhook/sns`, request(own.privateKey, { members }))).status
    const confirmation = {
      Type: 'SubscriptionConfirmation',
      Token: '2336412f37',
      Subject: undefined,
      SubscribeURL: `https://${snsHost}/?Action=ConfirmSubscription&TopicArn=${TOPIC}&Token=2336412f37`,
    }
    expect(await send(confirmation)).toBe(200)
    expect(asked.filter((url) => url.includes('Confirm'))).toEqual([
      `/?Action=ConfirmSubscription&TopicArn=${TOPIC}&Token=2336412f37`,
    ])
    expect(
      await send({ ...confirmation, SubscribeURL: 'https://evil.example/?Action=ConfirmSubscription' }),
    ).toBe(403)
    expect(asked.filter((url) => url.includes('Confirm')).length).toBe(1)
    expect((await here.run('log', '--json')).out).toBe('')
    server.close()
    server.closeAllConnections()
  })
})
