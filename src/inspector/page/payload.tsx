import { useState } from 'preact/hooks'
import type { DeliveryDetail } from '../api.js'
import { apiAddress, bodyOf, whyNotRead } from './client.js'
import { CodeBox } from './code-box.js'
import type { CodeView } from './code.js'
import { formatSize } from './format.js'
import { copy } from './model.js'
import { Button, Code, Section } from './parts.js'

/** The payload: formatted JSON, or the text of the body. */
export function Payload({ detail }: { readonly detail: DeliveryDetail }) {
  const { n, size, bodyKind, bodyFormat } = detail
  const [isRaw, setRaw] = useState(!hasJson(detail))
  const [path, setPath] = useState('')
  const [view, setView] = useState<CodeView | null>(null)
  const choose = (raw: boolean): void => {
    setRaw(raw)
    setPath('')
  }
  const tool = (text: string, onClick: () => void) => (
    <Button class="link" onClick={onClick}>
      {text}
    </Button>
  )
  const tools = (
    <>
      {hasJson(detail) ? <Switch isRaw={isRaw} choose={choose} /> : null}
      <span class="section-tools">
        {isRaw ? null : [tool('Fold', () => view?.fold?.()), tool('Unfold', () => view?.unfold?.())]}
        {bodyKind === 'bytes'
          ? null
          : [tool('Find', () => view?.find()), tool('Copy', () => void copy('the payload', textOf(n)))]}
        <Button class="link" reason={whyNotRead.value} download={apiAddress(`deliveries/${n}/body`)}>
          Download
        </Button>
      </span>
    </>
  )
  return (
    <Section title="Payload" count={formatSize(size)} tools={tools}>
      {bodyKind === 'bytes' ? (
        <p class="quiet">The body is {bodyFormat ?? 'not UTF-8 text'}. Download it to see its bytes.</p>
      ) : (
        <CodeBox
          what="the payload"
          version={isRaw ? 'raw' : 'json'}
          read={() => (isRaw ? textOf(n) : payloadOf(detail))}
          show={({ showText, showJson }, into, text) =>
            isRaw ? showText(into, text) : showJson(into, text, setPath)
          }
          onView={setView}
        />
      )}
      {path === '' ? null : (
        <p class="path">
          <Code text={path} />
          {tool('Copy path', () => void copy('the path', path))}
        </p>
      )}
    </Section>
  )
}

function Switch({ isRaw, choose }: { readonly isRaw: boolean; readonly choose: (raw: boolean) => void }) {
  return (
    <span class="switch" role="group" aria-label="Show the payload as">
      <button type="button" aria-pressed={!isRaw} onClick={() => choose(false)}>
        JSON
      </button>
      <button type="button" aria-pressed={isRaw} onClick={() => choose(true)}>
        Raw
      </button>
    </span>
  )
}

/** True if a body is JSON, or a form that carries JSON. */
export function hasJson({ bodyKind }: DeliveryDetail): boolean {
  return bodyKind === 'json' || bodyKind === 'form'
}

/** Returns the JSON of a body, which a form has in its field `payload`, or the text of others. @throws RequestError */
export async function payloadOf({ n, bodyKind }: DeliveryDetail): Promise<string> {
  const text = await textOf(n)
  return bodyKind === 'form' ? (new URLSearchParams(text).get('payload') ?? '') : text
}

async function textOf(n: number): Promise<string> {
  return new TextDecoder().decode(await bodyOf(n))
}
