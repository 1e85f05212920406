import { Client } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { emptyFolder } from './folder.js'
import type { Place } from './place.js'
import { PROGRAM } from './run.js'

export type Fields = Record<string, unknown>

/** A coding agent, with `relay mcp` started by its client: the built program, and a client that is not relay's. Disposing of it ends both. */
export interface CodingAgent extends AsyncDisposable {
  readonly client: Client
  /** What a tool returns, which the client has checked against its output schema. @throws Error for a tool error */
  call(tool: string, given?: Fields): Promise<Fields>
  /** The message of a tool error. @throws Error if the tool succeeds */
  fails(tool: string, given?: Fields): Promise<string>
  /** Every result and error so far, as the client got them. */
  readonly heard: string
  /** Closes the input of the program, and resolves to what it printed on standard error. */
  close(): Promise<string>
}

/** @param here with the program of another build, for a comparison */
export async function codingAgent(
  here: Pick<Place, 'env' | 'cwd'> & { readonly program?: string },
  ...flags: string[]
): Promise<CodingAgent> {
  const given = { PATH: process.env['PATH'], HOME: emptyFolder(), RELAY_PORT: '0', ...here.env }
  const env = Object.fromEntries(
    Object.entries(given).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
  )
  const args = [here.program ?? PROGRAM, 'mcp', ...flags]
  const transport = new StdioClientTransport({
    command: process.execPath,
    args,
    env,
    cwd: here.cwd,
    stderr: 'pipe',
  })
  const client = new Client({ name: 'test', version: '1.0.0' }, { versionNegotiation: { mode: 'auto' } })
  const { stderr } = transport
  const said = stderr instanceof Readable ? text(stderr) : Promise.resolve('')
  await client.connect(transport)
  // With the schemas of the results.
  await client.listTools()
  const heard: string[] = []
  const call = async (name: string, given: Fields = {}) => {
    const result = await client.callTool({ name, arguments: given })
    heard.push(JSON.stringify(result))
    const [content] = result.content
    return { result, message: content?.type === 'text' ? content.text : '' }
  }
  return {
    client,
    async call(name, given) {
      const { result, message } = await call(name, given)
      if (result.isError || !result.structuredContent) throw new Error(`${name} failed: ${message}`)
      if (message !== JSON.stringify(result.structuredContent))
        throw new Error(`the text of ${name} is not its content`)
      return Object(result.structuredContent)
    },
    async fails(name, given) {
      const { result, message } = await call(name, given)
      if (!result.isError) throw new Error(`${name} has succeeded: ${message}`)
      return message
    },
    get heard() {
      return heard.join('\n')
    },
    async close() {
      await client.close()
      return said
    },
    async [Symbol.asyncDispose]() {
      await client.close()
    },
  }
}
