import type { Child } from 'hono/jsx'

/** Where the built files are served; undefined for one that was not built. */
export interface AssetPaths {
  path(name: string): string | undefined
}

/** The addresses of what a document loads. */
export interface Loads {
  readonly style?: string | undefined
  readonly script?: string | undefined
}

/** A whole HTML document of the inspector. */
export async function renderDocument(title: string, body: Child, { style, script }: Loads): Promise<string> {
  const document = (
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        <title>{`${title} · relay`}</title>
        <link rel="icon" href="data:," />
        {style === undefined ? null : <link rel="stylesheet" href={style} />}
        {script === undefined ? null : <script type="module" src={script} />}
      </head>
      <body>{body}</body>
    </html>
  )
  return `<!doctype html>${(await document).toString()}`
}

/**
 * hono/jsx looks for AsyncLocalStorage at the first rendering, for components that await; none here do. Once that is used, Node 20
 * and 22 track every promise of the process (https://github.com/nodejs/node/issues/34493): intake took 6 % fewer deliveries for as
 * long as relay ran. So it does not find it.
 */
function renderFirst(): void {
  const found: unknown = Reflect.get(process, 'getBuiltinModule')
  Reflect.set(process, 'getBuiltinModule', undefined)
  try {
    // oxlint-disable-next-line typescript/no-base-to-string -- this is what renders an element
    void (<br />).toString()
  } finally {
    Reflect.set(process, 'getBuiltinModule', found)
  }
}

renderFirst()
