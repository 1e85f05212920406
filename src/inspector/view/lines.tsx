import { Visible } from './visible.js'

/** Text of several lines: line ends stay, and every other invisible character is a visible symbol. */
export function Lines({ text }: { readonly text: string }) {
  const lines = text.replace(/\r?\n$/, '').split('\n')
  return (
    <>
      {lines.map((line, i) => (
        <>
          {i === 0 ? '' : '\n'}
          <Visible text={line.replace(/\r$/, '')} />
        </>
      ))}
    </>
  )
}
