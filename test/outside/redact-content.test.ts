import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { post } from '../kit/delivery.js'
import { type Place, place, type Serving } from '../kit/place.js'

/** A value that only its place shows to be a secret. */
const MARK = 'hunter2'
/** The same with words around, of which none may stay. */
const WORDS = `my ${MARK} words`
const NAMES =
  'password pass DB_PASSWORD smtpPass passphrase pwd client_secret clientKey apiKey X-Api-Key access_token Authorization Cookie Set-Cookie private-key recovery_codes otp_code otp credentials session_id webhookUrl signature'.split(
    ' ',
  )
const JSON_TYPE = 'application/json'
const FORM_TYPE = 'application/x-www-form-urlencoded'

/** How a named value is written, in each content type. Each is made for every name, with the value of one word and of several. */
const WRITTEN: Readonly<Record<string, (name: string, value: string) => string>> = {
  JSON: (name, value) => JSON.stringify({ a: { [name]: value } }),
  'JSON after a byte order mark': (name, value) => `\uFEFF${JSON.stringify({ [name]: value })}`,
  'lines of JSON': (name, value) => `${JSON.stringify({ [name]: value })}\n{"a":1}\n`,
  'lists and objects below the name': (name, value) => JSON.stringify({ [name]: [{ x: { y: value } }] }),
  'JSON in a string': (name, value) =>
    JSON.stringify({ a: JSON.stringify({ b: JSON.stringify({ [name]: value }) }) }),
  'JSON as a string': (name, value) => JSON.stringify(JSON.stringify({ [name]: value })),
  'JSON in base64': (name, value) =>
    JSON.stringify({ data: Buffer.from(JSON.stringify({ [name]: value })).toString('base64') }),
  'JSON in text': (name, value) => `got ${JSON.stringify({ [name]: value })} ok`,
  'indented JSON in text': (name, value) => `got\n${JSON.stringify({ [name]: { a: [value] } }, null, 2)}\nok`,
  'escaped JSON in text': (name, value) =>
    `got "${JSON.stringify({ [name]: value }).replaceAll('"', String.raw`\"`)}" ok`,
  'a name and its value': (name, value) => JSON.stringify({ env: [{ name, value }] }),
  'a value before its name': (name, value) => JSON.stringify({ env: [{ value, key: name }] }),
  'a name and a nested value': (name, value) => JSON.stringify({ key: name, value: { stringValue: value } }),
  'a pair': (name, value) => JSON.stringify({ headers: [[name, value]] }),
  'multipart/form-data': (name, value) =>
    `--XX\r\nContent-Disposition: form-data; name="a"\r\n\r\n1\r\n--XX\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n--XX--\r\n`,
  'multipart after a preamble, with a type': (name, value) =>
    `see\r\n--XX\r\nContent-Type: text/plain\r\nContent-Disposition: form-data; name=${name}\r\n\r\n${value}\r\n\r\n${value}\r\n--XX--`,
  'JSON in multipart': (name, value) =>
    `--XX\r\nContent-Disposition: form-data; name="a"\r\nContent-Type: application/json\r\n\r\n${JSON.stringify({ [name]: value })}\r\n--XX--\r\n`,
  'a form': (name, value) => new URLSearchParams({ a: '1', [name]: value, b: '2' }).toString(),
  'a nested field of a form': (name, value) => new URLSearchParams({ [`user[${name}]`]: value }).toString(),
  'an element': (name, value) => `<?xml version="1.0"?><a><${name}>${value}</${name}></a>`,
  'an element with spaces and a prefix': (name, value) =>
    `<a><x:${name} id="1" >\n ${value}\n</x:${name} ></a>`,
  CDATA: (name, value) => `<a><${name}><![CDATA[${value}]]></${name}></a>`,
  'elements within an element': (name, value) =>
    `<a><${name}><b c="${value}"/><value>${value}</value> ${value}</${name}></a>`,
  'an attribute': (name, value) => `<a ${name}="${value}"/>`,
  'an attribute in single quotes': (name, value) => `<a\n ${name} = '${value}'>x</a>`,
  'sibling elements': (name, value) => `<p><name>${name}</name><value>${value}</value></p>`,
  'sibling elements, the value first': (name, value) => `<p><value>${value}</value><name>${name}</name></p>`,
  'sibling attributes': (name, value) => `<add key="${name}" value="${value}"/>`,
  'an element named by an attribute': (name, value) => `<property name="${name}">${value}</property>`,
  'cells of a table': (name, value) => `<table><tr><td>${name}</td>\n<td>${value}</td></tr></table>`,
  'text in HTML': (name, value) => `<p>${name}: <b>${value}</b></p>`,
  YAML: (name, value) => `a: 1\n${name}: ${value}\nb: 2\n`,
  'YAML in double quotes': (name, value) => `a:\n  ${name}: "${value}"\n`,
  'YAML in single quotes': (name, value) => `${name}: '${value}'\n`,
  'a YAML block': (name, value) => `a:\n  ${name}: |\n    ${value}\n\n    ${value}\n  b: 1\n`,
  'a folded YAML block': (name, value) => `- ${name}: >-\n    ${value}\n`,
  'a YAML mapping': (name, value) => `${name}:\n  a: ${value}\n  b:\n    - ${value}\nc: 1\n`,
  'a YAML list': (name, value) => `${name}:\n- ${value}\n- ${value}\nc: 1\n`,
  'YAML siblings': (name, value) => `env:\n  - name: ${name}\n    value: ${value}\n`,
  'YAML siblings, the value first': (name, value) => `env:\n  - value: ${value}\n    name: ${name}\n`,
  dotenv: (name, value) => `A=1\nexport ${name}=${value}\nB=2\n`,
  INI: (name, value) => `[a]\n${name} = ${value}\n`,
  TOML: (name, value) => `${name} = """\n${value}\n"""\n`,
  'a header': (name, value) => `POST / HTTP/1.1\r\n${name}: ApiKey ${value}\r\nX: 1\r\n`,
  'an item by its name': (name, value) => `os.environ['${name}'] = "${value}"\n`,
  'an item by its name, in PHP': (name, value) => `$config["${name}"] = '${value}';\n`,
  'arguments of a call': (name, value) => `define('${name}', '${value}');\n`,
  'an argument of a call': (name, value) => `x.${name}("${value}")\n`,
  'an assignment of R': (name, value) => `${name} <- "${value}"\n`,
  'a quoted value with words after it': (name, value) => `${name}: "a" ${value}\nb: 1\n`,
  'a name, a tab and a value': (name, value) => `user\t${name}\t${value}\n`,
  'a header of curl': (name, value) => `curl -H "${name}: ApiKey ${value}" https://x.example`,
  'a sentence': (name, value) => `The ${name} is "${value}".`,
  'a title': (name, value) => `${name} for the admin: ${value}`,
  'a title and a line': (name, value) => `${name}:\n\n${value}\n`,
  'an option of a command': (name, value) => `run --${name} "${value}" x`,
  'an option with an equals sign': (name, value) => `run --${name}='${value}' x`,
  Ruby: (name, value) => `{ :${name} => "${value}", x: 1 }`,
}

