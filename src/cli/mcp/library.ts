import { existsSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { McpServer, ResourceTemplate } from '@modelcontextprotocol/server'
import { z } from 'zod'
import { RelayError, toRelayError } from '../../base/errors.js'
import { packagedFolder } from '../../replay/load.js'
import { exampleDelivery, triggerEvents } from '../../replay/synthesize.js'
import { readContent } from '../../senders/content.js'
import { SCHEME_NAMES } from '../../senders/senders.js'
import { hostSource, PROVIDER_NAMES } from '../../base/source-names.js'

// Prompts for two common tasks and pages to read: a person chooses them in a client.

/** Pages of the package, and what each is about. */
const PAGES = {
  'README.md': 'What relay is, and its commands',
  'docs/agents.md': 'The tools, and what an agent may do',
  'docs/forwarding.md': 'Routes, targets, conditions and retries',
  'docs/receiving.md': 'What relay checks and answers',
  'docs/replay.md': 'Fixtures, and sending deliveries again',
  'docs/sandbox.md': 'The emulated code host',
} as const

/** @param host resolves to the source of the code host, whose examples are listed */
export function offerLibrary(server: McpServer, host: () => Promise<string>): void {
  const event = z.string().describe('push, issues.opened, stripe/invoice.paid')
  server.registerPrompt(
    'write_handler',
    {
      title: 'Write a handler',
      description: 'Write and try the code that handles an event',
      argsSchema: z.object({ event, file: z.string().optional().describe('file of the code') }),
    },
    ({ event: wanted, file }) =>
      asked(`Write the code that handles the webhook event ${wanted}${file === undefined ? '' : ` in ${file}`}, and try it with relay.
1. relay_state: if nothing runs, or no route leads to the program, say which command starts it.
2. trigger_delivery with that event, then show_delivery with path for the fields that the code needs.
3. Write the code. It answers 2xx at once, and verifies the signature of the bytes as they came.
4. replay_delivery with the number of the entry, and read the status and the answer. Repeat until it is 2xx.`),
  )
  server.registerPrompt(
    'find_failure',
    {
      title: 'Find why a delivery failed',
      description: 'Find out why deliveries fail, fix the code, and send them again',
      argsSchema: z.object({ entry: z.string().optional().describe('number of the delivery') }),
    },
    ({ entry }) =>
      asked(`Find out why ${entry === undefined ? 'deliveries fail' : `delivery ${entry} failed`} at the program.
1. ${entry === undefined ? 'list_deliveries with status: "failed", and with refused: true for what relay refused' : `show_delivery with entry: ${entry}`}.
2. Read the status and the answer of the last attempt, and the code that made it. explain_refused for a request that relay refused.
3. Fix the code, then replay_delivery, until the answer is 2xx.`),
  )
  for (const [file, title] of Object.entries(PAGES)) {
    const place = path.join(packagedFolder(), '..', file)
    if (!existsSync(place)) continue
    const about = { title, mimeType: 'text/markdown' }
    server.registerResource(file, `relay://${file.toLowerCase()}`, about, (uri) => ({
      contents: [{ uri: uri.href, mimeType: 'text/markdown', text: readFileSync(place, 'utf8') }],
    }))
  }
  const list = async () => {
    const source = await host()
    return {
      resources: triggerEvents(source).map((name) => ({
        uri: `relay://fixtures/${source}/${name}`,
        name: `${source}/${name}`,
      })),
    }
  }
  server.registerResource(
    'fixtures',
    new ResourceTemplate('relay://fixtures/{source}/{event}', { list }),
    { title: 'Example of an event, as trigger_delivery sends it', mimeType: 'application/json' },
    (uri, variables) => ({
      contents: [{ uri: uri.href, mimeType: 'application/json', text: exampleOf(variables) }],
    }),
  )
}

function asked(text: string) {
  return { messages: [{ role: 'user' as const, content: { type: 'text' as const, text } }] }
}

/** The payload of a made-up delivery. @throws RelayError `no_match` */
function exampleOf({ source, event }: Readonly<Record<string, string | string[]>>): string {
  const [name, text] = [String(source), decodeURIComponent(String(event))]
  const isKnown = [...PROVIDER_NAMES.map(hostSource), ...SCHEME_NAMES].includes(name)
  if (!isKnown) throw noExample()
  try {
    const { body } = exampleDelivery({ name, scheme: name }, text, { words: LISTED })
    const { value } = readContent(body)
    return value === undefined ? Buffer.from(body).toString() : JSON.stringify(value, null, 2)
  } catch (error) {
    throw toRelayError(error).kind === 'usage' ? noExample() : error
  }
}

const LISTED = { list: () => 'trigger_delivery with list: true', body: 'body' }

function noExample(): RelayError {
  return new RelayError('no_match', `There is no such example: ${LISTED.list()} has them`)
}
