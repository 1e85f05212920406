import { useEffect, useRef, useState } from 'preact/hooks'
import type { DeliveryDetail } from '../api.js'
import { BASE } from './address.js'
import { bodyOf, whyNotRead } from './client.js'
import type { CodeView, JsonView } from './code.js'
import { formatSize } from './format.js'
import { copy, messageFrom } from './model.js'
import { Button, Section, Visible } from './parts.js'

type Way = 'json' | 'raw'

/** The payload: laid out where it is JSON, or the text of the body. */
export function Payload({ detail }: { readonly detail: DeliveryDetail }) {
  const { size, bodyKind } = detail
  const [chosen, choose] = useState<Way>('json')
  const [path, setPath] = useState('')
  const view = useRef<CodeView | JsonView | null>(null)
  const way = bodyKind === 'json' || bodyKind === 'form' ? chosen : 'raw'
  return (
    <Section
      title="Payload"
      count={formatSize(size)}
      tools={<Tools detail={detail} way={way} choose={choose} view={() => view.current} />}
    >
      {bodyKind === 'bytes' ? (
        <p class="quiet">The body is not UTF-8 text. Download it to see its bytes.</p>
      ) : (
        <Code
          key={way}
          detail={detail}
          way={way}
          onPath={setPath}
          onView={(shown) => (view.current = shown)}
        />
      )}
      {way === 'json' && path !== '' ? (
        <p class="path">
          <code>
            <Visible text={path} />
          </code>
          <Tool text="Copy path" onClick={() => void copy('the path', path)} />
        </p>
      ) : null}
    </Section>
  )
}

interface ToolsProps {
  readonly detail: DeliveryDetail
  readonly way: Way
  readonly choose: (way: Way) => void
  readonly view: () => CodeView | JsonView | null
}

function Tools({ detail: { n, bodyKind }, way, choose, view }: ToolsProps) {
  const fold = (kind: 'fold' | 'unfold') => () => {
    const shown = view()
    if (shown && 'fold' in shown) shown[kind]()
  }
  return (
    <>
      {bodyKind === 'json' || bodyKind === 'form' ? (
        <span class="switch" role="group" aria-label="Show the payload as">
          {(['json', 'raw'] as const).map((each) => (
            <button type="button" aria-pressed={way === each} onClick={() => choose(each)}>
              {each === 'json' ? 'JSON' : 'Raw'}
            </button>
          ))}
        </span>
      ) : null}
      <span class="section-tools">
        {way === 'json' ? <Tool text="Fold" onClick={fold('fold')} /> : null}
        {way === 'json' ? <Tool text="Unfold" onClick={fold('unfold')} /> : null}
        {bodyKind === 'bytes' ? null : <Tool text="Find" onClick={() => view()?.find()} />}
        {bodyKind === 'bytes' ? null : (
          <Tool text="Copy" onClick={() => void copy('the payload', textOf(n))} />
        )}
        {whyNotRead.value === null ? (
          <a class="link" href={`${BASE}/api/deliveries/${n}/body`} download>
            Download
          </a>
        ) : (
          <Button class="link" reason={whyNotRead} onClick={() => {}}>
            Download
          </Button>
        )}
      </span>
    </>
  )
}

function Tool({ text, onClick }: { readonly text: string; readonly onClick: () => void }) {
  return (
    <button type="button" class="link" onClick={onClick}>
      {text}
    </button>
  )
}

interface CodeProps {
  readonly detail: DeliveryDetail
  readonly way: Way
  readonly onPath: (path: string) => void
  readonly onView: (view: CodeView | null) => void
}

function Code({ detail: { n, bodyKind }, way, onPath, onView }: CodeProps) {
  const box = useRef<HTMLDivElement>(null)
  const [state, setState] = useState<string | null>('Reading the payload …')
  useEffect(() => {
    let view: CodeView | undefined
    let isGone = false
    const open = async (): Promise<void> => {
      const [{ showJson, showText }, bytes] = await Promise.all([import('./code.js'), bodyOf(n)])
      if (isGone || !box.current) return
      if (way === 'json') view = showJson(box.current, payloadOf(bytes, bodyKind), onPath)
      else view = showText(box.current, new TextDecoder().decode(bytes))
      onView(view)
      setState(null)
    }
    open().catch((error: unknown) => setState(`The payload could not be read: ${messageFrom(error)}`))
    return () => {
      isGone = true
      view?.destroy()
      onView(null)
      onPath('')
    }
  }, [])
  return (
    <>
      <div class="code code-view" ref={box} hidden={state !== null} />
      {state === null ? null : (
        <p class="quiet code-wait" role="status">
          {state}
        </p>
      )}
    </>
  )
}

/** The JSON in a body; a form has it in its field `payload`. */
export function payloadOf(bytes: ArrayBuffer, kind: DeliveryDetail['bodyKind']): string {
  const text = new TextDecoder().decode(bytes)
  return kind === 'form' ? (new URLSearchParams(text).get('payload') ?? '') : text
}

async function textOf(n: number): Promise<string> {
  return new TextDecoder().decode(await bodyOf(n))
}