/** Where a secret stands in other ways: its body, and what may not stay of it. */
const PLACES: readonly (readonly [kind: string, type: string, body: string, ...marks: string[]])[] = [
  ['a list of raw headers', JSON_TYPE, `["Host","x","X-Api-Key","${WORDS}","A","b"]`],
  ['a number', JSON_TYPE, '{"pin":123456,"n":1}', '123456'],
  ['the code and state of a form', FORM_TYPE, `code=${MARK}&state=abcdefgh123&b=2`, MARK, 'abcdefgh123'],
  ['a form with spaces', FORM_TYPE, `a=x y&password=${WORDS}&n=1`],
  ['an e-mail as the name of a field', FORM_TYPE, 'jane%40corp.example=1&b=2', 'jane'],
  ...['@', '&#64;', '&#x40;', '&commat;', '%40', '%2540', String.raw`\u0040`, '(at)', ' [at] ', '＠'].map(
    (at) => [`an e-mail with ${at}`, 'text/xml', `<a>jane${at}corp.example</a>`, 'jane', 'corp'] as const,
  ),
  ...[
    '"john doe"@corp.example',
    'jane/doe@corp.example',
    'jane@localhost',
    'jane@[10.0.0.1]',
    'jane@[IPv6:2001:db8::1]',
    'jane@10.0.0.1',
    'jane@xn--e1afmkfd.xn--p1ai',
    'jané@corp.example',
  ].map(
    (mail) => [`the e-mail ${mail}`, 'text/plain', `write to ${mail} now`, 'jan', 'john', 'doe'] as const,
  ),
  [
    'the e-mail of JSON in quotes',
    JSON_TYPE,
    JSON.stringify({ to: '"john doe"@corp.example' }),
    'john',
    'doe',
  ],
  ...[
    `https://hooks.slack.com/commands/T1/123456/${MARK}ABC`,
    `https://hooks.slack.com/actions/T1/123456/${MARK}`,
    `https://hooks.slack.com/services/T1/B1/${MARK}`,
    `https://hooks.zapier.com/hooks/catch/123/${MARK}/`,
    `https://corp.webhook.office.com/webhookb2/${MARK}@1/IncomingWebhook/x`,
    `https://discord.com/api/webhooks/12345/${MARK}`,
    `https://discordapp.com/api/v10/webhooks/12345/${MARK}?wait=1`,
    `https://api.telegram.org/bot123456:AA${MARK}/sendMessage`,
    `https://hook.eu1.make.com/${MARK}`,
    `https://smee.io/${MARK}`,
    `https://chat.example/hooks/${MARK}abcdefghij`,
    `https://x.example/invite/aB3dE6gH9${MARK}kL2nP5/open`,
    `https://user:${MARK}@x.example/y`,
    `postgres://u:p%40${MARK}@x/db`,
    `https://x.example/cb?code=${MARK}&state=1`,
  ].flatMap((url) => [
    [`the address ${url}, in a form`, FORM_TYPE, `command=%2Fx&where=${encodeURIComponent(url)}`] as const,
    [`the address ${url}, in JSON`, JSON_TYPE, JSON.stringify({ where: url, url })] as const,
    [`the address ${url}, in text`, 'text/plain', `see <${url}|it> or (${url}).`] as const,
    [
      `the address ${url}, in an address`,
      'text/plain',
      `see https://a.example/?to=${encodeURIComponent(url)}`,
    ] as const,
  ]),
  ['a user and password of curl', 'text/plain', `curl -u admin:${MARK} https://x.example`],
  ['a user and password in quotes', 'text/plain', `curl --user 'admin:${WORDS}' https://x.example`],
  ['the password of mysql', 'text/plain', `mysql -h x -p${MARK} db`],
  ['a word after a password', 'text/plain', `machine x login ada password ${MARK}`],
  ['a sentence without quotes', 'text/plain', `token is ${MARK} and the password was ${MARK}!`],
  [
    'a value that another place shows',
    JSON_TYPE,
    `{"a":"see ${MARK}abc","password":"${MARK}abc","${MARK}abc":1}`,
  ],
  ['a sentence with more words', 'text/plain', `The password for the admin account is ${MARK}`],
  ['a statement of SQL', 'text/plain', `CREATE USER x IDENTIFIED BY '${WORDS}'`],
  ['the password of sshpass', 'text/plain', `sshpass -p ${MARK} ssh x`],
  ['a row of a table', 'text/plain', `| a | b |\n| password | ${WORDS} |`],
  ['XML that is cut off', 'text/xml', `<a><password>${WORDS}`],
  ['JSON that is cut off', JSON_TYPE, `{"a":1,"pin":[1,"${WORDS}`],
  ['part of a value in a line', 'text/plain', `Authorization: ApiKey ${MARK}abc\nsent ${MARK}abc`],
  ['overlapping values', JSON_TYPE, `{"password":"ab${MARK}","pwd":"${MARK}cd","a":"ab${MARK}cd"}`],
]

