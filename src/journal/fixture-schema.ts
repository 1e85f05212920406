import { z } from 'zod'

/** 25 MiB: what GitHub sends at most. */
export const LARGEST_BODY = 26_214_400

const text = (form: RegExp, what: string) => z.string(`must be ${what}`).regex(form, `must be ${what}`)

const headerValue = text(
  /^[\t\x20-\x7e\x80-\xff]*$/,
  'text in latin1 without control characters, or a list of such',
)
const headerName = z.string().regex(/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/)
/** One header: its value, or one for each of its lines. */
export const fixtureHeader = z.union(
  [headerValue, z.array(headerValue).min(1, 'must not be an empty list')],
  'must be text in latin1 without control characters, or a list of such',
)
const bytes = { max: `must be at most ${LARGEST_BODY / 1_048_576} MiB` }

/** A fixture file. What a delivery in the journal may be, this takes. */
export const fixtureSchema = z
  .strictObject(
    {
      $schema: z.string('must be an address').optional().describe('Where this schema is, for editors.'),
      relay: z.literal(1, "must be 1, the format's version").describe("The format's version."),
      provider: text(/^[a-z][a-z0-9-]{0,99}$/, 'a lower-case name like github').describe(
        'The code host that sends it: github, gitea, sandbox.',
      ),
      event: text(/^[A-Za-z0-9_.: -]{1,100}$/, 'the name of an event, like push').describe(
        'The event as the provider names it in its header.',
      ),
      delivery: text(/^[\x21-\x7e]{1,200}$/, '1 to 200 visible ASCII characters').describe(
        "The provider's id of the delivery.",
      ),
      headers: z
        .record(
          headerName,
          z.union(
            [headerValue, z.array(headerValue).min(1, 'must not be an empty list')],
            "must be a header's value, or a list of values",
          ),
          'must be an object of headers',
        )
        .describe('The headers as received, without those of the connection and credentials.'),
      body: z
        .string('must be text')
        .max(LARGEST_BODY, bytes.max)
        .refine((body) => !/\p{Surrogate}/u.test(body), 'has half a character; bodyBase64 can hold any bytes')
        .optional()
        .describe("The body's exact text, when it is UTF-8."),
      bodyBase64: z
        .string('must be text')
        .max(Math.ceil(LARGEST_BODY / 3) * 4, bytes.max)
        .regex(/^[A-Za-z0-9+/]*={0,2}$/, 'must be base64')
        .optional()
        .meta({ description: "The body's exact bytes, when they are not UTF-8.", contentEncoding: 'base64' }),
      payload: z
        .looseObject({}, 'must be an object')
        .optional()
        .describe('Instead of a body, in a fixture written by hand: sent as compact JSON.'),
    },
    'must be an object',
  )
  .meta({
    title: 'A webhook delivery, as relay keeps it in a file',
    oneOf: [{ required: ['body'] }, { required: ['bodyBase64'] }, { required: ['payload'] }],
  })