describe('relay export --redact, in any content type', () => {
  let here: Place
  let relay: Serving
  beforeAll(async () => {
    here = await place({ host: 'none' })
    relay = await here.serve('--source', 'open=none')
  })
  afterAll(() => here[Symbol.asyncDispose]())

  async function redacted(type: string, body: string | Uint8Array) {
    const sent = { headers: [['Content-Type', type]] as const, body: Buffer.from(body) }
    expect((await post(`${relay.address}/webhook/open`, sent)).status).toBe(200)
    return here.run('export', 'last', '--redact')
  }

  /** What an export has of these, also where it is escaped. */
  async function left(type: string, body: string, marks: readonly string[]): Promise<string[]> {
    const { code, out } = await redacted(type, body)
    expect([body, code]).toEqual([body, 0])
    const made = String(JSON.parse(out).body)
    const plain = decodeURIComponent(made.replaceAll(/%(?![0-9a-f]{2})/gi, '%25')).replaceAll('+', ' ')
    const inBase64 = made.replaceAll(/[A-Za-z0-9+/]{8,}=*/g, (text) => Buffer.from(text, 'base64').toString())
    return marks.filter((mark) => `${out}\n${made}\n${plain}\n${inBase64}`.includes(mark))
  }

  it.each(Object.keys(WRITTEN))('replaces the value of every secret name: %s', async (kind) => {
    const write = WRITTEN[kind] ?? String
    const type = kind.includes('form') && !kind.includes('multipart') ? FORM_TYPE : 'text/plain'
    for (const name of NAMES) {
      const body = write(name, WORDS)
      expect([body, await left(type, body, [MARK, 'my ', ' words'])]).toEqual([body, []])
    }
  })

  it.each(PLACES)('replaces %s', async (_, type, body, ...marks) => {
    expect([body, await left(type, body, marks.length === 0 ? [MARK] : marks)]).toEqual([body, []])
  })

  it('keeps what is around a secret, and reads the same afterwards', async () => {
    const of = async (type: string, body: string): Promise<string> =>
      String(JSON.parse((await redacted(type, body)).out).body)
    expect(await of(JSON_TYPE, `\uFEFF{ "password": "${WORDS}", "a": [1.0, "x"] }\n`)).toBe(
      '\uFEFF{ "password": "redacted-1", "a": [1.0, "x"] }\n',
    )
    expect(await of('application/x-ndjson', `{"pin":1,"a":2}\n\n{"b":"\\u0041"}\n`)).toBe(
      '{"pin":0,"a":2}\n\n{"b":"\\u0041"}\n',
    )
    expect(await of(FORM_TYPE, `a=%7e+b&token=${MARK}&c`)).toBe('a=%7e+b&token=redacted-1&c')
    expect(await of('text/xml', `<a x="1"><b>t</b><password>${WORDS}</password><c/></a>`)).toBe(
      '<a x="1"><b>t</b><password>redacted-1</password><c/></a>',
    )
    expect(await of('text/yaml', `a: 1\npassword: |\n  ${WORDS}\nb: 2\n`)).toBe(
      'a: 1\npassword: redacted-1\nb: 2\n',
    )
    const part = (name: string, value: string): string =>
      `--b\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`
    expect(await of('multipart/form-data', `${part('a', '1')}${part('token', MARK)}--b--\r\n`)).toBe(
      `${part('a', '1')}${part('token', 'redacted-1')}--b--\r\n`,
    )
  })

  it('ends at Ctrl-C while it looks for secrets', async () => {
    await using mine = await place({ host: 'none' })
    const serving = await mine.serve('--source', 'open=none', '--max-body', '26214400')
    const body = Buffer.from('token=abcdef '.repeat(2_000_000))
    const sent = { headers: [['Content-Type', 'text/plain']] as const, body }
    expect((await post(`${serving.address}/webhook/open`, sent)).status).toBe(200)
    const running = mine.start('export', 'last', '--redact')
    // The first turn of the event loop after the work has begun.
    const timer = setInterval(() => running.kill('SIGINT'), 100)
    const ended = await running.ended
    clearInterval(timer)
    expect([ended.code, ended.out]).toEqual([130, ''])
  })

  it.each(['utf16le', 'big-endian', 'UTF-16 with its mark', 'a NUL in text'])(
    'refuses %s: it is not text',
    async (kind) => {
      const text = Buffer.from(`{"password":"${MARK}"}`, 'utf16le')
      const bodies: Readonly<Record<string, Uint8Array>> = {
        utf16le: text,
        'big-endian': Buffer.from(text).swap16(),
        'UTF-16 with its mark': Buffer.concat([Buffer.of(0xff, 0xfe), text]),
        'a NUL in text': Buffer.from(`a\0b`),
      }
      expect(await redacted(JSON_TYPE, bodies[kind] ?? '')).toMatchObject({
        code: 2,
        out: '',
        err: expect.stringContaining('not text'),
      })
    },
  )
})
